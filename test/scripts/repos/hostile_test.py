"""Names that files rarely have, and two worktrees of one repository in one run or in two."""

import json
import subprocess

import pytest

from test.scripts.repos.checker import differences, losses
from test.scripts.repos.snapshots import snapshot
from test.scripts.repos.world import Repo, World

_NAMES = ("-dash", "--force", 'quo"te', "apo'strophe", "new\nline", "tab\tstop", "back\\slash")
_MORE_NAMES = ("ünï", "*", "[a]", ":(top)x", " blanks ", "\x1b[31mred", "byte\udcff")


def _commit_all(repo: Repo, content: str) -> None:
    for name in (*_NAMES, *_MORE_NAMES):
        repo.write(name, content)
    repo.git("add", "--all")
    repo.git("commit", "-q", "-m", content)


def _worktrees(world: World) -> tuple[Repo, Repo, Repo]:
    """A server, a clone, and a worktree of the clone with a commit on a branch of its own."""
    server, clone = world.pair("a")
    linked = world.repo(world.folder / "src" / "b")
    clone.git("worktree", "add", "-q", "-b", "topic", str(linked.path))
    linked.commit("own")
    world.table["b"] = {**world.table["a"], "path": str(linked.path)}
    server.commit()
    return server, clone, linked


def test_files_of_any_name_are_updated_and_restored(world: World):
    server, clone = world.pair('odd "name"\n-x $(y)')
    world.table = {"a": next(iter(world.table.values()))}
    _commit_all(server, "first")
    assert world.run().one()["status"] == "updated"
    before = snapshot(clone.path)
    _commit_all(server, "second")
    assert world.run().one()["status"] == "updated"
    assert clone.head == server.head
    assert world.run("undo").code == 0
    assert differences(before, snapshot(clone.path)) == []


@pytest.mark.parametrize("name", [*_NAMES, *_MORE_NAMES])
def test_a_file_of_any_name_that_is_in_the_way_is_named(world: World, name: str):
    server, clone = world.pair()
    _commit_all(server, "theirs")
    clone.write(name, "mine")
    before = snapshot(clone.path)
    one = world.run().one()
    assert (one["status"], one["files"]) == ("skipped", [name])
    assert differences(before, snapshot(clone.path), tracking=False) == []


def test_two_worktrees_are_updated_by_one_run(world: World):
    server, clone, linked = _worktrees(world)
    before = snapshot(world.folder / "src")
    assert [one["status"] for one in world.run("--rebase").json["repositories"]] == ["updated"] * 2
    assert clone.head == server.head
    assert linked.git("rev-parse", "HEAD~1") == server.head
    assert losses(before, snapshot(world.folder / "src")) == []
    assert world.run("undo").code == 0
    assert differences(before, snapshot(world.folder / "src")) == []


def test_two_runs_at_once_in_two_worktrees_lose_nothing(world: World):
    _, clone, linked = _worktrees(world)
    clone.write("mine")
    linked.write("mine, too")
    before = snapshot(world.folder / "src")
    calls = [
        subprocess.Popen(
            world.command(name, "--rebase", "--json"),
            env=world.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    outputs = [call.communicate() for call in calls]
    assert [error for _, error in outputs if "Traceback" in error] == []
    statuses = [json.loads(out)["repositories"][0]["status"] for out, _ in outputs]
    assert "updated" in statuses
    assert set(statuses) <= {"updated", "skipped"}
    assert losses(before, snapshot(world.folder / "src")) == []
