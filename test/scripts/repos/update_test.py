"""What an update does to branches, and that it does nothing else."""

import fcntl
import os
import subprocess

import pytest

from test.scripts.repos.world import World


def test_a_default_branch_is_fast_forwarded(world: World):
    server, clone = world.pair()
    new = server.commit()
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (0, "updated")
    assert (clone.head, clone.branch) == (new, "main")
    assert clone.git("status", "--porcelain") == ""


def test_nothing_to_do_changes_nothing_at_all(world: World):
    _, clone = world.pair()
    before, git_files = clone.everything(), sorted((clone.path / ".git").rglob("*"))
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (0, "current")
    assert clone.everything() == before
    assert sorted((clone.path / ".git").rglob("*")) == git_files


def _calls_of_git(world: World) -> list[str]:
    """The verbs of git that a run calls, sorted."""
    calls = world.folder / "calls"
    assert world.run(**world.wrapped_git(f'echo "$@" >>{calls}')).code == 0
    words = [iter(line.split()) for line in calls.read_text().splitlines()]
    return sorted(next(w for w in line if w != "-c" or not next(line)) for line in words)


def test_nothing_to_do_takes_six_calls_of_git_for_a_repository(world: World):
    world.pair("a")
    world.pair("b")
    calls = ["config", "for-each-ref", "ls-remote", "rev-parse", "rev-parse", "status"]
    # Once: the version, and whether settings of the user rewrite addresses.
    assert _calls_of_git(world) == sorted(["config", "version", *2 * calls])


@pytest.mark.parametrize("option", ["--dry-run", "--plan"])
def test_a_plan_changes_no_ref_but_remote_tracking_ones(world: World, option: str):
    server, clone = world.pair()
    new = server.commit()
    before = clone.refs(tracking=False)
    ran = world.run(option)
    assert ran.code == 0
    assert clone.refs(tracking=False) == before
    fetched = clone.git("rev-parse", "origin/main") == new
    assert fetched == (option == "--plan")
    assert ran.one()["status"] == ("planned" if fetched else "current")


def test_a_feature_branch_stays_and_the_default_branch_beside_it_moves(world: World):
    server, clone = world.pair()
    mine = clone.commit_on_feature()
    new = server.commit()
    ran = world.run()
    assert (clone.head, clone.branch) == (mine, "feature")
    assert clone.git("rev-parse", "main") == new
    assert ran.one()["status"] == "updated"
    assert "--rebase or --merge" in ran.one()["reason"]


@pytest.mark.parametrize("how", ["rebase", "merge"])
def test_a_feature_branch_is_integrated_on_request(world: World, how: str):
    server, clone = world.pair()
    clone.git("switch", "-q", "-c", "feature")
    clone.commit("mine", "my text\n")
    new = server.commit("theirs")
    assert world.run(f"--{how}").code == 0
    assert clone.branch == "feature"
    assert clone.git("merge-base", "HEAD", new) == new
    assert (clone.read("mine"), (clone.path / "theirs").exists()) == ("my text\n", True)
    parents = clone.git("log", "-1", "--format=%P").split()
    assert len(parents) == (1 if how == "rebase" else 2)
    assert clone.git("status", "--porcelain") == ""


@pytest.mark.parametrize("plan", [[], ["--plan"]], ids=["run", "plan"])
@pytest.mark.parametrize("how", ["rebase", "merge"])
def test_a_conflict_changes_nothing_and_its_files_are_listed(
    world: World, how: str, plan: list[str]
):
    server, clone = world.pair()
    clone.git("switch", "-q", "-c", "feature")
    clone.commit("file", "mine\n")
    server.commit("file", "theirs\n")
    clone.git("fetch", "-q")
    before = clone.everything()
    ran = world.run(f"--{how}", *plan)
    assert (ran.code, ran.one()["status"], ran.one()["files"]) == (1, "skipped", ["file"])
    assert any(how in command for command in ran.one()["remedy"])
    assert clone.everything() == before
    assert clone.git("worktree", "list").count("\n") == 0


@pytest.mark.parametrize("how", [[], ["--rebase"], ["--merge"]], ids=str)
def test_a_diverged_default_branch_is_left_alone(world: World, how: list[str]):
    server, clone = world.pair()
    mine = clone.commit("mine")
    server.commit("theirs")
    ran = world.run(*how)
    assert (ran.code, clone.head) == (1, mine)
    assert "diverged" in ran.one()["reason"]


def test_unpushed_commits_on_a_current_branch_need_no_person(world: World):
    _, clone = world.pair()
    clone.commit("mine")
    ran = world.run()
    assert (ran.code, ran.one()["status"], ran.one()["ahead"]) == (0, "current", 1)


def test_a_rebase_leaves_merges_alone(world: World):
    server, clone = world.pair()
    clone.commit_on_feature()
    clone.git("switch", "-q", "-c", "other", "main")
    clone.commit("other")
    clone.git("switch", "-q", "feature")
    clone.git("merge", "-q", "--no-edit", "other")
    server.commit("theirs")
    before = clone.head
    ran = world.run("--rebase")
    assert (ran.code, clone.head) == (1, before)
    assert "has merges" in ran.one()["reason"]
    assert world.run("--merge").code == 0


def test_rewritten_history_is_named_and_nothing_is_replayed(world: World):
    server, clone = world.pair()
    server.commit("old")
    assert world.run().code == 0
    old = clone.head
    mine = clone.commit_on_feature()
    server.git("reset", "-q", "--hard", "HEAD~1")
    server.commit("new")
    ran = world.run("--rebase")
    assert (clone.head, clone.git("rev-parse", "main")) == (mine, old)
    assert (ran.code, "was rewritten" in ran.one()["reason"]) == (1, True)
    kept = [ref for ref in clone.kept() if ref.endswith("/remotes/origin/main")]
    assert old in [clone.git("rev-parse", ref) for ref in kept]


def test_a_default_branch_in_another_worktree_is_left_to_it(world: World):
    server, clone = world.pair()
    clone.git("switch", "-q", "-c", "feature")
    clone.git("worktree", "add", "-q", "../tree", "main")
    old = clone.git("rev-parse", "main")
    server.commit()
    ran = world.run()
    assert clone.git("rev-parse", "main") == old
    assert "is checked out in" in ran.one()["reason"]


def test_a_default_branch_that_another_worktree_rebases_is_left_to_it(world: World):
    server, clone = world.pair()
    clone.commit("first")
    server.git("pull", "-q", str(clone.path), "main")
    server.commit("theirs")
    clone.git("switch", "-q", "-c", "feature")
    clone.git("worktree", "add", "-q", "../tree", "main")
    tree = world.repo(clone.path.parent / "tree")
    tree.git("-c", "sequence.editor=sed -i 1ibreak", "rebase", "-q", "-i", "HEAD~1")
    old = clone.git("rev-parse", "main")
    ran = world.run()
    assert (ran.code, clone.git("rev-parse", "main")) == (1, old)
    assert f"main is checked out in {tree.path}" in ran.one()["reason"]


def test_a_shallow_clone_is_fast_forwarded(world: World):
    server = world.server("a")
    server.commit()
    clone = world.clone(server, "a", "--depth=1")
    new = server.commit()
    assert world.run().code == 0
    assert clone.head == new
    assert clone.git("rev-parse", "--is-shallow-repository") == "true"


def test_tags_and_other_branches_of_the_remote_are_not_fetched(world: World):
    server, clone = world.pair()
    server.git("tag", "v1")
    server.git("branch", "another")
    server.commit()
    before = set(clone.refs())
    world.run()
    assert set(clone.refs()) == before


def test_the_next_command_is_printed_for_what_was_updated_and_what_depends_on_it(world: World):
    server, clone = world.pair("a")
    _, second = world.pair("b", depends=["a"])
    world.pair("c")
    server.commit()
    commands = world.run().json["next"]
    assert commands == [f"cd {clone.path} && make", f"cd {second.path} && make"]


def test_the_last_lines_for_people_name_the_next_command_and_are_plain_off_a_terminal(world: World):
    server, clone = world.pair("a")
    server.commit()
    ran = world.run(json=False)
    assert f"Next, inside the development container:\n  cd {clone.path} && make\n" in ran.out
    assert (ran.err, "\x1b" in ran.out) == ("", False)


def test_a_clone_of_a_clone_follows_its_branch_alone(world: World):
    _, middle = world.pair("middle")
    clone = world.clone(middle, "a")
    del world.table["middle"]
    new = middle.commit()
    assert (world.run().code, clone.head) == (0, new)


@pytest.mark.parametrize(
    "name",
    [
        *("a;id", "heads/main"),
        *(
            pytest.param(name, marks=pytest.mark.nightly)
            for name in ("a/b", "$(id)", "a\u2028b", "origin/main")
        ),
    ],
)
def test_unusual_names_of_branches_do_no_harm(world: World, name: str):
    server, clone = world.pair()
    clone.git("update-ref", f"refs/heads/{name}", "HEAD")
    clone.git("symbolic-ref", "HEAD", f"refs/heads/{name}")
    clone.commit("mine")
    before = clone.everything()
    new = server.commit("theirs")
    assert world.run("--rebase").code == 0
    assert clone.git("merge-base", "HEAD", new) == new
    assert world.run("undo").code == 0
    assert clone.everything() == before


def test_commands_for_people_can_be_copied_whatever_a_server_calls_its_branch(world: World):
    server, clone = world.pair()
    server.git("branch", "-m", "main;id")
    clone.git("fetch", "-q")
    clone.git("branch", "-m", "main;id")
    clone.commit("mine")
    server.commit("theirs")
    log, _ = world.run().one()["remedy"]
    assert log.endswith(" log --oneline 'origin/main;id..main;id'")


def test_a_file_in_the_place_of_the_records_stops_its_repository_alone(world: World):
    server_a, a = world.pair("a")
    server_b, b = world.pair("b")
    server_a.commit()
    new, before = server_b.commit(), a.everything()
    a.write(".git/update-repos", "no folder\n")
    ran = world.run()
    assert (ran.code, ran.one("a")["status"], b.head) == (1, "failed", new)
    assert ran.one("a")["reason"].endswith("/a/.git/update-repos: File exists")
    assert a.everything() == before


@pytest.mark.parametrize("word", ["", "--plan", "undo"])
def test_two_runs_do_not_work_in_one_repository_at_once(world: World, word: str):
    server, clone = world.pair()
    server.commit()
    assert world.run().code == 0
    old, _ = clone.everything(), server.commit()
    # A worktree shares refs and objects, so it shares the lock.
    clone.git("worktree", "add", "-q", "--detach", "../tree")
    descriptor = os.open(clone.path / ".git", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    for path in (clone.path, clone.path.parent / "tree") if not word else (clone.path,):
        world.table["a"]["path"] = str(path)
        ran = world.run(*([word] if word else []))
        assert (ran.code, ran.one()["status"], clone.everything()) == (1, "skipped", old)
        assert "another run is at work here" in ran.one()["reason"]
    os.close(descriptor)
    assert "another run" not in world.run("--plan").one()["reason"]


def test_a_lock_that_is_gone_in_a_moment_is_waited_for(world: World):
    server, clone = world.pair()
    new = server.commit()
    # What holds it is a status that an editor asks for.
    lock = clone.write(".git/index.lock")
    process = subprocess.Popen(["sh", "-c", f"sleep 0.4; rm {lock}"])
    assert (world.run().code, clone.head) == (0, new)
    assert process.wait() == 0


def test_the_table_has_the_counts_after_the_update_and_fits_a_terminal(world: World):
    server, _ = world.pair()
    server.commit()
    world.table["b"] = {"upstream": ["https://example.invalid/" + "long/" * 20 + "b.git"]}
    out = world.run(json=False).out
    plan, result = out.split("Result\n")
    assert "+0 -1" in plan
    assert "+0 -1" not in result
    rows = [line for line in out.split("\n") if line.startswith(("a ", "b ", " " * 8))]
    assert len(rows) > 3
    assert max(map(len, rows)) <= 100
