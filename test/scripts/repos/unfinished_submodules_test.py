"""Submodules that a run left behind, and clones that stopped half-way: later runs go on."""

import shutil

import pytest

from test.build.shell import program
from test.scripts.repos.nests import Nest
from test.scripts.repos.world import Repo, World, wait_for_orphans


def test_submodules_left_behind_are_taken_up_after_other_runs(world: World, nest: Nest):
    _, middle, leaf = nest.advance()
    with nest.middle.gone():
        ran = world.run()
        assert (ran.code, ran.one()["status"]) == (1, "failed")
        assert ran.one()["remedy"] == ["scripts/update_repos.py a"]
        # A later run that keeps a record of its own, and does not come to the submodules.
        nest.clone.write("README", "mine\n")
        new = nest.top.commit("README", "theirs\n")
        assert world.run().one()["status"] == "skipped"
    nest.clone.git("checkout", "-q", "README")
    assert world.run().code == 0
    assert (nest.clone.head, nest.in_middle.head, nest.in_leaf.head) == (new, middle, leaf)
    assert nest.clone.git("status", "--porcelain") == ""
    assert not (nest.clone.path / ".git" / "update-repos" / "state.json").exists()


def test_a_submodule_that_a_person_moved_meanwhile_is_theirs(world: World, nest: Nest):
    nest.advance()
    with nest.middle.gone():
        assert world.run().one()["status"] == "failed"
    nest.in_middle.git("switch", "-q", "-c", "mine")
    mine = nest.in_middle.commit("mine")
    assert world.run().code == 0
    assert (nest.in_middle.head, nest.in_middle.branch) == (mine, "mine")


def test_undo_of_a_run_that_left_submodules_behind(world: World, nest: Nest):
    before = [repo.everything() for repo in (nest.clone, nest.in_middle, nest.in_leaf)]
    nest.advance()
    with nest.middle.gone():
        first = world.run().json["run"]
    second = world.run().json["run"]
    assert world.run("undo", second).code == 0
    # As the first run left it: not local work, but still to be done.
    assert world.run("status").one()["local"]["submodules"] == []
    assert world.run("undo", first).code == 0
    assert [repo.everything() for repo in (nest.clone, nest.in_middle, nest.in_leaf)] == before


def test_undo_names_a_submodule_that_is_at_another_commit_since(world: World, nest: Nest):
    nest.advance()
    with nest.middle.gone():
        assert world.run().one()["status"] == "failed"
    assert world.run().code == 0
    mine = nest.in_middle.commit("mine")
    ran = world.run("undo")
    assert (ran.code, nest.in_middle.head) == (1, mine)
    assert any("it is not where the run left it" in note for note in ran.one()["notes"])


def test_undo_of_a_run_that_moved_two_submodules_which_another_had_left_behind(world: World):
    top, first, second = (world.server(name) for name in ("a", "first", "second"))
    for server in (first, second):
        top.add_submodule(server, server.path.name)
    clone = world.clone(top, "a", "--recursive")
    for server in (first, second):
        server.commit()
        top.bump(server.path.name)
    with first.gone(), second.gone():
        assert world.run().one()["status"] == "failed"
    assert world.run().code == 0
    assert world.run("undo").code == 0
    # Both are where the first run left them: not local work, but still to be done.
    assert world.run("status").one()["local"]["submodules"] == []
    assert world.run().code == 0
    assert clone.git("status", "--porcelain") == ""


def _add_unpublished(top: Repo, inner: Repo) -> str:
    """Adds a submodule whose recorded commit is not on its server yet; returns the commit."""
    top.add_submodule(inner, "s")
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
    inner.add_submodule(leaf, "leaf")
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
_ENDS_ITS_CALLER = """
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
    server.add_submodule(inner, "inner")
    clone = world.clone(server, "a")
    shutil.rmtree(clone.path)
    smudge = program(world.folder / "smudge", _ENDS_ITS_CALLER.format(signal=signal))
    setting = {"GIT_CONFIG_KEY_0": "filter.slow.smudge", "GIT_CONFIG_VALUE_0": str(smudge)}
    ran = world.run("--clone", GIT_CONFIG_COUNT="1", **setting)
    assert ran.code == (130 if signal == "INT" else -9)
    wait_for_orphans(clone.path)
    below = world.repo(clone.path / "inner")
    (below.path.parent / ".git/modules/inner/index.lock").unlink(missing_ok=True)
    assert not (below.path / "z").exists()
    assert world.run().code == 0
    assert (below.head, below.git("status", "--porcelain")) == (inner.head, "")
