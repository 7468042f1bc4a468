"""What an update does to branches, and that it does nothing else."""

import fcntl
import os
from collections import Counter
from pathlib import Path

import pytest

from bazel.pytest_plugin import mostly_nightly
from test.scripts.repos.world import World


def test_a_default_branch_is_fast_forwarded_and_the_next_commands_are_named(world: World):
    server, clone = world.pair()
    _, second = world.pair("b", depends=["a"])
    world.pair("c")
    server.git("tag", "v1")
    server.git("branch", "another")
    new, refs = server.commit(), set(clone.refs())
    ran = world.run(json=False)
    assert (ran.code, ran.err, "\x1b" in ran.out) == (0, "", False)
    assert (clone.head, clone.branch, clone.git("status", "--porcelain")) == (new, "main", "")
    # No tag arrives, and no other branch.
    assert set(clone.refs()) == refs
    commands = f"  cd {clone.path} && make\n  cd {second.path} && make\n"
    assert ran.out.endswith(f"Next, inside the development container:\n{commands}")


def test_nothing_to_do_changes_nothing_at_all(world: World):
    _, clone = world.pair()
    before, git_files = clone.everything(), sorted((clone.path / ".git").rglob("*"))
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (0, "current")
    assert clone.everything() == before
    assert sorted((clone.path / ".git").rglob("*")) == git_files


def test_nothing_to_do_takes_eight_calls_of_git_for_a_repository(world: World):
    world.pair("a")
    world.pair("b")
    calls = world.folder / "calls"
    assert world.run(**world.wrapped_git(f'echo "$@" >>{calls}')).code == 0
    words = [iter(line.split()) for line in calls.read_text().splitlines()]
    verbs = Counter(next(w for w in line if w != "-c" or not next(line)) for line in words)
    each = {"config": 1, "fetch": 1, "for-each-ref": 1, "remote": 1, "rev-parse": 3, "status": 1}
    assert verbs == {verb: 2 * count for verb, count in each.items()}


@pytest.mark.parametrize("option", mostly_nightly(["--dry-run", "--plan"], ["--plan"]))
def test_a_plan_changes_no_ref_but_remote_tracking_ones(world: World, option: str):
    server, clone = world.pair()
    new, before = server.commit(), clone.refs(tracking=False)
    ran = world.run(option)
    assert (ran.code, clone.refs(tracking=False)) == (0, before)
    fetched = clone.git("rev-parse", "origin/main") == new
    assert fetched == (option == "--plan")
    assert ran.one()["status"] == ("planned" if fetched else "current")


@pytest.mark.nightly
def test_a_dry_run_and_status_need_no_server_and_say_so(world: World):
    server, clone = world.pair()
    clone.write("mine")
    with server.gone():
        ran = world.run("--dry-run", json=False)
        status = world.run("status", json=False)
    assert ran.out.endswith("No server was asked; --plan asks.\n")
    assert (status.code, "1 untracked" in status.out) == (0, True)


def test_a_feature_branch_stays_and_so_does_the_default_branch_beside_it(world: World):
    server, clone = world.pair()
    mine, refs = clone.commit_on_feature(), clone.refs(tracking=False)
    server.commit()
    one = world.run().one()
    assert (clone.head, clone.branch, clone.refs(tracking=False)) == (mine, "feature", refs)
    assert (one["status"], "--rebase or --merge" in one["reason"]) == ("kept", True)


@pytest.mark.parametrize("how", mostly_nightly(["rebase", "merge"], ["merge"]))
def test_a_feature_branch_is_integrated_on_request(world: World, how: str):
    server, clone = world.pair()
    clone.commit_on_feature()
    new = server.commit("theirs")
    assert world.run(f"--{how}").code == 0
    assert (clone.branch, clone.git("merge-base", "HEAD", new)) == ("feature", new)
    assert len(clone.git("log", "-1", "--format=%P").split()) == (1 if how == "rebase" else 2)
    assert clone.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    "options", mostly_nightly([["--rebase"], ["--merge"], ["--rebase", "--plan"]], [["--rebase"]])
)
def test_a_conflict_changes_nothing_and_its_files_are_listed(world: World, options: list[str]):
    server, clone = world.pair()
    clone.git("switch", "-q", "-c", "feature")
    clone.commit("file", "mine\n")
    server.commit("file", "theirs\n")
    clone.git("fetch", "-q")
    before = clone.everything()
    ran = world.run(*options)
    assert (ran.code, ran.one()["status"], ran.one()["files"]) == (1, "skipped", ["file"])
    assert any(options[0][2:] in command for command in ran.one()["remedy"])
    assert clone.everything() == before
    assert clone.git("worktree", "list").count("\n") == 0


def test_a_diverged_default_branch_is_left_alone_with_commands_that_can_be_copied(world: World):
    server, clone = world.pair()
    server.git("branch", "-m", "main;id")
    clone.git("fetch", "-q")
    clone.shell("git branch -m 'main;id'; git remote set-head origin --auto")
    mine = clone.commit("mine")
    server.commit("theirs")
    ran = world.run("--rebase")
    assert (ran.code, clone.head, "diverged" in ran.one()["reason"]) == (1, mine, True)
    assert ran.one()["remedy"][0].endswith(" log --oneline 'origin/main;id..main;id'")


@pytest.mark.nightly
def test_unpushed_commits_need_no_person(world: World):
    _, clone = world.pair()
    clone.commit("mine")
    ran = world.run()
    assert (ran.code, ran.one()["status"], ran.one()["ahead"]) == (0, "current", 1)
    assert ran.one()["reason"] == "1 commit to push"


@pytest.mark.parametrize("then", mostly_nightly(["nothing", "another commit"], ["nothing"]))
@pytest.mark.parametrize("branch", mostly_nightly(["main", "feature"], ["main"]))
def test_a_commit_that_upstream_took_back_is_named_and_not_called_one_to_push(
    world: World, then: str, branch: str
):
    server, clone = world.pair()
    server.commit("taken back")
    assert world.run().code == 0
    old = clone.head
    if branch == "feature":
        clone.commit_on_feature()
    server.git("reset", "-q", "--hard", "HEAD~1")
    if then != "nothing":
        server.commit("new")
    # The second run knows it by the reflog alone.
    for _ in range(2):
        ran = world.run("--rebase")
        assert (ran.code, clone.git("rev-parse", "main")) == (1, old)
        assert "origin/main was rewritten" in ran.one()["reason"]
        assert "to push" not in ran.one()["reason"]


@pytest.mark.nightly
def test_a_shallow_clone_is_fast_forwarded(world: World):
    server = world.server("a")
    server.commit()
    clone = world.clone(server, "a", "--depth=1")
    new = server.commit()
    assert (world.run().code, clone.head) == (0, new)
    assert clone.git("rev-parse", "--is-shallow-repository") == "true"


@pytest.mark.nightly
def test_own_commits_of_a_detached_head_get_a_branch_before_a_switch_is_advised(world: World):
    server, clone = world.pair()
    clone.git("switch", "-q", "--detach")
    mine = clone.commit("one")
    server.commit()
    ran = world.run()
    assert (ran.code, clone.head, clone.branch) == (1, mine, "HEAD")
    assert ran.one()["remedy"] == [f"git -C {clone.path} switch -c my-work"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    "name",
    ["heads/main", *(pytest.param(n, marks=pytest.mark.nightly) for n in ("$(id)", "a\u2028"))],
)
def test_unusual_names_of_branches_do_no_harm(world: World, name: str):
    server, clone = world.pair()
    clone.git("update-ref", f"refs/heads/{name}", "HEAD")
    clone.git("symbolic-ref", "HEAD", f"refs/heads/{name}")
    clone.commit("mine")
    before, new = clone.everything(), server.commit("theirs")
    assert world.run("--rebase").code == 0
    assert clone.git("merge-base", "HEAD", new) == new
    assert world.run("undo").code == 0
    assert clone.everything() == before


@pytest.mark.parametrize("word", mostly_nightly(["", "undo"], [""]))
def test_two_runs_do_not_work_in_one_repository_at_once(world: World, word: str):
    server, clone = world.pair()
    server.commit()
    assert world.run().code == 0
    # A worktree shares refs and objects, so it shares the lock.
    clone.git("worktree", "add", "-q", "--detach", "../tree")
    server.commit()
    old = clone.everything()
    descriptor = os.open(clone.path / ".git", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    if not word:
        world.table["a"]["path"] = str(clone.path.parent / "tree")
    ran = world.run(*([word] if word else []))
    os.close(descriptor)
    assert (ran.code, ran.one()["status"], clone.everything()) == (1, "skipped", old)
    assert "another run is at work here" in ran.one()["reason"]


# Counts the calls that run at the same time; each waits for a while.
_COUNTS = """\
touch {folder}/$$
for i in 1 2 3 4 5 6 7 8 9 10; do
    ls {folder} | wc -l >> {folder}.counts
    sleep 0.1
done
rm {folder}/$$
"""


@pytest.mark.nightly
@pytest.mark.parametrize("verb", ["fetch", "checkout"])
def test_no_more_calls_run_at_once_than_jobs(world: World, verb: str):
    inner = world.server("inner")
    servers = [world.server(name) for name in "ab"]
    for server in servers:
        for path in ("one", "two"):
            server.add_submodule(inner, path)
        world.clone(server, server.path.name, "--recursive")
    inner.commit()
    for server in servers:
        server.git("submodule", "--quiet", "update", "--remote")
        server.git("commit", "-q", "-a", "-m", "move")
    folder = world.folder / "running"
    folder.mkdir()
    wrapped = f'case "$*" in *" {verb} "*)\n{_COUNTS.format(folder=folder)};; esac'
    assert world.run("-j2", **world.wrapped_git(wrapped)).code == 0
    assert max(map(int, Path(f"{folder}.counts").read_text().split())) == 2
