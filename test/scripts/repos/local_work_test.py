"""Local work is never touched: updates go on beside it, and stop where it is in the way."""

import itertools

import pytest

from test.scripts.repos.world import Repo, Template, World

# Local work, as shell commands, and what is said of it where upstream changes the same.
_IN_THE_WAY = {
    "echo mine > README": "in the way: README",
    "echo mine > README; git add README": "in the way: README",
    "echo mine > README; git add README; echo later > README": "in the way: README",
    "rm README": "in the way: README",
    "git mv README README.md": "in the way: README",
    "chmod +x README": "in the way: README",
    "echo mine > theirs; git add theirs": "in the way: theirs",
    "echo mine > theirs; git add --intent-to-add theirs": "in the way: theirs",
    "rm -r deep; echo precious > deep": "in the way: deep/file",
    "rm README; mkdir README; echo precious > README/mine": "in the way: README",
    "echo mine > theirs": "in the way: theirs",
    "exclude theirs; echo precious > theirs": "in the way: theirs",
    "exclude theirs; mkdir -p theirs/deep; echo 1 > theirs/deep/file": "theirs/deep/file",
    "exclude folder; echo precious > folder": "in the way: folder",
    "exclude folder; exclude own; mkdir own; echo 1 > own/x; ln -s own folder": "the way: folder",
    "git update-index --assume-unchanged file; echo mine > file": "file (hidden from git by a",
    "git update-index --skip-worktree file; echo mine > file": "file (hidden from git by a",
    "touch .git/index.lock": "index.lock exists",
    "conflict merge": "merge in progress",
    "conflict rebase": "rebase in progress",
    "conflict cherry-pick": "cherry-pick in progress",
    "commit file; echo 2 > file; git commit -qam 2; ! git revert HEAD~1": "revert in progress",
    "git bisect start": "bisect in progress",
    "echo no patch > .git/patch; ! git am --patch-format=mbox .git/patch": "am in progress",
}
_UNRELATED = [
    "echo mine > README; git add README; echo later > README",
    "echo mine > mine; git add --intent-to-add mine",
    "git mv README README.md",
    "chmod +x README",
    "rm README; mkdir README; echo precious > README/mine",
    "rm -r deep; echo precious > deep",
    "exclude build; mkdir build; echo slow to make > build/output",
]
# By day the ways take turns; matrix_test.py has more by night.
_UNRELATED_UPDATES = [*zip(_UNRELATED, itertools.cycle(["", "--rebase", "--merge", "--to"]))]


def _advanced(world: World, *related: str) -> Repo:
    """A clone whose server has changed a file, and added one plain and one in a folder.

    Args:
      world: to make it in.
      *related: other files that the server has changed.
    """
    server, clone = world.pair(files={"file": "old\n", "deep/file": "old\n"})
    server.commit("file", "new\n")
    server.commit("theirs", "theirs\n")
    server.commit("folder/file", "theirs\n")
    for name in related:
        server.commit(name, "new\n")
    return clone


@pytest.fixture(scope="module")
def advanced(tmp_path_factory: pytest.TempPathFactory) -> Template[Repo]:
    return Template(tmp_path_factory.mktemp("advanced"), _advanced)


@pytest.fixture(scope="module")
def related(tmp_path_factory: pytest.TempPathFactory) -> Template[Repo]:
    folder = tmp_path_factory.mktemp("related")
    return Template(folder, lambda world: _advanced(world, "README", "deep/file"))


@pytest.mark.parametrize(("work", "reason"), _IN_THE_WAY.items())
def test_a_repository_with_local_work_in_the_way_is_skipped(
    related: Template[Repo], work: str, reason: str
):
    world, clone = related.copy()
    clone.shell(work)
    before = clone.everything()
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "skipped")
    assert reason in ran.one()["reason"]
    before["refs"]["refs/remotes/origin/main"] = clone.git("rev-parse", "origin/main")
    assert clone.everything() == before


def _work(clone: Repo) -> tuple[str, str, dict[str, bytes]]:
    """Local work exactly: git's status with modes and blobs, what is staged, and the files."""
    status = clone.git("status", "--porcelain=v2", "-z", "-uall")
    theirs = ("file", "theirs", "folder/file")
    changed = {name: data for name, data in clone.files().items() if name not in theirs}
    return status, clone.git("diff", "--cached"), changed


@pytest.mark.parametrize(("work", "how"), _UNRELATED_UPDATES)
def test_an_update_goes_on_beside_unrelated_local_work_and_undo_too(
    advanced: Template[Repo], work: str, how: str
):
    world, clone = advanced.copy()
    if how in ("--rebase", "--merge"):
        clone.git("switch", "-q", "-c", "feature")
        clone.commit("feature")
    if how == "--to":
        how = world.frozen(a=world.repo(world.folder / "servers" / "a").head)
    clone.shell(work)
    old, before = clone.everything(), _work(clone)
    ran = world.run(*([how] if how else []))
    assert (ran.code, ran.one()["status"]) == (0, "updated")
    assert (clone.read("file"), _work(clone)) == ("new\n", before)
    ran = world.run("undo")
    assert (ran.code, set(ran.one()["files"])) == (0, {"file", "theirs", "folder/file"})
    assert clone.everything() == old


@pytest.mark.parametrize("work", [*_UNRELATED, "git bisect start"])
def test_local_work_does_not_matter_where_nothing_is_to_do(advanced: Template[Repo], work: str):
    world, clone = advanced.copy()
    clone.git("pull", "-q")
    clone.shell(work)
    before = clone.everything()
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (0, "current")
    assert clone.everything() == before


def test_an_empty_folder_is_not_in_the_way(world: World):
    clone = _advanced(world)
    (clone.path / "theirs").mkdir()
    assert world.run().code == 0
    assert clone.read("theirs") == "theirs\n"


def test_ignored_files_in_a_folder_that_becomes_a_file_are_in_the_way(world: World):
    server, clone = world.pair(files={"folder/file": "theirs\n"})
    clone.write(".git/info/exclude", "*.o\n")
    clone.write("folder/mine.o", "precious\n")
    server.git("rm", "-q", "-r", "folder")
    server.commit("folder", "now a file\n")
    ran = world.run()
    assert (ran.one()["status"], ran.one()["files"]) == ("skipped", ["folder/mine.o"])
    assert clone.read("folder/mine.o") == "precious\n"


def test_a_rename_by_case_alone_is_not_in_the_way_of_itself_where_case_is_ignored(world: World):
    server, clone = world.pair(files={"Name": "text\n"})
    clone.git("config", "core.ignoreCase", "true")
    # What such a file system shows: the file under both names.
    (clone.path / "name").hardlink_to(clone.path / "Name")
    clone.write(".git/info/exclude", "name\n")
    server.git("mv", "Name", "name")
    server.git("commit", "-q", "-m", "rename")
    assert "in the way" not in world.run("--plan").one()["reason"]


def test_files_that_only_line_endings_make_different_are_left_alone(world: World):
    server, clone = world.pair(files={"dos": b"one\r\n"})
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
    files = {"text": "one\n", ".gitattributes": "text text eol=crlf\n"}
    server, clone = world.pair(files=files)
    assert clone.files()["text"] == b"one\r\n"
    server.commit("text", "two\n")
    assert world.run().code == 0
    assert clone.files()["text"] == b"two\r\n"


@pytest.mark.nightly
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


@pytest.mark.parametrize("becomes", ["file", "submodule"])
def test_a_repository_in_the_place_of_a_file_is_in_the_way(world: World, becomes: str):
    server, inner = world.server("a"), world.server("inner")
    server.commit("place")
    clone = world.clone(server, "a")
    (clone.path / "place").unlink()
    mine = world.init(clone.path / "place")
    if becomes == "submodule":
        server.git("rm", "-q", "place")
        server.add_submodule(inner, "place")
    else:
        server.commit("place")
    before = mine.everything()
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "skipped")
    assert mine.everything() == before


def test_a_repository_in_the_place_of_a_new_folder_is_in_the_way(world: World):
    server, clone = world.pair()
    mine = world.init(clone.path / "folder")
    server.commit("folder/file")
    before = mine.everything()
    ran = world.run()
    assert (ran.one()["status"], ran.one()["files"]) == ("skipped", ["folder"])
    assert mine.everything() == before


@pytest.mark.parametrize("options", ["--autostash", "--squash --no-commit", "-s ours --no-ff"])
def test_options_that_a_branch_gives_to_merges_do_not_hold(world: World, options: str):
    clone = _advanced(world)
    clone.shell(_UNRELATED[0])
    clone.git("config", "branch.main.mergeOptions", options)
    before = _work(clone)
    assert (world.run().code, clone.read("file"), _work(clone)) == (0, "new\n", before)
    assert clone.head == clone.git("rev-parse", "origin/main")


def test_own_commits_stay_where_fetched_branches_are_set_to_go_to_local_ones(world: World):
    server, clone = world.pair()
    mine = clone.commit("mine")
    clone.git("switch", "-q", "-c", "topic", "HEAD~1")
    clone.git("config", "remote.origin.fetch", "+refs/heads/*:refs/heads/*")
    new = server.commit()
    world.run()
    assert clone.git("rev-parse", "main", "origin/main").split() == [mine, new]


def test_a_run_that_moved_nothing_does_not_offer_to_undo_it(world: World):
    server, clone = world.pair()
    server.commit()
    clone.write(".git/refs/remotes/origin/main.lock", "")
    ran = world.run()
    assert (ran.code, ran.one()["status"], ran.json["run"]) == (1, "failed", None)


def test_a_feature_branch_that_is_behind_is_not_called_current(world: World):
    server, clone = world.pair()
    clone.git("switch", "-q", "-c", "feature")
    clone.git("branch", "-q", "-D", "main")
    server.commit()
    ran = world.run(json=False)
    assert (ran.code, "All is current" in ran.out) == (0, False)
