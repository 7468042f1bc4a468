"""What git or a hook does wrong while a branch moves: nothing stays half done."""

from pathlib import Path

import pytest

from test.scripts.world import Repo, World

_MISSING = "git-lfs-that-is-missing"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def _hook(clone: Repo, name: str, text: str) -> None:
    clone.write(f".git/hooks/{name}", f"#!/bin/sh\n{text}\n").chmod(0o755)


def _needs_filter(clone: Repo) -> None:
    for verb in ("smudge", "clean"):
        clone.git("config", f"filter.lfs.{verb}", f"{_MISSING} {verb} -- %f")
    clone.git("config", "filter.lfs.required", "true")


@pytest.fixture
def clone(world: World) -> Repo:
    """A clone with news that change, add and remove files, and known here already."""
    server = world.server("a")
    for name in ("changed", "removed", "z"):
        server.commit(name)
    clone = world.clone(server, "a")
    server.git("rm", "-q", "removed")
    server.commit("deep/er/added")
    server.commit("changed")
    server.commit(".gitattributes", "*.bin filter=lfs\n")
    server.write("file.bin", "large\n")
    server.commit("z")
    server.git("add", "file.bin")
    server.git("commit", "-q", "-m", "large")
    world.run("--plan")
    return clone


def test_a_filter_that_is_missing_changes_nothing(world: World, clone: Repo):
    _needs_filter(clone)
    before = clone.everything()
    ran = world.run()
    assert (ran.code, ran.one()["status"], clone.everything()) == (1, "failed", before)
    assert "smudge filter lfs failed" in ran.one()["reason"]
    assert not (clone.path / "deep").exists()


def test_a_locked_branch_changes_nothing(world: World, clone: Repo):
    clone.write(".git/refs/heads/main.lock", "")
    before = clone.everything()
    ran = world.run()
    assert (ran.code, ran.one()["status"], clone.everything()) == (1, "failed", before)


def test_an_undo_that_git_refuses_changes_nothing(world: World, clone: Repo):
    assert world.run().code == 0
    before = clone.everything()
    clone.write(".git/refs/heads/main.lock", "")
    ran = world.run("undo")
    assert (ran.code, ran.one()["status"], clone.everything()) == (1, "failed", before)


@pytest.mark.parametrize("how", ["", "--rebase"])
def test_a_hook_that_fails_after_the_move_is_reported_and_stops_nothing(
    world: World, clone: Repo, how: str
):
    if how:
        clone.git("switch", "-q", "-c", "feature")
        clone.commit("mine")
    before = clone.everything()
    for name in ("post-checkout", "post-merge"):
        _hook(clone, name, "echo git-lfs was not found >&2; exit 2")
    ran = world.run(*([how] if how else []))
    assert (ran.code, ran.one()["status"]) == (0, "updated")
    ran = world.run("undo")
    assert (ran.code, clone.everything()) == (0, before)
    assert any("a hook failed: git-lfs was not found" in note for note in ran.one()["notes"])


def test_a_hook_that_refuses_a_rebase_is_reported_and_changes_nothing(world: World, clone: Repo):
    clone.git("switch", "-q", "-c", "feature")
    clone.commit("mine")
    world.run()
    before = clone.everything()
    _hook(clone, "pre-rebase", "exit 1")
    ran = world.run("--rebase")
    assert (ran.code, ran.one()["status"], clone.everything()) == (1, "failed", before)
    assert "pre-rebase hook refused" in ran.one()["reason"]


def test_commits_that_cannot_be_signed_are_not_made(world: World, clone: Repo):
    clone.git("switch", "-q", "-c", "feature")
    clone.commit("mine")
    world.run()
    clone.git("config", "commit.gpgSign", "true")
    clone.git("config", "gpg.program", "/no/such/program")
    before = clone.everything()
    ran = world.run("--merge")
    assert (ran.code, ran.one()["status"], clone.everything()) == (1, "failed", before)


def test_a_process_that_a_hook_leaves_behind_delays_nothing(
    world: World, clone: Repo, tmp_path: Path
):
    # The hook's child holds its output open until the test ends, which is when we have ended.
    ended = tmp_path / "ended"
    _hook(clone, "post-merge", f"(while [ ! -e {ended} ]; do sleep 0.1; done) &")
    try:
        assert world.run().code == 0
    finally:
        ended.touch()


def test_a_commit_made_while_a_rebase_is_prepared_stays(world: World, clone: Repo):
    clone.git("switch", "-q", "-c", "feature")
    clone.commit("mine")
    late = f"unset $(git rev-parse --local-env-vars); cd '{clone.path}'"
    _hook(clone, "pre-rebase", f"{late} && git commit -q --allow-empty -m late")
    assert world.run("--rebase").one()["status"] == "failed"
    assert clone.git("log", "-1", "--format=%s") == "late"
    assert clone.git("status", "--porcelain") == ""


def test_a_record_that_cannot_be_written_after_the_move_hides_nothing(world: World, clone: Repo):
    before = clone.everything()
    _hook(clone, "post-merge", 'for f in .git/update-repos/*.json; do mkdir "${f%json}new"; done')
    ran = world.run()
    assert (ran.code, ran.one()["status"], ran.one()["new"]) == (1, "failed", clone.head)
    (clone.path / ".git" / "update-repos" / f"{ran.json['run']}.new").rmdir()
    assert world.run("undo", ran.json["run"]).code == 0
    assert clone.everything() == before


def test_a_branch_that_was_checked_out_meanwhile_stays(world: World, clone: Repo):
    clone.git("switch", "-q", "-c", "feature")
    mine = clone.commit("mine")
    clone.git("branch", "other")
    late = f"unset $(git rev-parse --local-env-vars); cd '{clone.path}'"
    _hook(clone, "pre-rebase", f"{late} && git switch -q other")
    ran = world.run("--rebase")
    assert ran.one()["status"] == "failed"
    assert "another branch was checked out meanwhile" in ran.one()["reason"]
    assert (clone.head, clone.branch, clone.git("rev-parse", "feature")) == (mine, "other", mine)
