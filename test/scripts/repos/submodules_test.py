"""Submodules follow after the branch moved, recursively; undo restores them."""

import shutil

import pytest

from test.scripts.repos.nests import Nest
from test.scripts.repos.world import Repo, World


def test_submodules_follow_recursively_and_undo_restores_them(world: World, nest: Nest):
    before = [repo.everything() for repo in (nest.clone, nest.in_middle, nest.in_leaf)]
    new = nest.advance()
    assert world.run().code == 0
    assert (nest.clone.head, nest.in_middle.head, nest.in_leaf.head) == new
    assert nest.clone.git("status", "--porcelain") == ""
    assert world.run("undo").code == 0
    assert [repo.everything() for repo in (nest.clone, nest.in_middle, nest.in_leaf)] == before


def test_undo_restores_the_branch_of_a_submodule(world: World, nest: Nest):
    nest.in_middle.git("switch", "-q", "main")
    nest.advance()
    assert world.run().code == 0
    assert nest.in_middle.branch == "HEAD"
    assert world.run("undo").code == 0
    assert nest.in_middle.branch == "main"


def test_a_hook_that_fails_in_a_submodule_stops_nothing(world: World, nest: Nest):
    new = nest.advance()
    nest.in_middle.hook("post-checkout", "exit 2")
    assert world.run().code == 0
    assert (nest.clone.head, nest.in_middle.head, nest.in_leaf.head) == new
    assert world.run("undo").code == 0


def test_a_checkout_that_fails_in_a_submodule_leaves_what_is_not_its_own(world: World, nest: Nest):
    nest.leaf.commit(".gitattributes", "*.bin filter=bad\n")
    nest.leaf.commit("added")
    nest.leaf.commit("file.bin")
    nest.advance()
    # As a person who works there at that moment.
    smudge = "[ -e README ] || exec cat; echo mine > added; exit 1"
    nest.in_leaf.git("config", "filter.bad.smudge", smudge)
    nest.in_leaf.git("config", "filter.bad.required", "true")
    old = nest.in_leaf.head
    assert world.run().one()["status"] == "failed"
    assert (nest.in_leaf.head, nest.in_leaf.read("added")) == (old, "mine\n")


def test_the_old_commit_of_a_submodule_is_kept_in_it(world: World, nest: Nest):
    old = nest.in_leaf.head
    nest.advance()
    world.run()
    (kept,) = nest.in_leaf.kept()
    assert nest.in_leaf.git("rev-parse", kept) == old


def test_the_old_commits_of_submodules_are_forgotten_with_their_runs(world: World, nest: Nest):
    world.settings["keep_runs"] = 1
    for _ in range(2):
        nest.advance()
        assert world.run().code == 0
    kept = [ref for repo in (nest.clone, nest.in_middle, nest.in_leaf) for ref in repo.kept()]
    assert len({ref.split("/")[2] for ref in kept}) == 1


def test_a_new_submodule_is_cloned_with_what_is_in_it_and_undo_takes_it_away(
    world: World, nest: Nest
):
    before = nest.clone.everything()
    nest.top.add_submodule(nest.middle, "second")
    assert world.run().code == 0
    assert (nest.clone.path / "second" / "leaf" / "README").exists()
    assert world.run("undo").code == 0
    assert nest.clone.everything() == before


_HIDE, _CHANGE = "git update-index --skip-worktree README", "echo mine > README"
_ASSUME = "git update-index --assume-unchanged README"


@pytest.mark.parametrize(
    "work",
    [
        "echo mine > mine",
        "exclude mine; echo mine > mine",
        f"{_HIDE}; {_CHANGE}",
        f"{_ASSUME}; {_CHANGE}",
        f"{_HIDE}; rm README",
        f"cd leaf; {_HIDE}; {_CHANGE}",
        f"git sparse-checkout set --no-cone '/*' '!/.gitmodules'; {_ASSUME}; {_CHANGE}",
        # A recorded commit that no .gitmodules names, with a clone of the user's at its place.
        "rm leaf/.git; git rm -q --cached leaf; git init -q leaf; (cd leaf; commit mine);"
        " git add leaf; git commit -qm mine",
    ],
)
def test_undo_leaves_a_new_submodule_in_which_a_person_works(world: World, nest: Nest, work: str):
    nest.top.add_submodule(nest.middle, "second")
    assert world.run().code == 0
    inner = world.repo(nest.clone.path / "second")
    inner.shell(work)
    before = inner.everything()
    ran = world.run("undo")
    assert (ran.code, inner.everything()) == (1, before)
    assert any("second stays" in note for note in ran.one()["notes"])


def test_a_new_submodule_is_left_out_where_others_are(world: World):
    leaf, top = world.server("leaf"), world.server("a")
    top.add_submodule(leaf, "first")
    clone = world.clone(top, "a")
    top.add_submodule(leaf, "second")
    ran = world.run()
    assert ran.code == 0
    assert list((clone.path / "first").iterdir()) == []
    assert list((clone.path / "second").iterdir()) == []
    assert f"git -C {clone.path} submodule update --init -- second" in ran.one()["notes"][0]


def test_a_submodule_that_is_gone_upstream_stays_and_is_named(world: World, nest: Nest):
    nest.top.git("rm", "-q", "middle")
    nest.top.git("commit", "-q", "-m", "remove")
    ran = world.run()
    assert ran.one()["status"] == "updated"
    assert (nest.in_middle.path / "README").exists()
    assert any("its folder stays" in note for note in ran.one()["notes"])


def test_a_submodule_set_to_another_kind_of_update_is_left_alone(world: World, nest: Nest):
    nest.clone.git("config", "submodule.middle.update", "none")
    old = nest.in_middle.head
    nest.advance()
    ran = world.run()
    assert nest.in_middle.head == old
    assert "submodule.middle.update is none" in ran.one()["reason"]


def test_the_submodules_of_a_feature_branch_follow(world: World, nest: Nest):
    nest.clone.commit_on_feature()
    _, middle, leaf = nest.advance()
    assert world.run("--rebase").code == 0
    assert (nest.in_middle.head, nest.in_leaf.head) == (middle, leaf)


@pytest.mark.nightly
def test_two_hundred_submodules_follow(world: World):
    leaf = world.server("leaf")
    first, second = leaf.head, leaf.commit()
    top = world.server("a")
    modules = "".join(
        f'[submodule "m{i}"]\n\tpath = m{i}\n\turl = file://{leaf.path}\n' for i in range(200)
    )
    top.write(".gitmodules", modules)
    _record(top, first)
    clone = world.clone(top, "a")
    _populate(clone, leaf)
    _record(top, second)
    assert world.run().code == 0
    heads = {world.repo(clone.path / f"m{i}").git("rev-parse", "HEAD") for i in (0, 99, 199)}
    assert heads == {second}
    assert clone.git("status", "--porcelain") == ""


def _record(top: Repo, commit: str) -> None:
    top.git("add", ".gitmodules")
    entries = [f"160000 {commit}\tm{i}\n" for i in range(200)]
    top.git("update-index", "--index-info", text="".join(entries))
    top.git("commit", "-q", "-m", "record")


def _populate(clone: Repo, leaf: Repo) -> None:
    """As `git submodule update --init` leaves it, in a tenth of its time."""
    lines = (clone.path / ".git" / "config").read_text()
    clone.git("submodule", "--quiet", "update", "--init", "m0")
    first = clone.path / ".git" / "modules" / "m0"
    for i in range(200):
        lines += f'[submodule "m{i}"]\n\tactive = true\n\turl = file://{leaf.path}\n'
        if i:
            git_dir = clone.path / ".git" / "modules" / f"m{i}"
            shutil.copytree(first, git_dir)
            text = (git_dir / "config").read_text().replace("/m0\n", f"/m{i}\n")
            (git_dir / "config").write_text(text)
            shutil.copytree(clone.path / "m0", clone.path / f"m{i}", dirs_exist_ok=True)
        (clone.path / f"m{i}" / ".git").write_text(f"gitdir: ../.git/modules/m{i}\n")
    (clone.path / ".git" / "config").write_text(lines)


@pytest.mark.parametrize(
    "kind", ["echo new > middle", "ln -s README middle", "mkdir middle; echo new > middle/file"]
)
def test_a_submodule_whose_folder_is_empty_may_become_something_else(
    world: World, nest: Nest, kind: str
):
    nest.clone.git("submodule", "--quiet", "deinit", "middle")
    nest.top.shell(f"git rm -q middle; {kind}; git add -A; git commit -qm replaced")
    assert (world.run().code, nest.clone.head) == (0, nest.top.head)
    assert nest.clone.git("status", "--porcelain") == ""


def test_a_submodule_that_moves_to_another_address_is_fetched_from_there(world: World, nest: Nest):
    other = world.repo(world.folder / "servers" / "other")
    nest.leaf.git("clone", "-q", ".", str(other.path))
    new = other.commit("there alone")
    inner = Repo(nest.middle.path / "leaf", nest.middle.environ)
    inner.git("pull", "-q", f"file://{other.path}", "main")
    words = ("config", "--file", ".gitmodules", "submodule.leaf.url", f"file://{other.path}")
    nest.middle.git(*words)
    nest.middle.git("commit", "-q", "-a", "-m", "another address")
    nest.top.bump("middle")
    assert (world.run().code, nest.in_leaf.head) == (0, new)


# Ends its caller right after the settings of a new submodule are written.
_KILLER = 'case "$*" in *"submodule init"*) $git "$@"; kill -9 $PPID;; esac'


def test_undo_removes_the_settings_of_a_submodule_that_was_not_cloned(world: World, nest: Nest):
    nest.top.add_submodule(nest.leaf, "second")
    before = nest.clone.everything()
    assert world.run(**world.wrapped_git(_KILLER)).code == -9
    assert "submodule.second.url" in nest.clone.git("config", "--local", "--list")
    assert world.run("undo").code == 0
    assert nest.clone.everything() == before
