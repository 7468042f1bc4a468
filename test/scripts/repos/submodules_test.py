"""Submodules follow after the branch moved, recursively; local work in them is never touched."""

import shutil

import pytest

from bazel.pytest_plugin import mostly_nightly
from test.scripts.repos.world import Nest, Repo, World


def _everything(nest: Nest) -> list[dict[str, object]]:
    return [repo.everything() for repo in (nest.clone, nest.in_middle, nest.in_leaf)]


def test_submodules_follow_recursively_and_undo_restores_them_and_their_branch(
    world: World, nest: Nest
):
    nest.in_middle.git("switch", "-q", "main")
    nest.in_middle.write("mine", "untracked\n")
    old = nest.in_middle.head
    new = nest.advance()
    nest.clone.git("fetch", "-q")
    before = _everything(nest)
    assert world.run().code == 0
    assert (nest.clone.head, nest.in_middle.head, nest.in_leaf.head) == new
    assert (nest.in_middle.branch, nest.clone.git("status", "--porcelain")) == ("HEAD", "M middle")
    (kept,) = nest.in_middle.kept()
    assert nest.in_middle.git("rev-parse", kept) == old
    assert world.run("undo").code == 0
    assert _everything(nest) == before


def test_a_new_submodule_is_cloned_with_what_is_in_it_and_undo_takes_it_away(
    world: World, nest: Nest
):
    nest.top.add_submodule(nest.middle, "second")
    nest.clone.git("fetch", "-q")
    before = nest.clone.everything()
    assert world.run().code == 0
    assert (nest.clone.path / "second" / "leaf" / "README").exists()
    assert world.run("undo").code == 0
    assert (nest.clone.everything(), nest.clone.git("status", "--porcelain")) == (before, "")
    assert world.run().code == 0
    assert (nest.clone.path / "second" / "leaf" / "README").exists()


_HIDE = "git update-index --skip-worktree README"


@pytest.mark.nightly
@pytest.mark.parametrize(
    "work",
    [
        "exclude mine; echo mine > mine",
        f"cd leaf; {_HIDE}; echo mine > README",
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


# Local work in submodules, and what is said of it.
_WORK = {
    "echo mine > middle/README": "submodule middle has changes",
    "echo mine > middle/leaf/README": "submodule middle has changes",
    "cd middle; commit mine": "submodule middle is at another commit than recorded",
    "git -C middle bisect start": "submodule middle bisect in progress",
    "git config submodule.middle.ignore all; echo mine > middle/README": "middle has changes",
}


@pytest.mark.nightly
@pytest.mark.parametrize("work", _WORK)
def test_local_work_in_a_submodule_stops_its_repository_if_upstream_moves_it(
    world: World, nest: Nest, work: str
):
    nest.clone.shell(work)
    before = [repo.everything() for repo in (nest.in_middle, nest.in_leaf)]
    head = nest.top.commit("unrelated")
    assert (world.run().code, nest.clone.head) == (0, head)
    nest.advance()
    ran = world.run()
    assert (ran.code, ran.one()["status"], nest.clone.head) == (1, "skipped", head)
    assert _WORK[work] in ran.one()["reason"]
    assert [repo.everything() for repo in (nest.in_middle, nest.in_leaf)] == before


_REPLACE = ["echo new > middle", "mkdir middle; echo new > middle/file"]


@pytest.mark.parametrize("replace", mostly_nightly(_REPLACE, _REPLACE[:1]))
@pytest.mark.parametrize("holds", mostly_nightly(["exclude precious", "own_git", ""], [""]))
def test_a_submodule_that_becomes_something_else_is_not_removed_with_what_is_in_it(
    world: World, nest: Nest, replace: str, holds: str
):
    if "own_git" in holds:
        nest.clone.shell("rm -r middle/leaf; mkdir middle/leaf; own_git_folder middle")
    else:
        nest.in_middle.shell(holds or "true")
        nest.in_middle.write("precious", "mine\n")
    nest.top.shell(f"git rm -qr middle; {replace}; git add -A; git commit -qm replaced")
    files = nest.clone.files()
    ran = world.run()
    assert (ran.code, ran.one()["status"], nest.clone.files()) == (1, "skipped", files)
    assert "middle" in ran.one()["files"][0]


@pytest.mark.nightly
def test_a_submodule_set_to_another_kind_of_update_is_left_alone(world: World, nest: Nest):
    nest.clone.git("config", "submodule.middle.update", "none")
    old = nest.in_middle.head
    nest.advance()
    ran = world.run()
    assert (nest.in_middle.head, "submodule.middle.update is none" in ran.one()["reason"]) == (
        old,
        True,
    )


@pytest.mark.nightly
def test_a_commit_that_only_another_address_has_is_fetched_from_there(world: World, nest: Nest):
    other = world.repo(world.folder / "servers" / "other")
    nest.leaf.git("clone", "-q", ".", str(other.path))
    new = other.commit("there alone")
    world.repo(nest.middle.path / "leaf").git("pull", "-q", f"file://{other.path}", "main")
    words = ("config", "--file", ".gitmodules", "submodule.leaf.url", f"file://{other.path}")
    nest.middle.git(*words)
    nest.middle.git("commit", "-q", "-a", "-m", "another address")
    nest.top.bump("middle")
    assert (world.run().code, nest.in_leaf.head) == (0, new)


@pytest.mark.nightly
def test_submodules_left_behind_are_taken_up_after_other_runs(world: World, nest: Nest):
    nest.clone.git("fetch", "-q")
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
    assert not (nest.clone.path / ".git" / "update-repos" / "state.json").exists()
    assert world.run("undo").code == 0
    before[0]["refs"]["refs/remotes/origin/main"] = nest.top.head  # type: ignore[index]
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
