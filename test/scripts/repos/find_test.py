"""Where repositories are found, and which are refused by name."""

from pathlib import Path

import pytest

from bazel.pytest_plugin import mostly_nightly
from test.scripts.repos.world import Ran, World, needs_rights


def _run(world: World) -> Ran:
    return world.run("--dry-run")


def test_a_configured_path_comes_first(world: World):
    world.unconfigured("usual")
    other = world.unconfigured("other")
    world.table["a"]["path"] = str(other.path)
    one = _run(world).one()
    assert (one["path"], one["found"]) == (str(other.path), "configured")


@pytest.mark.parametrize(
    "place", mostly_nightly(["usual", "../usual", "inner/usual"], ["../usual"])
)
def test_usual_places_around_the_project_come_next(world: World, place: str):
    clone = world.unconfigured(place, folders=["usual", "inner/usual"])
    one = _run(world).one()
    assert (Path(one["path"]).samefile(clone.path), one["found"]) == (True, "usual place")


def test_others_are_found_by_the_address_of_a_remote(world: World):
    world.init(world.folder / "src" / "usual")
    clone = world.unconfigured("my-own-name")
    outer = world.init(world.folder / "src" / "a-outer")
    outer.git("submodule", "--quiet", "add", clone.git("config", "remote.origin.url"), "inner")
    one = _run(world).one()
    assert (one["path"], one["found"]) == (str(clone.path), "by its remote")


@pytest.mark.nightly
def test_a_usual_place_without_the_remote_is_taken_when_there_is_no_other(world: World):
    clone = world.unconfigured("usual")
    clone.git("remote", "remove", "origin")
    one = _run(world).one()
    assert (one["path"], one["status"]) == (str(clone.path), "skipped")
    assert "no remote is file://" in one["reason"]


@pytest.mark.nightly
def test_a_worktree_is_found_by_the_address_of_its_repository(world: World):
    clone = world.unconfigured("deep/er/than/that/clone")
    clone.git("worktree", "add", "-q", str(world.folder / "src" / "tree"))
    assert _run(world).one()["path"] == str(world.folder / "src" / "tree")


@pytest.mark.parametrize("optional", mostly_nightly([False, True], [False]))
def test_one_that_is_nowhere_is_named_with_the_command_that_clones_it(world: World, optional: bool):
    url = "https://example.invalid/me/a.git"
    world.table["a"] = {"upstream": [url], "folders": ["a"], "optional": optional}
    ran = _run(world)
    ends = (0, "absent") if optional else (1, "missing")
    assert (ran.code, ran.one()["status"]) == ends
    place = world.folder / "src" / "a"
    assert ran.one()["remedy"] == [f"git clone --recursive {url} {place}"]


@pytest.mark.nightly
def test_a_path_without_a_repository_is_named(world: World):
    world.table["a"] = {"path": str(world.folder)}
    one = _run(world).one()
    assert (one["status"], "is no checkout" in one["reason"]) == ("missing", True)


def test_repositories_that_cannot_be_updated_are_refused_by_name_and_others_go_on(world: World):
    server, clone = world.pair()
    new = server.commit()
    world.clone(server, "bare", "--bare")
    elsewhere = world.clone(server, "elsewhere")
    (world.folder / "files").mkdir()
    elsewhere.git("config", "core.worktree", str(world.folder / "files"))
    outer = world.init(world.folder / "src" / "outer")
    outer.add_submodule(server, "inner")
    url = world.table["a"]["upstream"]
    world.table["inner"] = {"path": str(outer.path / "inner"), "upstream": url}
    world.clone(server, "empty").git("switch", "-q", "--orphan", "nothing")
    damaged = world.clone(server, "damaged")
    damaged.write(".git/index", b"DIRC no index\n")
    nothing = world.clone(server, "nothing")
    nothing.write(".git/HEAD", "")
    ran = world.run()
    assert (ran.code, clone.head) == (1, new)
    said = {
        "bare": "is no checkout",
        "elsewhere": f"its files are in {world.folder / 'files'}",
        "inner": f"a submodule of {outer.path}",
        "empty": "no commit on the current branch",
        "damaged": "index file",
        "nothing": "git does not accept it as a checkout",
    }
    for name, words in said.items():
        status = {"damaged": "failed", "bare": "missing"}.get(name, "skipped")
        assert (ran.one(name)["status"], words in ran.one(name)["reason"]) == (status, True)
    # What could be read of it is shown.
    assert ran.one("damaged")["branch"] == "main"


@pytest.mark.nightly
def test_a_worktree_of_a_bare_repository_and_a_git_folder_elsewhere_are_updated(world: World):
    server, clone = world.pair()
    clone.git("init", "-q", f"--separate-git-dir={world.folder / 'git'}")
    bare = world.clone(server, "b", "--bare", branch="main")
    tree = world.repo(world.folder / "src" / "tree")
    bare.git("worktree", "add", "-q", str(tree.path), "main")
    world.table["b"]["path"] = str(tree.path)
    old, new = clone.head, server.commit()
    assert (world.run().code, clone.head, tree.head) == (0, new, new)
    assert (world.run("undo").code, clone.head, tree.head) == (0, old, old)


@needs_rights
@pytest.mark.parametrize("words", mostly_nightly([["status"], ["undo", "--list"]], [["status"]]))
def test_neighbours_that_may_not_be_read_or_are_damaged_are_ignored(world: World, words: list[str]):
    world.unconfigured("my-own-name")
    for name, content in (("usual", "\0" * 60), ("next", "junk\xff"), ("third", "gitdir: ")):
        (world.folder / "src" / name).mkdir()
        (world.folder / "src" / name / ".git").write_text(content)
    (world.folder / "src" / "lost+found").mkdir(mode=0)
    ran = world.run(*words, as_a_user=True)
    assert (ran.code, ran.err) == (0, "")
