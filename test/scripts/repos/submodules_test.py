"""Submodules follow after the branch moved, recursively; local work in them is never touched."""

import shutil

import pytest

from bazel.pytest_plugin import mostly_nightly
from test.scripts.repos import holdings
from test.scripts.repos.world import Nest, Repo, World


def _everything(nest: Nest) -> list[holdings.Holdings]:
    return [repo.everything() for repo in (nest.clone, nest.in_middle, nest.in_leaf)]


def test_submodules_follow_recursively_and_undo_restores_them_and_their_branch(
    world: World, nest: Nest
):
    nest.in_middle.git("switch", "-q", "main")
    nest.in_middle.write("mine", "untracked\n")
    old = nest.in_middle.head
    new = nest.advance()
    before = _everything(nest)
    assert world.run().code == 0
    assert (nest.clone.head, nest.in_middle.head, nest.in_leaf.head) == new
    assert (nest.in_middle.branch, nest.clone.git("status", "--porcelain")) == ("HEAD", "M middle")
    (kept,) = [ref for ref in nest.in_middle.kept() if ref.endswith("/old/heads/main")]
    assert nest.in_middle.git("rev-parse", kept) == old
    assert world.run("undo").code == 0
    assert _everything(nest) == before


def test_a_new_submodule_is_cloned_with_what_is_in_it_and_undo_takes_it_away(
    world: World, nest: Nest
):
    nest.top.add_submodule(nest.middle, "second")
    before = nest.clone.everything()
    assert world.run().code == 0
    assert (nest.clone.path / "second" / "leaf" / "README").exists()
    assert world.run("undo").code == 0
    assert (nest.clone.everything(), nest.clone.git("status", "--porcelain")) == (before, "")
    assert world.run().code == 0
    assert (nest.clone.path / "second" / "leaf" / "README").exists()


@pytest.mark.nightly
def test_undo_leaves_a_new_submodule_in_which_a_person_works(world: World, nest: Nest):
    nest.top.add_submodule(nest.middle, "second")
    assert world.run().code == 0
    inner = world.repo(nest.clone.path / "second")
    # A recorded commit that no .gitmodules names, with a clone of the user's at its place.
    inner.shell("rm leaf/.git; git rm -q --cached leaf; git init -q leaf; (cd leaf; commit mine)")
    inner.shell("git add leaf; git commit -qm mine")
    before = inner.everything()
    ran = world.run("undo")
    assert (ran.code, inner.everything()) == (1, before)
    assert "submodule second has local work and stays" in ran.one()["notes"]


@pytest.mark.nightly
def test_a_new_submodule_is_left_out_where_others_are(world: World):
    leaf, top = world.server("leaf"), world.server("a")
    top.add_submodule(leaf, "first")
    clone = world.clone(top, "a")
    top.add_submodule(leaf, "second")
    ran = world.run()
    assert (ran.code, list((clone.path / "second").iterdir())) == (0, [])
    assert f"git -C {clone.path} submodule update --init -- second" in ran.one()["notes"][0]


@pytest.mark.nightly
def test_a_submodule_that_is_gone_upstream_stays_and_its_commits_are_kept_when_it_comes_back(
    world: World, nest: Nest
):
    nest.top.shell("git rm -q middle; git commit -qm remove")
    ran = world.run()
    assert ran.one()["status"] == "updated"
    assert any("its folder stays" in note for note in ran.one()["notes"])
    mine = nest.in_middle.commit("mine")
    shutil.rmtree(nest.in_middle.path)
    nest.top.git("revert", "--no-edit", "HEAD")
    assert world.run().code == 0
    assert mine in nest.in_middle.git("for-each-ref", "refs/update-repos", "--format=%(objectname)")


@pytest.mark.nightly
def test_a_submodule_with_the_name_of_one_that_is_gone_does_not_take_its_git_folder(
    world: World, nest: Nest
):
    nest.top.shell("git rm -q middle; git commit -qm remove")
    assert world.run().code == 0
    before = nest.in_middle.everything()
    nest.top.shell(f"""
        rm -r .git/modules/middle
        git submodule --quiet add --name middle file://{nest.middle.path} other
        git commit -qm "at another path"
    """)
    ran = world.run()
    assert (ran.code, ran.one()["status"], nest.in_middle.everything()) == (1, "failed", before)
    assert "modules/middle belongs to the submodule that was at" in ran.one()["reason"]


def test_a_submodule_that_moves_is_refused_with_the_command_that_lets_the_update_go_on(
    world: World, nest: Nest
):
    nest.top.shell("git mv middle other; git commit -qm moved")
    before, new = _everything(nest)[1:], nest.top.head
    ran = world.run()
    assert (ran.code, ran.one()["status"], _everything(nest)[1:]) == (1, "skipped", before)
    command = ran.one()["reason"].partition("middle moves to other; first:  ")[2]
    nest.clone.shell(command)
    assert (world.run().code, nest.clone.head) == (0, new)


@pytest.mark.nightly
def test_local_work_in_a_submodule_stops_its_repository_if_upstream_moves_it(
    world: World, nest: Nest
):
    nest.clone.shell("git config submodule.middle.ignore all; echo mine > middle/leaf/README")
    head = nest.top.commit("unrelated")
    assert (world.run().code, nest.clone.head) == (0, head)
    nest.advance()
    ran = world.run()
    assert (ran.code, ran.one()["status"], nest.clone.head) == (1, "skipped", head)
    assert "submodule middle has changes" in ran.one()["reason"]


def test_a_submodule_that_becomes_a_file_is_not_removed_with_what_is_in_it(
    world: World, nest: Nest
):
    nest.in_middle.write("precious", "mine\n")
    nest.top.shell("git rm -qr middle; echo new > middle; git add -A; git commit -qm replaced")
    files = nest.clone.files()
    ran = world.run()
    assert (ran.code, ran.one()["status"], nest.clone.files()) == (1, "skipped", files)
    assert "middle" in ran.one()["files"][0]


@pytest.mark.nightly
def test_submodules_left_behind_are_taken_up_after_other_runs(world: World, nest: Nest):
    before = _everything(nest)
    _, middle, leaf = nest.advance()
    with nest.middle.gone():
        ran = world.run()
        assert (ran.code, ran.one()["status"]) == (1, "failed")
        assert ran.one()["remedy"] == ["scripts/update_repos.py a"]
        # What the run left undone is no local work.
        assert world.run("status").one()["local"]["submodules"] == {}
    assert world.run().code == 0
    assert (nest.in_middle.head, nest.in_leaf.head) == (middle, leaf)
    assert not any(ref.endswith("/left") for ref in nest.clone.kept())
    assert world.run("undo").code == 0
    assert _everything(nest) == before


@pytest.mark.nightly
def test_a_submodule_that_a_person_moved_meanwhile_is_theirs(world: World, nest: Nest):
    nest.advance()
    with nest.middle.gone():
        assert world.run().one()["status"] == "failed"
    mine = nest.in_middle.commit("mine")
    assert (world.run().code, nest.in_middle.head) == (0, mine)
    ran = world.run("undo")
    assert (ran.code, ran.one()["status"], nest.in_middle.head) == (1, "skipped", mine)


@pytest.mark.nightly
def test_a_clone_of_a_submodule_that_stopped_half_way_is_finished_and_keeps_files_of_the_user(
    world: World,
):
    inner, (top, clone) = world.server("inner"), world.pair()
    top.add_submodule(inner, "s")
    commit = Repo(top.path / "s", top.environ).commit("later")
    top.git("commit", "-q", "-a", "-m", "its commit is on no server yet")
    assert world.run().one()["status"] == "failed"
    below = world.repo(clone.path / "s")
    below.write("later", "mine\n")
    top.git("-C", "s", "push", "-q", "origin", "HEAD:refs/heads/later")
    assert world.run().code == 0
    assert (below.head, below.git("status", "--porcelain")) == (commit, "M later")
    assert (below.read("later"), (below.path / "README").exists()) == ("mine\n", True)


# Names and paths that lead out of a submodule's places; git refuses them, too.
_HOSTILE = [
    ("../../../victim/.git/modules/lib", "s"),
    ("a/../../../../victim/.git/modules/lib", "s"),
    ("..\\\\x", "s"),
    (".git", "s"),
    ("s", ".git/modules/x"),
    ("s", "../victim/lib"),
    ("s", "link/lib"),
]


@pytest.mark.parametrize(
    "case",
    mostly_nightly(
        [(*pair, is_known) for is_known in (True, False) for pair in _HOSTILE],
        [(*_HOSTILE[5], False)],
    ),
)
def test_a_submodule_whose_name_or_path_leads_elsewhere_is_refused(
    world: World, case: tuple[str, str, bool]
):
    name, path, is_known = case
    lib, server = world.server("lib"), world.server("a")
    old, new = lib.head, lib.commit()
    victim = world.init(world.folder / "src" / "victim")
    victim.add_submodule(lib, "lib")
    victim.shell("git -C lib checkout -q HEAD~1; echo mine > lib/precious")
    server.write(".gitmodules", f'[submodule "{name}"]\npath = {path}\nurl = file://{lib.path}\n')
    record = (
        "git add .gitmodules; git update-index --add --cacheinfo 160000,{},s; git commit -qm {}"
    )
    if is_known:
        server.shell(record.format(old, "first"))
    clone = world.clone(server, "a")
    (clone.path / "link").symlink_to(victim.path)
    server.shell("echo '# more' >> .gitmodules;" + record.format(new, "second"))
    before = clone.head, victim.everything(), world.repo(victim.path / "lib").everything()
    ran = world.run()
    assert (ran.code, ran.one()["status"], clone.head) == (1, "skipped", before[0])
    assert "has a name or path that leads elsewhere" in ran.one()["reason"]
    assert (victim.everything(), world.repo(victim.path / "lib").everything()) == before[1:]
