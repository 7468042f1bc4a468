"""Local work is never touched: its repository is skipped, and the reason says why."""

from collections.abc import Callable
from pathlib import Path

import pytest

from test.scripts.world import Repo, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def _unstaged(clone: Repo) -> None:
    clone.write("README", "mine\n")


def _staged(clone: Repo) -> None:
    clone.write("README", "mine\n")
    clone.git("add", "README")


def _staged_and_changed_again(clone: Repo) -> None:
    _staged(clone)
    clone.write("README", "mine, later\n")


def _new_and_staged(clone: Repo) -> None:
    clone.write("mine")
    clone.git("add", "mine")


def _intent_to_add(clone: Repo) -> None:
    clone.write("mine")
    clone.git("add", "--intent-to-add", "mine")


def _deleted(clone: Repo) -> None:
    (clone.path / "README").unlink()


def _renamed(clone: Repo) -> None:
    clone.git("mv", "README", "README.md")


def _executable(clone: Repo) -> None:
    (clone.path / "README").chmod(0o755)


def _untracked(clone: Repo) -> None:
    clone.write("mine")


def _untracked_in_the_way(clone: Repo) -> None:
    clone.write("theirs", "mine\n")


def _ignored_in_the_way(clone: Repo) -> None:
    clone.write(".git/info/exclude", "theirs\n")
    clone.write("theirs", "precious\n")


def _ignored_folder_in_the_way(clone: Repo) -> None:
    clone.write(".git/info/exclude", "theirs\n")
    clone.write("theirs/deep/file", "precious\n")


def _ignored_file_where_a_folder_comes(clone: Repo) -> None:
    clone.write(".git/info/exclude", "folder\n")
    clone.write("folder", "precious\n")


def _ignored_link_where_a_folder_comes(clone: Repo) -> None:
    clone.write(".git/info/exclude", "folder\nelsewhere/\n")
    clone.write("elsewhere/file", "precious\n")
    (clone.path / "folder").symlink_to("elsewhere")


def _assumed_unchanged(clone: Repo) -> None:
    clone.git("update-index", "--assume-unchanged", "file")
    clone.write("file", "mine\n")


def _skip_worktree(clone: Repo) -> None:
    clone.git("update-index", "--skip-worktree", "file")
    clone.write("file", "mine\n")


def _locked_index(clone: Repo) -> None:
    clone.write(".git/index.lock", "")


def _merge(clone: Repo) -> None:
    clone.git("switch", "-q", "-c", "other")
    clone.commit("file", "other\n")
    clone.git("switch", "-q", "main")
    clone.commit("file", "mine\n")
    clone.git("merge", "-q", "other", fails=True)


def _rebase(clone: Repo) -> None:
    clone.git("switch", "-q", "-c", "other")
    clone.commit("file", "other\n")
    clone.git("switch", "-q", "main")
    clone.commit("file", "mine\n")
    clone.git("rebase", "-q", "other", fails=True)


def _cherry_pick(clone: Repo) -> None:
    clone.git("switch", "-q", "-c", "other")
    picked = clone.commit("file", "other\n")
    clone.git("switch", "-q", "main")
    clone.commit("file", "mine\n")
    clone.git("cherry-pick", picked, fails=True)


def _revert(clone: Repo) -> None:
    reverted = clone.commit("file", "one\n")
    clone.commit("file", "two\n")
    clone.git("revert", "--no-edit", reverted, fails=True)


def _bisect(clone: Repo) -> None:
    clone.git("bisect", "start")


def _am(clone: Repo) -> None:
    clone.write(".git/patch", "From: a <a@b>\nSubject: x\n\n---\n\ndiff --git a/file b/file\n@@\n")
    clone.git("am", ".git/patch", fails=True)


_LOCAL_WORK = [
    (_unstaged, "1 unstaged"),
    (_staged, "1 staged"),
    (_staged_and_changed_again, "1 staged, 1 unstaged"),
    (_new_and_staged, "1 staged"),
    (_intent_to_add, "1 unstaged"),
    (_deleted, "1 unstaged"),
    (_renamed, "2 staged"),
    (_executable, "1 unstaged"),
    (_untracked, "untracked: mine"),
    (_untracked_in_the_way, "untracked: theirs"),
    (_ignored_in_the_way, "in the way: theirs"),
    (_ignored_folder_in_the_way, "in the way: theirs/deep/file"),
    (_ignored_file_where_a_folder_comes, "in the way: folder"),
    (_ignored_link_where_a_folder_comes, "in the way: folder"),
    (_assumed_unchanged, "in the way: file (hidden from git by a flag)"),
    (_skip_worktree, "in the way: file (hidden from git by a flag)"),
    (_locked_index, "locked: "),
    (_merge, "merge in progress"),
    (_rebase, "rebase in progress"),
    (_cherry_pick, "cherry-pick in progress"),
    (_revert, "revert in progress"),
    (_bisect, "bisect in progress"),
    (_am, "rebase or am in progress"),
]


def _advanced(world: World) -> Repo:
    """A clone whose server has changed a file, and added one plain and one in a folder."""
    server = world.server("a")
    server.commit("file", "old\n")
    clone = world.clone(server, "a")
    server.commit("file", "new\n")
    server.commit("theirs", "theirs\n")
    server.commit("folder/file", "theirs\n")
    return clone


@pytest.mark.parametrize(("work", "reason"), _LOCAL_WORK, ids=lambda x: getattr(x, "__name__", ""))
def test_a_repository_with_local_work_is_skipped(
    world: World, work: Callable[[Repo], None], reason: str
):
    clone = _advanced(world)
    work(clone)
    before = clone.everything()
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "skipped")
    assert reason in ran.one()["reason"]
    before["refs"]["refs/remotes/origin/main"] = clone.git("rev-parse", "origin/main")
    assert clone.everything() == before


@pytest.mark.parametrize("work", [w for w, _ in _LOCAL_WORK[:12]], ids=lambda x: x.__name__)
def test_local_work_is_no_hindrance_where_nothing_is_to_do(
    world: World, work: Callable[[Repo], None]
):
    _, clone = world.pair()
    work(clone)
    before = clone.everything()
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (0, "current")
    assert clone.everything() == before


@pytest.mark.parametrize("option", ["--keep-untracked"])
def test_untracked_files_stay_beside_an_update_on_request(world: World, option: str):
    clone = _advanced(world)
    clone.write("mine", "my text\n")
    assert world.run(option).one()["status"] == "updated"
    assert (clone.read("mine"), clone.read("file")) == ("my text\n", "new\n")


@pytest.mark.parametrize("option", ["--keep-untracked"])
def test_untracked_files_in_the_way_stop_an_update_all_the_same(world: World, option: str):
    clone = _advanced(world)
    clone.write("theirs", "mine\n")
    ran = world.run(option)
    assert (ran.one()["status"], ran.one()["files"]) == ("skipped", ["theirs"])
    assert (clone.read("theirs"), clone.read("file")) == ("mine\n", "old\n")


def test_ignored_files_that_are_not_in_the_way_stay(world: World):
    clone = _advanced(world)
    clone.write(".git/info/exclude", "build\n")
    clone.write("build/output", "slow to make\n")
    assert world.run().code == 0
    assert clone.read("build/output") == "slow to make\n"


def test_an_empty_folder_is_not_in_the_way(world: World):
    clone = _advanced(world)
    (clone.path / "theirs").mkdir()
    assert world.run().code == 0
    assert clone.read("theirs") == "theirs\n"


def test_ignored_files_in_a_folder_that_becomes_a_file_are_in_the_way(world: World):
    server = world.server("a")
    server.commit("folder/file")
    clone = world.clone(server, "a")
    clone.write(".git/info/exclude", "*.o\n")
    clone.write("folder/mine.o", "precious\n")
    server.git("rm", "-q", "-r", "folder")
    server.commit("folder", "now a file\n")
    ran = world.run()
    assert (ran.one()["status"], ran.one()["files"]) == ("skipped", ["folder/mine.o"])
    assert clone.read("folder/mine.o") == "precious\n"


def test_a_rename_by_case_alone_is_followed(world: World):
    server = world.server("a")
    server.commit("Name", "text\n")
    clone = world.clone(server, "a")
    server.git("mv", "Name", "name")
    server.git("commit", "-q", "-m", "rename")
    assert world.run().code == 0
    assert sorted(clone.files()) == ["README", "name"]


def test_a_rename_by_case_alone_is_not_in_the_way_of_itself_where_case_is_ignored(world: World):
    server = world.server("a")
    server.commit("Name", "text\n")
    clone = world.clone(server, "a")
    clone.git("config", "core.ignoreCase", "true")
    # What such a file system shows: the file under both names.
    (clone.path / "name").hardlink_to(clone.path / "Name")
    clone.write(".git/info/exclude", "name\n")
    server.git("mv", "Name", "name")
    server.git("commit", "-q", "-m", "rename")
    assert "in the way" not in world.run("--plan", "--keep-untracked").one()["reason"]


def test_windows_line_endings_arrive_as_they_are(world: World):
    server, clone = world.pair()
    server.commit("dos", b"one\r\ntwo\r\n")
    assert world.run().code == 0
    assert clone.files()["dos"] == b"one\r\ntwo\r\n"


def test_files_that_only_line_endings_make_different_are_left_alone(world: World):
    server = world.server("a")
    server.commit("dos", b"one\r\n")
    clone = world.clone(server, "a")
    # From now on git takes the unchanged file for changed.
    clone.git("config", "core.autocrlf", "input")
    (clone.path / "dos").touch()
    server.commit("dos", b"two\r\n")
    before = clone.files()
    ran = world.run()
    assert ran.one()["status"] in ("updated", "skipped")
    if ran.one()["status"] == "skipped":
        assert clone.files() == before


def test_converted_line_endings_are_followed(world: World):
    server = world.server("a")
    server.commit("text", "one\n")
    server.commit(".gitattributes", "text text eol=crlf\n")
    clone = world.clone(server, "a")
    assert clone.files()["text"] == b"one\r\n"
    server.commit("text", "two\n")
    assert world.run().code == 0
    assert clone.files()["text"] == b"two\r\n"


def test_names_that_are_not_utf8_are_kept_and_named(world: World):
    clone = _advanced(world)
    name = "caf\udce9"
    clone.write(".git/info/exclude", b"caf\xe9\n")
    server = world.repo(world.folder / "servers" / "a")
    server.write(name, "theirs\n")
    server.git("add", "-A")
    server.git("commit", "-q", "-m", "latin-1")
    clone.write(name, "mine\n")
    ran = world.run()
    assert (ran.one()["status"], ran.one()["files"]) == ("skipped", ["caf?"])
    assert clone.read(name) == "mine\n"


def test_fifty_thousand_files_are_updated(world: World):
    server = world.server("a")
    lines = ["commit refs/heads/main", "committer t <t@t> 0 +0000", "data 0"]
    lines.append(f"from {server.head}")
    for i in range(50_000):
        lines += [f"M 644 inline {i // 500}/{i}", "data 2", "x", ""]
    server.git("fast-import", "--quiet", "--force", text="\n".join([*lines, ""]))
    server.git("reset", "-q", "--hard")
    clone = world.clone(server, "a")
    new = server.commit("0/0", "new\n")
    clone.write(".git/info/exclude", "*.o\n")
    clone.write("0/mine.o", "mine\n")
    assert world.run().code == 0
    assert (clone.head, clone.read("0/0"), clone.read("0/mine.o")) == (new, "new\n", "mine\n")
