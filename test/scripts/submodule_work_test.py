"""Local work in submodules stops an update, and is never overwritten."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from test.scripts.nests import Nest, add, bump
from test.scripts.world import Repo, World

pytest_plugins = ["test.scripts.nests"]


def _changed(nest: Nest) -> None:
    nest.in_middle.write("README", "mine\n")


def _changed_below(nest: Nest) -> None:
    nest.in_leaf.write("README", "mine\n")


def _staged(nest: Nest) -> None:
    _changed(nest)
    nest.in_middle.git("add", "README")


def _unpushed(nest: Nest) -> None:
    nest.in_middle.commit("mine")


def _unpushed_below(nest: Nest) -> None:
    nest.in_leaf.commit("mine")


def _another_commit(nest: Nest) -> None:
    nest.in_middle.git("switch", "-q", "--detach", "HEAD~1")


def _bisect(nest: Nest) -> None:
    nest.in_middle.git("bisect", "start")


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (_changed, "submodule middle has changes"),
        (_changed_below, "submodule middle has changes"),
        (_staged, "submodule middle has changes"),
        (_unpushed, "submodule middle has unpushed commits"),
        (_unpushed_below, "submodule middle has changes"),
        (_another_commit, "is at another commit than recorded"),
        (_bisect, "submodule middle bisect in progress"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_local_work_in_a_submodule_stops_its_repository(
    world: World, nest: Nest, work: Callable[[Nest], None], reason: str
):
    work(nest)
    head = nest.clone.head
    before = [repo.everything() for repo in (nest.in_middle, nest.in_leaf)]
    nest.advance()
    ran = world.run()
    assert (ran.code, ran.one()["status"], nest.clone.head) == (1, "skipped", head)
    assert reason in ran.one()["reason"]
    assert [repo.everything() for repo in (nest.in_middle, nest.in_leaf)] == before


def _make_folder_in(nest: Nest) -> None:
    nest.top.write("middle/file", "now a folder\n")


def _make_link_in(nest: Nest) -> None:
    (nest.top.path / "middle").symlink_to("README")


def _make_file_in(nest: Nest) -> None:
    nest.top.write("middle", "now a file\n")


@pytest.mark.parametrize(
    "replace", [_make_file_in, _make_link_in, _make_folder_in], ids=lambda x: x.__name__
)
@pytest.mark.parametrize("holds", ["ignored", "untracked", "embedded"])
def test_a_submodule_that_becomes_something_else_is_not_removed_with_what_is_in_it(
    world: World, nest: Nest, replace: Callable[[Nest], None], holds: str
):
    if holds == "ignored":
        git_dir = Path(nest.in_middle.git("rev-parse", "--absolute-git-dir"))
        (git_dir / "info" / "exclude").write_text("precious\n")
    if holds == "embedded":
        _embed(nest)
    else:
        nest.in_middle.write("precious", "mine\n")
    nest.top.git("rm", "-q", "-r", "middle")
    replace(nest)
    nest.top.git("add", "-A")
    nest.top.git("commit", "-q", "-m", "no submodule any more")
    before, files = nest.in_middle.everything(), nest.clone.files()
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "skipped")
    assert "middle" in ran.one()["files"][0]
    assert (nest.in_middle.everything(), nest.clone.files()) == (before, files)


def _embed(nest: Nest) -> None:
    """Gives the submodule a .git folder of its own, with a branch that is nowhere else."""
    git_dir = Path(nest.in_middle.git("rev-parse", "--absolute-git-dir"))
    (nest.in_middle.path / ".git").unlink()
    git_dir.rename(nest.in_middle.path / ".git")
    nest.clone.git("config", "--file", "middle/.git/config", "--unset", "core.worktree")
    nest.in_leaf.write(".git", "gitdir: ../.git/modules/leaf\n")
    leaf = "middle/.git/modules/leaf/config"
    nest.clone.git("config", "--file", leaf, "core.worktree", "../../../leaf")
    nest.in_middle.git("switch", "-q", "-c", "mine")
    nest.in_middle.commit("mine")
    nest.in_middle.git("switch", "-q", "--detach", "mine~1")


def test_untracked_files_in_a_submodule_stay_beside_its_move(world: World, nest: Nest):
    nest.in_middle.write("mine", "mine\n")
    new = nest.advance()
    assert world.run().code == 0
    assert (nest.in_middle.head, nest.in_middle.read("mine")) == (new[1], "mine\n")


@pytest.mark.parametrize("work", [_changed, _changed_below, _staged, _unpushed, _bisect])
def test_local_work_in_a_submodule_that_upstream_does_not_touch_does_not_matter(
    world: World, nest: Nest, work: Callable[[Nest], None]
):
    work(nest)
    before = [repo.everything() for repo in (nest.in_middle, nest.in_leaf)]
    new = nest.top.commit("unrelated")
    assert (world.run().code, nest.clone.head) == (0, new)
    assert [repo.everything() for repo in (nest.in_middle, nest.in_leaf)] == before


def test_ignored_files_in_a_submodule_are_not_overwritten(world: World, nest: Nest):
    git_dir = nest.in_middle.git("rev-parse", "--absolute-git-dir")
    Path(git_dir, "info", "exclude").write_text("theirs\n")
    nest.in_middle.write("theirs", "precious\n")
    nest.middle.commit("theirs")
    bump(nest.top, "middle")
    ran = world.run()
    assert (ran.code, nest.in_middle.read("theirs")) == (1, "precious\n")
    assert "submodule middle: in the way: theirs" in ran.one()["reason"]


def test_own_commits_of_a_submodule_that_comes_back_are_kept(world: World):
    inner, top = world.server("inner"), world.server("a")
    add(top, inner, "inner")
    clone = world.clone(top, "a", "--recursive")
    below = world.repo(clone.path / "inner")
    top.git("rm", "-q", "inner")
    top.git("commit", "-q", "-m", "remove")
    assert world.run().code == 0
    mine = below.commit("mine")
    shutil.rmtree(below.path)
    top.git("revert", "--no-edit", "HEAD")
    assert world.run().code == 0
    assert mine in below.git("for-each-ref", "refs/update-repos", "--format=%(objectname)")


@pytest.mark.parametrize("work", [_changed, _unpushed], ids=lambda x: x.__name__)
def test_local_work_in_a_submodule_that_status_is_set_to_ignore_stops_its_repository(
    world: World, nest: Nest, work: Callable[[Nest], None]
):
    work(nest)
    nest.clone.git("config", "submodule.middle.ignore", "all")
    head, before = nest.clone.head, nest.in_middle.everything()
    nest.advance()
    ran = world.run()
    assert (ran.code, ran.one()["status"], nest.clone.head) == (1, "skipped", head)
    assert nest.in_middle.everything() == before


def _stage_in_old(below: Repo) -> None:
    below.write("README", "staged alone\n")
    below.git("add", "README")
    below.write("README", "later\n")


def _merge_in_old(below: Repo) -> None:
    below.git("switch", "-q", "-c", "topic")
    below.commit("file", "mine\n")
    below.git("switch", "-q", "--detach", "HEAD~1")
    below.git("merge", "-q", "--no-ff", "--no-commit", "topic")


@pytest.mark.parametrize("work", [_stage_in_old, _merge_in_old], ids=lambda x: x.__name__)
@pytest.mark.parametrize("is_there", [True, False])
def test_a_submodule_with_the_name_of_one_that_is_gone_does_not_take_its_git_folder(
    world: World, work: Callable[[Repo], None], is_there: bool
):
    inner, top = world.server("inner"), world.server("a")
    add(top, inner, "inner")
    clone = world.clone(top, "a", "--recursive")
    below = world.repo(clone.path / "inner")
    top.git("rm", "-q", "inner")
    top.git("commit", "-q", "-m", "remove")
    assert world.run().code == 0
    work(below)
    before = below.everything()
    place = below.path if is_there else below.path.rename(world.folder / "aside")
    shutil.rmtree(top.path / ".git" / "modules" / "inner")
    top.git("submodule", "--quiet", "add", "--name", "inner", f"file://{inner.path}", "other")
    top.git("commit", "-q", "-m", "at another path")
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "failed")
    assert "modules/inner" in ran.one()["reason"]
    if not is_there:
        place.rename(below.path)
    assert below.everything() == before
