"""Submodules that a run left behind, and clones that stopped half-way: later runs go on."""

import shutil

import pytest

from test.scripts.nests import Nest, add, bump
from test.scripts.world import Repo, World, wait_for_orphans

pytest_plugins = ["test.scripts.nests"]


def test_submodules_that_could_not_be_fetched_are_taken_up_by_the_next_run(
    world: World, nest: Nest
):
    new = nest.advance()
    nest.middle.path.rename(nest.middle.path.with_name("away"))
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "failed")
    assert ran.one()["remedy"] == ["scripts/update_repos.py a"]
    nest.middle.path.with_name("away").rename(nest.middle.path)
    assert world.run().code == 0
    assert (nest.clone.head, nest.in_middle.head, nest.in_leaf.head) == new


def test_submodules_left_behind_are_taken_up_after_other_runs(world: World, nest: Nest):
    nest.advance()
    away = nest.middle.path.rename(nest.middle.path.with_name("away"))
    assert world.run().one()["status"] == "failed"
    # A later run that keeps a record of its own, and does not come to the submodules.
    nest.clone.write("README", "mine\n")
    new = nest.top.commit("README", "theirs\n")
    assert world.run().one()["status"] == "skipped"
    nest.clone.git("checkout", "-q", "README")
    away.rename(nest.middle.path)
    assert world.run().code == 0
    assert (nest.clone.head, nest.in_middle.head) == (new, nest.middle.head)
    assert nest.clone.git("status", "--porcelain") == ""
    assert not (nest.clone.path / ".git" / "update-repos" / "state.json").exists()


def test_a_submodule_that_a_person_moved_meanwhile_is_theirs(world: World, nest: Nest):
    nest.advance()
    away = nest.middle.path.rename(nest.middle.path.with_name("away"))
    assert world.run().one()["status"] == "failed"
    away.rename(nest.middle.path)
    nest.in_middle.git("switch", "-q", "-c", "mine")
    mine = nest.in_middle.commit("mine")
    assert world.run().code == 0
    assert (nest.in_middle.head, nest.in_middle.branch) == (mine, "mine")


def test_undo_of_a_run_that_left_submodules_behind(world: World, nest: Nest):
    before = [repo.everything() for repo in (nest.clone, nest.in_middle, nest.in_leaf)]
    nest.advance()
    away = nest.middle.path.rename(nest.middle.path.with_name("away"))
    first = world.run().json["run"]
    away.rename(nest.middle.path)
    second = world.run().json["run"]
    assert world.run("undo", second).code == 0
    # As the first run left it: not local work, but still to be done.
    assert world.run("status").one()["local"]["submodules"] == []
    assert world.run("undo", first).code == 0
    assert [repo.everything() for repo in (nest.clone, nest.in_middle, nest.in_leaf)] == before


def test_undo_names_a_submodule_that_is_at_another_commit_since(world: World, nest: Nest):
    nest.advance()
    away = nest.middle.path.rename(nest.middle.path.with_name("away"))
    assert world.run().one()["status"] == "failed"
    away.rename(nest.middle.path)
    assert world.run().code == 0
    mine = nest.in_middle.commit("mine")
    ran = world.run("undo")
    assert (ran.code, nest.in_middle.head) == (1, mine)
    assert any("it is not where the run left it" in note for note in ran.one()["notes"])


def test_undo_of_a_run_that_moved_two_submodules_which_another_had_left_behind(world: World):
    top = world.server("a")
    inner = [world.server(name) for name in ("first", "second")]
    for server in inner:
        add(top, server, server.path.name)
    clone = world.clone(top, "a", "--recursive")
    for server in inner:
        server.commit()
        bump(top, server.path.name)
    away = [
        server.path.rename(server.path.with_name(f"{server.path.name}-away")) for server in inner
    ]
    assert world.run().one()["status"] == "failed"
    for folder, server in zip(away, inner, strict=True):
        folder.rename(server.path)
    assert world.run().code == 0
    assert world.run("undo").code == 0
    # Both are where the first run left them: not local work, but still to be done.
    assert world.run("status").one()["local"]["submodules"] == []
    assert world.run().code == 0
    assert clone.git("status", "--porcelain") == ""


def _add_unpublished(top: Repo, inner: Repo) -> str:
    """Adds a submodule whose recorded commit is not on its server yet; returns the commit."""
    add(top, inner, "s")
    commit = Repo(top.path / "s", top.environ).commit("later")
    top.git("commit", "-q", "-a", "-m", "not published")
    return commit


def _publish(top: Repo) -> None:
    top.git("-C", "s", "push", "-q", "origin", "HEAD:refs/heads/later")


def test_a_clone_that_is_still_to_be_made_does_not_overwrite_files_of_the_user(world: World):
    inner, (top, clone) = world.server("inner"), world.pair()
    commit = _add_unpublished(top, inner)
    assert world.run().one()["status"] == "failed"
    shutil.rmtree(clone.path / "s")
    clone.write("s/README", "mine\n")
    _publish(top)
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "failed")
    assert "submodule s: in the way of its clone: README" in ran.one()["reason"]
    assert clone.files()["s/README"] == b"mine\n"
    (clone.path / "s" / "README").rename(clone.path / "mine")
    assert (world.run().code, world.repo(clone.path / "s").head) == (0, commit)


def test_undo_names_a_submodule_that_it_cannot_remove(world: World):
    inner, (top, clone) = world.server("inner"), world.pair()
    _add_unpublished(top, inner)
    assert world.run().one()["status"] == "failed"
    shutil.rmtree(clone.path / "s")
    clone.write("s/README", "mine\n")
    ran = world.run("undo")
    assert (ran.code, ran.one()["status"], clone.read("s/README")) == (1, "undone", "mine\n")
    assert "s stays: its folder is not empty" in ran.one()["notes"][0]
    assert ran.one()["reason"].endswith(", except what the notes name")


@pytest.mark.parametrize("is_published", [False, True])
def test_a_clone_of_a_submodule_that_stopped_half_way_is_finished_by_a_later_run(
    world: World, is_published: bool
):
    leaf, inner, (top, clone) = world.server("leaf"), world.server("inner"), world.pair()
    add(inner, leaf, "leaf")
    commit = _add_unpublished(top, inner)
    for _ in range(2):
        ran = world.run()
        assert (ran.code, ran.one()["status"]) == (1, "failed")
    below = world.repo(clone.path / "s")
    if is_published:
        # As git leaves it when it is killed while it writes files.
        below.write("README", "first\n")
        below.write("later", "lat")
    else:
        shutil.rmtree(below.path)
    _publish(top)
    assert world.run().code == 0
    assert (below.head, below.git("status", "--porcelain")) == (commit, "")
    assert (below.path / "leaf" / "README").exists()
    assert clone.git("status", "--porcelain") == ""


def test_a_clone_that_stopped_half_way_keeps_what_the_user_wrote_there(world: World):
    inner, (top, clone) = world.server("inner"), world.pair()
    _add_unpublished(top, inner)
    assert world.run().one()["status"] == "failed"
    clone.write("s/README", "mine\n")
    _publish(top)
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "failed")
    assert "README" in ran.one()["reason"]
    assert clone.read("s/README") == "mine\n"


# Ends its caller while it writes the files of a submodule.
_ENDS_ITS_CALLER = """\
#!/bin/sh
caller=$PPID
while ! grep -qs update_repos.py /proc/$caller/cmdline; do
    caller=$(cut -d " " -f 4 /proc/$caller/stat)
done
kill -{signal} $caller
[ {signal} = INT ] && exec sleep 60
kill -KILL 0
"""


@pytest.mark.parametrize("signal", ["INT", "KILL"])
def test_a_clone_whose_submodules_were_interrupted_is_finished_by_the_next_run(
    world: World, signal: str
):
    inner, server = world.server("inner"), world.server("a")
    inner.commit(".gitattributes", "large filter=slow\n")
    inner.commit("large")
    inner.commit("z")
    add(server, inner, "inner")
    clone = world.clone(server, "a")
    shutil.rmtree(clone.path)
    program = world.folder / "program"
    program.write_text(_ENDS_ITS_CALLER.format(signal=signal))
    program.chmod(0o755)
    setting = {"GIT_CONFIG_KEY_0": "filter.slow.smudge", "GIT_CONFIG_VALUE_0": str(program)}
    ran = world.run("--clone", GIT_CONFIG_COUNT="1", **setting)
    assert ran.code == (130 if signal == "INT" else -9)
    wait_for_orphans(clone.path)
    below = world.repo(clone.path / "inner")
    (below.path.parent / ".git/modules/inner/index.lock").unlink(missing_ok=True)
    assert not (below.path / "z").exists()
    assert world.run().code == 0
    assert (below.head, below.git("status", "--porcelain")) == (inner.head, "")
