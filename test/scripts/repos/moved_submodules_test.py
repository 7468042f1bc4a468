"""Submodules that get another path or another address go on, with all that is in them."""

import pytest

from test.scripts.repos.checker import differences
from test.scripts.repos.nests import Nest
from test.scripts.repos.snapshots import snapshot
from test.scripts.repos.world import World


def _move(nest: Nest, to: str, *, and_bump: bool = False) -> None:
    nest.top.path.joinpath(to).parent.mkdir(parents=True, exist_ok=True)
    nest.top.git("mv", "middle", to)
    nest.top.git("commit", "-q", "-m", "move")
    if and_bump:
        nest.middle.commit()
        nest.top.bump(to)


@pytest.mark.parametrize("to", ["elsewhere", "third_party/deep/middle"])
@pytest.mark.parametrize("and_bump", [False, True])
def test_a_submodule_moves_with_what_is_in_it_and_undo_moves_it_back(
    world: World, nest: Nest, to: str, and_bump: bool
):
    nest.in_middle.write("untracked", "mine\n")
    nest.in_middle.git("branch", "topic")
    before = snapshot(nest.clone.path)
    _move(nest, to, and_bump=and_bump)
    nest.top.add_submodule(nest.leaf, "new")
    assert world.run().code == 0
    moved = world.repo(nest.clone.path / to)
    assert (moved.head, moved.read("untracked")) == (nest.middle.head, "mine\n")
    assert world.repo(moved.path / "leaf").git("status", "--porcelain") == ""
    assert nest.clone.git("status", "--porcelain", "--ignore-submodules=untracked") == ""
    assert (nest.clone.path / "new" / "README").exists()
    assert not nest.in_middle.path.exists()
    assert world.run().one()["status"] == "current"
    assert world.run("undo").code == 0
    assert differences(before, snapshot(nest.clone.path)) == []


_CHANGED, _COMMITTED = "echo mine > README", "git switch -qc mine; commit mine"


@pytest.mark.parametrize(
    "work",
    [_CHANGED, f"git update-index --skip-worktree README; {_CHANGED}", _COMMITTED],
)
def test_local_work_moves_with_a_submodule_whose_commit_stays(world: World, nest: Nest, work: str):
    nest.in_middle.shell(work)
    before = nest.in_middle.everything()
    _move(nest, "elsewhere")
    assert world.run().code == 0
    moved = world.repo(nest.clone.path / "elsewhere").everything()
    assert {**moved, "config": None} == {**before, "config": None}
    assert world.run("undo").code == 0
    assert nest.in_middle.everything() == before


@pytest.mark.parametrize("work", [_CHANGED, _COMMITTED])
def test_local_work_stops_a_submodule_that_gets_another_commit_too(
    world: World, nest: Nest, work: str
):
    nest.in_middle.shell(work)
    before, old = nest.in_middle.everything(), nest.clone.head
    _move(nest, "elsewhere", and_bump=True)
    ran = world.run()
    assert (ran.code, ran.one()["status"], nest.clone.head) == (1, "skipped", old)
    assert nest.in_middle.everything() == before


def test_a_submodule_moves_although_others_are_left_out(world: World, nest: Nest):
    nest.top.add_submodule(nest.leaf, "second")
    nest.clone.git("pull", "-q")
    _move(nest, "elsewhere")
    assert world.run().code == 0
    assert (nest.clone.path / "elsewhere" / "README").exists()


# Ends its caller when it corrects the paths of what was moved.
_KILLER = 'case "$*" in *"core.worktree ../"*) kill -9 $PPID;; esac'


@pytest.mark.parametrize("then", ["run", "undo"])
def test_a_run_that_is_killed_while_a_submodule_moves_is_finished_or_undone(
    world: World, nest: Nest, then: str
):
    before = nest.clone.everything(), nest.in_middle.everything()
    _move(nest, "elsewhere", and_bump=True)
    assert world.run(**world.wrapped_git(_KILLER)).code == -9
    assert not nest.in_middle.path.exists()
    if then == "run":
        assert world.run().code == 0
        assert world.repo(nest.clone.path / "elsewhere").head == nest.middle.head
        assert nest.clone.git("status", "--porcelain") == ""
    else:
        assert world.run("undo").code == 0
        assert (nest.clone.everything(), nest.in_middle.everything()) == before


def test_an_address_that_changes_is_written_where_the_old_one_was_and_undo_restores_it(
    world: World, nest: Nest
):
    nest.top.add_submodule(nest.leaf, "mine")
    nest.clone.git("pull", "-q")
    nest.clone.git("submodule", "--quiet", "update", "--init", "mine")
    nest.clone.git("config", "submodule.mine.url", "file:///a/mirror")
    other = world.folder / "servers" / "other"
    nest.middle.path.rename(other)
    before, inside = nest.clone.everything(), nest.in_middle.everything()
    for name in ("middle", "mine"):
        key = f"submodule.{name}.url"
        nest.top.git("config", "--file", ".gitmodules", key, f"file://{other}")
    nest.top.git("commit", "-q", "-a", "-m", "another address")
    assert world.run().code == 0
    urls = dict(line.split("=", 1) for line in nest.clone.git("config", "--list").split("\n"))
    assert urls["submodule.middle.url"] == f"file://{other}"
    assert urls["submodule.mine.url"] == "file:///a/mirror"
    nest.in_middle.git("fetch", "-q")
    nest.clone.git("pull", "-q", "--recurse-submodules")
    assert world.run("undo").code == 0
    assert (nest.clone.everything(), nest.in_middle.everything()) == (before, inside)


def test_a_relative_address_follows_the_remote_of_the_repository(world: World):
    leaf, top = world.server("leaf"), world.server("a")
    top.git("submodule", "--quiet", "add", "../leaf", "leaf")
    top.git("commit", "-q", "-m", "add")
    clone = world.clone(top, "a", "--recursive")
    leaf.path.rename(leaf.path.with_name("other"))
    top.git("config", "--file", ".gitmodules", "submodule.leaf.url", "../other")
    top.git("commit", "-q", "-a", "-m", "another address")
    assert world.run().code == 0
    url = f"file://{world.folder}/servers/other"
    assert clone.git("config", "submodule.leaf.url") == url
    assert world.repo(clone.path / "leaf").git("config", "remote.origin.url") == url
