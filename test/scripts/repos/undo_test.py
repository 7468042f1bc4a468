"""`undo` restores all that a run changed, and touches nothing that a person did since."""

from pathlib import Path

import pytest

from scripts.repos.model import Entry, Repo, Run, Status
from scripts.repos.run import guarded
from test.scripts.repos.world import World


def test_undo_restores_all_of_a_run(world: World):
    pairs = [world.pair(name) for name in "ab"]
    for server, _ in pairs:
        server.commit()
    olds = [clone.head for _, clone in pairs]
    assert world.run().code == 0
    ran = world.run("undo")
    assert [r["status"] for r in ran.json["repositories"]] == ["undone", "undone"]
    assert (ran.code, [clone.head for _, clone in pairs]) == (0, olds)


def test_undo_names_a_run_and_the_list_has_what_moved(world: World):
    server, clone = world.pair()
    heads, runs = [clone.head], []
    for _ in range(2):
        heads.append(server.commit())
        runs.append(world.run().json["run"])
    listed = world.run("undo", "--list").json["runs"]
    assert [(r["run"], r["name"]) for r in listed] == [(run, "a") for run in runs[::-1]]
    assert (listed[1]["ref"], listed[1]["old"], listed[1]["new"]) == ("refs/heads/main", *heads[:2])
    assert runs[0] in world.run("undo", "--list", json=False).out
    assert (world.run("undo", runs[1]).code, clone.head) == (0, heads[1])
    assert (world.run("undo").code, clone.head) == (0, heads[0])
    assert world.run("undo").code == 2


@pytest.mark.nightly
def test_an_undo_can_be_undone_by_its_name(world: World):
    server, clone = world.pair()
    server.commit()
    world.run()
    after = clone.everything()
    world.run("undo")
    (undo,) = [run["run"] for run in world.run("undo", "--list").json["runs"]]
    assert (world.run("undo", undo).code, clone.everything()) == (0, after)


def test_undo_leaves_a_branch_that_has_moved_since(world: World):
    server, clone = world.pair()
    server.commit()
    world.run()
    mine = clone.commit("mine")
    ran = world.run("undo")
    assert (ran.code, clone.head, "has moved since" in ran.one()["reason"]) == (1, mine, True)


@pytest.mark.parametrize("hidden", ["", "exclude file; "])
def test_undo_leaves_local_work_that_is_in_the_way(world: World, hidden: str):
    server, clone = world.pair(files={"file": "theirs\n"})
    server.git("rm", "-q", "file")
    server.git("commit", "-q", "-m", "remove")
    world.run()
    clone.shell(f"{hidden}echo precious > file")
    before = clone.everything()
    ran = world.run("undo")
    assert (ran.code, clone.everything()) == (1, before)
    assert "in the way: file" in ran.one()["reason"]


@pytest.mark.nightly
def test_undo_asks_for_a_switch_where_the_branch_is_not_checked_out_any_more(world: World):
    server, clone = world.pair()
    old = clone.head
    server.commit()
    world.run()
    clone.git("switch", "-q", "-c", "feature")
    ran = world.run("undo")
    assert (ran.code, ran.one()["remedy"]) == (1, [f"git -C {clone.path} switch main"])
    clone.shell(ran.one()["remedy"][0])
    assert (world.run("undo").code, clone.head) == (0, old)


@pytest.mark.nightly
def test_undo_does_not_move_a_branch_that_is_rebased(world: World):
    server, clone = world.pair()
    server.commit("p")
    server.commit("q")
    assert world.run().code == 0
    clone.git("-c", "sequence.editor=sed -i 1s/pick/edit/", "rebase", "-q", "-i", "HEAD~1")
    old = clone.git("rev-parse", "main")
    ran = world.run("undo")
    assert (ran.code, clone.git("rev-parse", "main")) == (1, old)
    assert ran.one()["reason"] == "rebase in progress"


@pytest.mark.nightly
def test_old_runs_are_forgotten_by_count_except_those_of_other_worktrees(world: World):
    server, clone = world.pair()
    tree = world.repo(clone.path.parent / "tree")
    clone.git("worktree", "add", "-q", "-b", "topic", str(tree.path))
    world.table["b"] = {**world.table["a"], "path": str(tree.path)}
    server.commit()
    runs = [world.run("b", "--rebase").json["run"]]
    old = {f"20260101T00000{n // 10}-{n % 10}" for n in range(20)}
    for run in old:
        for key in ("old", "new"):
            clone.git("update-ref", f"refs/update-repos/{run}/-/{key}/heads/main", "HEAD")
    runs.append(world.run("a").json["run"])
    left = {*runs, *sorted(old)[1:]}
    assert {ref.split("/")[2] for ref in clone.kept()} == left
    assert {run["run"] for run in world.run("undo", "--list").json["runs"]} == left


@pytest.mark.nightly
def test_a_damaged_repository_is_named_and_the_others_are_undone(world: World):
    (server, sound), (other, broken) = world.pair("sound"), world.pair("broken")
    old = sound.head
    for changed in (server, other):
        changed.commit()
    world.run()
    broken.write(".git/HEAD", "")
    ran = world.run("undo")
    assert (ran.code, sound.head) == (1, old)
    assert "does not accept it as a checkout" in ran.one("broken")["reason"]


def test_a_fault_of_our_own_ends_one_repository_and_not_the_run():
    ended = guarded(lambda repo, run: [][0], Repo(Entry("a"), Path("/")), Run("now"))
    assert ended.status is Status.FAILED
    assert ended.reason == "internal error, IndexError: list index out of range"
