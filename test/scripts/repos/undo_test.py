"""`undo` restores all that a run changed, and touches nothing that a person did since."""

import pytest

from test.scripts.repos.world import World


def test_options_may_stand_before_undo(world: World):
    server, clone = world.pair()
    before = clone.everything()
    server.commit()
    assert world.run().code == 0
    assert world.run("--config", str(world.write_table()), "undo").code == 0
    assert clone.everything() == before


def test_undo_restores_all_of_a_run_also_what_has_left_the_table(world: World):
    server_a, a = world.pair("a")
    server_b, b = world.pair("b")
    before = [a.everything(), b.everything()]
    server_a.commit()
    server_b.commit()
    assert world.run().code == 0
    del world.table["b"]
    ran = world.run("undo")
    assert ran.code == 0
    assert [r["status"] for r in ran.json["repositories"]] == ["undone", "undone"]
    assert [a.everything(), b.everything()] == before


def test_undo_names_a_run(world: World):
    server, clone = world.pair()
    server.commit()
    first = world.run().json["run"]
    middle = clone.everything()
    server.commit()
    second = world.run().json["run"]
    assert world.run("undo", second).code == 0
    assert clone.everything() == middle
    assert world.run("undo", first).code == 0
    assert world.run("undo").code == 2


def test_an_undo_can_be_undone_by_its_name(world: World):
    server, clone = world.pair()
    server.commit()
    world.run()
    after = clone.everything()
    world.run("undo")
    runs = world.run("undo", "--list").json["runs"]
    (undo,) = [run["run"] for run in runs if run["state"] == "undo"]
    assert world.run("undo", undo).code == 0
    assert clone.everything() == after


def test_undo_leaves_a_branch_that_has_moved_since(world: World):
    server, clone = world.pair()
    server.commit()
    world.run()
    mine = clone.commit("mine")
    ran = world.run("undo")
    assert (ran.code, clone.head) == (1, mine)
    assert "has moved since" in ran.one()["reason"]


def test_undo_leaves_local_changes_that_are_in_the_way(world: World):
    server, clone = world.pair()
    server.commit("file", "theirs\n")
    world.run()
    clone.write("file", "mine\n")
    before = clone.everything()
    ran = world.run("undo")
    assert (ran.code, clone.everything()) == (1, before)
    assert "in the way: file" in ran.one()["reason"]


def test_undo_leaves_ignored_files_that_are_in_the_way(world: World):
    server, clone = world.pair(files={"file": "theirs\n"})
    server.git("rm", "-q", "file")
    server.git("commit", "-q", "-m", "remove")
    world.run()
    clone.write(".git/info/exclude", "file\n")
    clone.write("file", "precious\n")
    ran = world.run("undo")
    assert (ran.code, clone.read("file")) == (1, "precious\n")
    assert "in the way: file" in ran.one()["reason"]


def test_undo_moves_a_branch_that_is_not_checked_out_any_more(world: World):
    server, clone = world.pair()
    old = clone.head
    server.commit()
    world.run()
    clone.git("switch", "-q", "-c", "feature")
    assert world.run("undo").code == 0
    assert (clone.git("rev-parse", "main"), clone.branch) == (old, "feature")


def test_the_list_has_runs_and_what_moved(world: World):
    server, clone = world.pair()
    old, new = clone.head, server.commit()
    run = world.run().json["run"]
    (entry,) = world.run("undo", "--list").json["runs"]
    assert (entry["run"], entry["name"], entry["state"]) == (run, "a", "update")
    assert {"ref": "refs/heads/main", "old": old, "new": new} in entry["moves"]
    assert run in world.run("undo", "--list", json=False).out


def test_a_list_without_runs_says_so(world: World):
    world.pair()
    assert world.run("undo", "--list", json=False).out == "No run is recorded.\n"


def test_every_ref_is_kept_before_it_moves(world: World):
    server, clone = world.pair()
    old = clone.head
    server.commit()
    run = world.run().json["run"]
    kept = {ref: clone.git("rev-parse", ref) for ref in clone.kept()}
    prefix = f"refs/update-repos/{run}"
    assert kept == {f"{prefix}/heads/main": old, f"{prefix}/remotes/origin/main": old}


def test_undo_restores_the_remote_tracking_ref_that_a_plan_moved(world: World):
    server, clone = world.pair()
    old, new = clone.head, server.commit()
    assert world.run("--plan").code == 0
    assert (clone.git("rev-parse", "origin/main"), len(clone.kept())) == (new, 1)
    # It is no run that somebody wants undone; by its name it can be.
    assert world.run("undo").code == 2
    (run,) = world.run("undo", "--list").json["runs"]
    assert world.run("undo", run["run"]).code == 0
    assert clone.git("rev-parse", "origin/main") == old


@pytest.mark.parametrize("fetch", [["--plan"], []], ids=["plan", "skipped"])
def test_runs_that_only_fetched_displace_no_others(world: World, fetch: list[str]):
    server, clone = world.pair()
    world.settings["keep_runs"] = 2
    before = clone.everything()
    server.commit("README", "theirs\n")
    assert world.run().code == 0
    if not fetch:
        clone.write("README", "mine\n")
    for number in range(3):
        server.commit("README", f"{number}\n")
        world.run(*fetch)
    runs = world.run("undo", "--list").json["runs"]
    assert len(runs) == len({ref.split("/")[2] for ref in clone.kept()}) == 3
    clone.git("checkout", "-q", "README")
    assert world.run("undo").code == 0
    tracking = "refs/remotes/origin/main"
    before["refs"] |= {tracking: clone.refs()[tracking]}
    assert clone.everything() == before


def test_old_runs_are_forgotten_by_count(world: World):
    server, clone = world.pair()
    world.settings["keep_runs"] = 2
    runs = []
    for _ in range(3):
        server.commit()
        runs.append(world.run().json["run"])
    assert {ref.split("/")[2] for ref in clone.kept()} == set(runs[1:])
    assert {run["run"] for run in world.run("undo", "--list").json["runs"]} == set(runs[1:])


def test_a_run_that_another_worktree_records_is_not_forgotten(world: World):
    server, clone = world.pair("a")
    linked = world.repo(clone.path.parent / "linked")
    clone.git("worktree", "add", "-q", "-b", "topic", str(linked.path))
    world.table["b"] = {**world.table["a"], "path": str(linked.path)}
    world.settings["keep_runs"] = 1
    old = linked.head
    server.commit()
    run = world.run("b", "--rebase").json["run"]
    for _ in range(2):
        server.commit()
        assert world.run("a").code == 0
    assert old in clone.git("for-each-ref", "--format=%(objectname)", f"refs/update-repos/{run}")
    world.run("undo", run)
    assert linked.head == old


def test_undo_names_a_damaged_repository_and_restores_the_others(world: World):
    server_a, a = world.pair("a")
    server_b, b = world.pair("b")
    before = b.everything()
    server_a.commit()
    server_b.commit()
    world.run()
    a.write(".git/HEAD", "")
    ran = world.run("undo")
    assert (ran.code, b.everything()) == (1, before)
    assert "does not accept it as a repository" in ran.one("a")["reason"]


def test_a_checkout_whose_git_folder_is_elsewhere_is_restored(world: World):
    server, clone = world.pair()
    clone.git("init", "-q", f"--separate-git-dir={world.folder / 'git'}")
    old = clone.head
    server.commit()
    assert world.run().code == 0
    assert world.run("undo").code == 0
    assert clone.head == old


def test_an_interrupt_lets_the_undo_of_one_repository_end_and_begins_no_other(world: World):
    server_a, a = world.pair("a")
    server_b, b = world.pair("b")
    old_a, old_b = a.head, b.head
    new = server_a.commit()
    server_b.commit()
    assert world.run().code == 0
    b.hook("post-checkout", "kill -INT $(cut -d ' ' -f 4 /proc/$PPID/stat)")
    ran = world.run("undo")
    assert (ran.code, a.head, b.head) == (130, new, old_b)
    assert ran.one("a")["reason"] == "interrupted before it was begun"
    assert world.run("undo").code == 0
    assert a.head == old_a
