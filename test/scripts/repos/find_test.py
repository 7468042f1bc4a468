"""Where repositories are found, and which are refused by name."""

import shlex
from pathlib import Path

import pytest

from test.scripts.repos.world import Ran, World


def _run(world: World) -> Ran:
    return world.run("--dry-run")


def test_a_configured_path_comes_first(world: World):
    world.unconfigured("usual")
    other = world.unconfigured("other")
    world.table["a"]["path"] = str(other.path)
    one = _run(world).one()
    assert (one["path"], one["found"]) == (str(other.path), "configured")


@pytest.mark.parametrize("place", ["usual", "../usual", "inner/usual"])
def test_usual_places_around_the_project_come_next(world: World, place: str):
    clone = world.unconfigured(place, folders=["usual", "inner/usual"])
    one = _run(world).one()
    assert Path(one["path"]).samefile(clone.path)
    assert one["found"] == "usual place"


@pytest.mark.parametrize("usual", ["empty", "something else"])
def test_others_are_found_by_the_address_of_a_remote(world: World, usual: str):
    if usual != "empty":
        world.init(world.folder / "src" / "usual")
    clone = world.unconfigured("my-own-name")
    one = _run(world).one()
    assert (one["path"], one["found"]) == (str(clone.path), "by its remote")
    assert "my-own-name (by its remote)" in world.run("--dry-run", json=False).out


def test_what_has_the_upstream_as_a_submodule_is_not_taken_for_it(world: World):
    clone = world.unconfigured("deep/er/than/that/clone")
    outer = world.init(world.folder / "src" / "outer")
    outer.git("submodule", "--quiet", "add", clone.git("config", "remote.origin.url"), "inner")
    assert _run(world).one()["status"] == "missing"


def test_a_usual_place_without_the_remote_is_taken_when_there_is_no_other(world: World):
    clone = world.unconfigured("usual")
    clone.git("remote", "remove", "origin")
    one = _run(world).one()
    assert (one["path"], one["status"]) == (str(clone.path), "skipped")
    assert "no remote is file://" in one["reason"]


def test_a_worktree_is_found_by_the_address_of_its_repository(world: World):
    clone = world.unconfigured("deep/er/than/that/clone")
    clone.git("worktree", "add", "-q", str(world.folder / "src" / "tree"))
    assert _run(world).one()["path"] == str(world.folder / "src" / "tree")


def test_one_that_is_nowhere_is_missing_with_the_command_that_clones_it(world: World):
    world.table["a"] = {"upstream": ["https://example.invalid/me/a.git"], "folders": ["a"]}
    ran = _run(world)
    assert (ran.code, ran.one()["status"]) == (1, "missing")
    assert "git clone --recursive https://example.invalid/me/a.git" in ran.one()["remedy"][0]


def test_the_absence_of_an_optional_one_is_no_error(world: World):
    world.table["a"] = {"upstream": ["https://example.invalid/a.git"], "optional": True}
    ran = _run(world)
    assert (ran.code, ran.one()["status"]) == (0, "absent")


def test_a_path_without_a_repository_is_a_usage_error(world: World):
    world.table["a"] = {"path": str(world.folder)}
    ran = _run(world)
    assert ran.code == 2
    assert "is no git repository" in ran.err


@pytest.mark.parametrize("place", ["a", "a/.bare"])
def test_a_bare_repository_is_refused_by_name(world: World, place: str):
    clone = world.clone(world.server("a"), place, "--bare")
    world.table = {"a": {**world.table[place], "path": str(world.folder / "src" / "a")}}
    if place != "a":
        clone.path.with_name(".git").write_text("gitdir: ./.bare\n")
    ran = _run(world)
    assert (ran.code, clone.kept()) == (1, [])
    assert "a bare repository" in ran.one()["reason"]


def test_a_worktree_of_a_bare_repository_is_updated(world: World):
    server = world.server("a")
    bare = world.clone(server, "a.git", "--bare")
    bare.git("worktree", "add", "-q", "../tree", "main")
    entry = world.table.pop("a.git")
    world.table["a"] = {**entry, "path": str(bare.path.parent / "tree")}
    new = server.commit()
    assert world.run().code == 0
    assert bare.git("rev-parse", "main") == new


def test_a_repository_whose_files_are_elsewhere_is_refused_by_name(world: World):
    server, clone = world.pair()
    elsewhere = world.repo(world.folder / "elsewhere")
    elsewhere.write("README", clone.read("README"))
    clone.git("config", "core.worktree", "../../../elsewhere")
    server.commit()
    ran = _run(world)
    assert (ran.code, list(elsewhere.files())) == (1, ["README"])
    assert f"its files are in {elsewhere.path}" in ran.one()["reason"]


def test_a_submodule_is_refused_by_name(world: World):
    server = world.server("a")
    outer = world.init(world.folder / "src" / "outer")
    outer.add_submodule(server, "inner")
    inner = outer.path / "inner"
    world.table["a"] = {"path": str(inner), "upstream": [f"file://{server.path}"]}
    one = _run(world).one()
    assert one["status"] == "skipped"
    assert f"a submodule of {outer.path}" in one["reason"]


def test_a_repository_without_commits_is_refused_by_name(world: World):
    _, clone = world.pair()
    clone.git("switch", "-q", "--orphan", "nothing")
    assert "no commit on the current branch" in _run(world).one()["reason"]


def test_a_damaged_repository_is_refused_and_the_others_go_on(world: World):
    _, clone = world.pair("a")
    server, other = world.pair("b")
    new = server.commit()
    (clone.path / ".git" / "HEAD").write_text("")
    ran = world.run()
    assert (ran.code, ran.one("a")["status"]) == (1, "skipped")
    assert "does not accept it as a repository" in ran.one("a")["reason"]
    assert other.head == new


@pytest.mark.parametrize("name", ["a b", "a\nb", "a'$(id)", "a\u2028b", "-a"])
def test_unusual_names_of_folders_do_no_harm(world: World, name: str):
    server = world.server("a")
    clone = world.clone(server, f"./{name}")
    clone.git("worktree", "add", "-q", "-b", "other", str(world.folder / "src" / f"{name} tree"))
    world.table = {"a": world.table.pop(f"./{name}")}
    new = server.commit()
    ran = world.run()
    assert (ran.code, clone.head) == (0, new)
    assert ran.json["next"] == [f"cd {shlex.quote(str(clone.path))} && make"]
    assert world.run("undo").code == 0
    world.table["a"]["path"] = str(world.folder / "src" / f"{name} tree")
    assert world.run().one()["branch"] == "other"


@pytest.mark.parametrize("where", ["local", "global", "included"])
def test_an_address_that_git_rewrites_is_found(world: World, where: str):
    clone = world.unconfigured("my-own-name")
    url = clone.git("config", "remote.origin.url")
    clone.git("remote", "set-url", "origin", "up:a")
    included = clone.write(".git/more", "")
    words = {"local": ("--local",), "global": ("--global",), "included": ("--file", str(included))}
    clone.git("config", *words[where], f"url.{url[:-1]}.insteadOf", "up:")
    if where == "included":
        clone.git("config", "include.path", "more")
    one = _run(world).one()
    assert (one["path"], one["found"]) == (str(clone.path), "by its remote")


def test_a_remote_in_an_included_file_is_found(world: World):
    clone = world.unconfigured("my-own-name")
    url = clone.git("remote", "get-url", "origin")
    clone.git("config", "--file", ".git/more", "remote.mine.url", url)
    clone.git("remote", "remove", "origin")
    clone.git("config", "include.path", "more")
    assert _run(world).one()["path"] == str(clone.path)
