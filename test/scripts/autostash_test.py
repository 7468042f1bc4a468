"""--autostash: local changes are put aside and come back, staged ones staged."""

from pathlib import Path

import pytest

from test.scripts.world import Repo, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def clone(world: World) -> Repo:
    """A clone with a staged, an unstaged and an untracked change, and news from its server."""
    server = world.server("a")
    server.commit("one", "1\n2\n3\n4\n5\n6\n7\n8\n")
    server.commit("two", "two\n")
    clone = world.clone(server, "a")
    server.commit("one", "1\n2\n3\n4\n5\n6\n7\n8\ntheirs\n")
    clone.write("one", "mine\n1\n2\n3\n4\n5\n6\n7\n8\n")
    clone.write("two", "staged\n")
    clone.git("add", "two")
    clone.write("two", "and changed\n")
    clone.write("three", "untracked\n")
    return clone


def test_changes_come_back_as_they_were(world: World, clone: Repo):
    ran = world.run("--autostash")
    assert (ran.code, ran.one()["status"]) == (0, "updated")
    assert clone.read("one") == "mine\n1\n2\n3\n4\n5\n6\n7\n8\ntheirs\n"
    assert clone.git("show", ":two") == "staged"
    assert (clone.read("two"), clone.read("three")) == ("and changed\n", "untracked\n")
    assert clone.git("stash", "list") == ""


def test_other_stashes_stay(world: World, clone: Repo):
    clone.git("stash", "push", "-q", "-m", "earlier")
    earlier = clone.git("rev-parse", "stash@{0}")
    clone.write("one", "mine\n1\n2\n3\n4\n5\n6\n7\n8\n")
    assert world.run("--autostash").code == 0
    assert clone.git("stash", "list", "--format=%H") == earlier


def test_a_stash_that_does_not_fit_is_kept_and_named(world: World, clone: Repo):
    clone.write("one", "1\n2\n3\n4\n5\n6\n7\n8\nmine\n")
    ran = world.run("--autostash")
    assert (ran.code, ran.one()["status"]) == (1, "failed")
    assert "kept in stash@{0}" in ran.one()["reason"]
    assert any("stash pop --index 'stash@{0}'" in command for command in ran.one()["remedy"])
    assert clone.git("show", "stash@{0}:one").endswith("mine")
    assert clone.git("show", "stash@{0}^2:two") == "staged"
    # What was fetched is there, and the checkout is clean.
    assert clone.read("one").endswith("theirs\n")
    assert clone.git("status", "--porcelain") == "?? three"


def test_a_run_that_failed_after_it_moved_something_is_named(world: World, clone: Repo):
    clone.write("one", "1\n2\n3\n4\n5\n6\n7\n8\nmine\n")
    out = world.run("--autostash", json=False).out
    (run,) = {ref.split("/")[2] for ref in clone.kept()}
    assert f"To bring everything back:  scripts/update_repos.py undo {run}\n" in out


def test_undo_brings_back_commits_and_a_stash_that_did_not_fit(world: World, clone: Repo):
    clone.write("one", "1\n2\n3\n4\n5\n6\n7\n8\nmine\n")
    before = clone.everything()
    world.run("--autostash")
    assert world.run("undo").code == 0
    assert clone.everything() == before


def test_undo_carries_changes_over_that_came_back(world: World, clone: Repo):
    clone.write("one", "1\n2\n3\n4\n5\n6\n7\n8\n")
    before = clone.everything()
    assert world.run("--autostash").code == 0
    assert world.run("undo").code == 0
    assert clone.everything() == before


@pytest.mark.parametrize("how", ["rebase", "merge"])
def test_a_feature_branch_is_brought_along_beside_changes(world: World, clone: Repo, how: str):
    clone.git("switch", "-q", "-c", "feature")
    clone.git("stash", "push", "-q")
    clone.commit("mine")
    clone.git("stash", "pop", "-q", "--index")
    assert world.run("--autostash", f"--{how}").code == 0
    assert clone.read("one") == "mine\n1\n2\n3\n4\n5\n6\n7\n8\ntheirs\n"
    assert clone.git("show", ":two") == "staged"


def test_a_conflict_leaves_the_changes_where_they_are(world: World, clone: Repo):
    clone.git("switch", "-q", "-c", "feature")
    clone.git("stash", "push", "-q")
    clone.commit("one", "conflict\n")
    clone.git("stash", "pop", "-q", "--index", fails=True)
    clone.git("reset", "-q", "--merge")
    clone.git("stash", "drop", "-q")
    clone.write("two", "mine\n")
    files = clone.files()
    assert world.run("--autostash", "--rebase").one()["files"] == ["one"]
    assert clone.files() == files
    assert clone.git("stash", "list") == ""


def test_undo_brings_changes_back_that_were_merged_with_what_is_taken_away(
    world: World, clone: Repo
):
    before = clone.everything()
    assert world.run("--autostash").code == 0
    assert clone.read("one") == "mine\n1\n2\n3\n4\n5\n6\n7\n8\ntheirs\n"
    assert world.run("undo").code == 0
    assert clone.everything() == before


def test_undo_leaves_changes_that_were_made_since(world: World, clone: Repo):
    world.run("--autostash")
    clone.write("one", "mine\n1\n2\n3\n4\n5\n6\n7\n8\ntheirs\nlater\n")
    before = clone.everything()
    ran = world.run("undo")
    assert (ran.code, clone.everything()) == (1, before)
    assert "local changes in one" in ran.one()["reason"]
