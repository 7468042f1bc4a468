"""Local work in submodules stops an update, and is never overwritten."""

import contextlib
import shutil

import pytest

from test.scripts.repos.nests import Nest
from test.scripts.repos.world import World

# Local work in submodules, as shell commands.
_CHANGED, _UNPUSHED = "echo mine > middle/README", "cd middle; commit mine"
_STAGED = "cd middle; echo mine > README; git add README"
_CHANGED_BELOW, _BISECT = "echo mine > middle/leaf/README", "git -C middle bisect start"


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (_CHANGED, "submodule middle has changes"),
        (_CHANGED_BELOW, "submodule middle has changes"),
        (_STAGED, "submodule middle has changes"),
        (_UNPUSHED, "submodule middle has unpushed commits"),
        ("cd middle/leaf; commit mine", "submodule middle has changes"),
        ("git -C middle switch -q --detach HEAD~1", "is at another commit than recorded"),
        (_BISECT, "submodule middle bisect in progress"),
    ],
)
def test_local_work_in_a_submodule_stops_its_repository(
    world: World, nest: Nest, work: str, reason: str
):
    nest.clone.shell(work)
    head = nest.clone.head
    before = [repo.everything() for repo in (nest.in_middle, nest.in_leaf)]
    nest.advance()
    ran = world.run()
    assert (ran.code, ran.one()["status"], nest.clone.head) == (1, "skipped", head)
    assert reason in ran.one()["reason"]
    assert [repo.everything() for repo in (nest.in_middle, nest.in_leaf)] == before


# Gives the submodule a .git folder of its own, with a branch that is nowhere else.
_EMBED = """
own_git_folder middle
echo gitdir: ../.git/modules/leaf > middle/leaf/.git
git config -f middle/.git/modules/leaf/config core.worktree ../../../leaf
cd middle; git switch -q -c mine; commit mine; git switch -q --detach mine~1
"""


@pytest.mark.parametrize(
    "replace", ["echo new > middle", "ln -s README middle", "mkdir middle; echo new > middle/file"]
)
@pytest.mark.parametrize("holds", ["ignored", "untracked", "embedded"])
def test_a_submodule_that_becomes_something_else_is_not_removed_with_what_is_in_it(
    world: World, nest: Nest, replace: str, holds: str
):
    if holds == "ignored":
        nest.in_middle.shell("exclude precious")
    if holds == "embedded":
        nest.clone.shell(_EMBED)
    else:
        nest.in_middle.write("precious", "mine\n")
    nest.top.shell(f"git rm -qr middle; {replace}; git add -A; git commit -qm replaced")
    before, files = nest.in_middle.everything(), nest.clone.files()
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "skipped")
    assert "middle" in ran.one()["files"][0]
    assert (nest.in_middle.everything(), nest.clone.files()) == (before, files)


def test_untracked_files_in_a_submodule_stay_beside_its_move(world: World, nest: Nest):
    nest.in_middle.write("mine", "mine\n")
    new = nest.advance()
    assert world.run().code == 0
    assert (nest.in_middle.head, nest.in_middle.read("mine")) == (new[1], "mine\n")


@pytest.mark.parametrize("work", [_CHANGED, _CHANGED_BELOW, _STAGED, _UNPUSHED, _BISECT])
def test_local_work_in_a_submodule_that_upstream_does_not_touch_does_not_matter(
    world: World, nest: Nest, work: str
):
    nest.clone.shell(work)
    before = [repo.everything() for repo in (nest.in_middle, nest.in_leaf)]
    new = nest.top.commit("unrelated")
    assert (world.run().code, nest.clone.head) == (0, new)
    assert [repo.everything() for repo in (nest.in_middle, nest.in_leaf)] == before


def test_ignored_files_in_a_submodule_are_not_overwritten(world: World, nest: Nest):
    nest.in_middle.shell("exclude theirs")
    nest.in_middle.write("theirs", "precious\n")
    nest.middle.commit("theirs")
    nest.top.bump("middle")
    ran = world.run()
    assert (ran.code, nest.in_middle.read("theirs")) == (1, "precious\n")
    assert "submodule middle: in the way: theirs" in ran.one()["reason"]


def test_own_commits_of_a_submodule_that_comes_back_are_kept(world: World, nest: Nest):
    nest.top.shell("git rm -q middle; git commit -qm remove")
    assert world.run().code == 0
    mine = nest.in_middle.commit("mine")
    shutil.rmtree(nest.in_middle.path)
    nest.top.git("revert", "--no-edit", "HEAD")
    assert world.run().code == 0
    assert mine in nest.in_middle.git("for-each-ref", "refs/update-repos", "--format=%(objectname)")


@pytest.mark.parametrize("work", [_CHANGED, _UNPUSHED])
def test_local_work_in_a_submodule_that_status_is_set_to_ignore_stops_its_repository(
    world: World, nest: Nest, work: str
):
    nest.clone.shell(work)
    nest.clone.git("config", "submodule.middle.ignore", "all")
    head, before = nest.clone.head, nest.in_middle.everything()
    nest.advance()
    ran = world.run()
    assert (ran.code, ran.one()["status"], nest.clone.head) == (1, "skipped", head)
    assert nest.in_middle.everything() == before


@pytest.mark.parametrize(
    "work",
    [
        "echo staged > README; git add README; echo later > README",
        "git switch -qc topic; commit file; git switch -q --detach HEAD~1;"
        " git merge -q --no-ff --no-commit topic",
    ],
)
@pytest.mark.parametrize("is_there", [True, False])
def test_a_submodule_with_the_name_of_one_that_is_gone_does_not_take_its_git_folder(
    world: World, nest: Nest, work: str, is_there: bool
):
    nest.top.shell("git rm -q middle; git commit -qm remove")
    assert world.run().code == 0
    nest.in_middle.shell(work)
    before = nest.in_middle.everything()
    nest.top.shell(f"""
        rm -r .git/modules/middle
        git submodule --quiet add --name middle file://{nest.middle.path} other
        git commit -qm "at another path"
    """)
    with contextlib.nullcontext() if is_there else nest.in_middle.gone():
        ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "failed")
    assert "modules/middle" in ran.one()["reason"]
    assert nest.in_middle.everything() == before
