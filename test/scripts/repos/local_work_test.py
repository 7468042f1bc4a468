"""Local work is never touched: updates go on beside it, and stop where it is in the way."""

import shutil
from pathlib import Path

import pytest

from test.scripts.repos import holdings
from test.scripts.repos.world import Ran, World

# Local work, as shell commands, and what is said of it where upstream changes the same.
_IN_THE_WAY = {
    "echo mine > README": "in the way: README",
    "echo mine > README; git add README; echo later > README": "in the way: README",
    "rm README": "in the way: README",
    "git mv README README.md": "in the way: README",
    "chmod +x README": "in the way: README",
    "echo mine > theirs; git add --intent-to-add theirs": "in the way: theirs",
    "rm -r deep; echo precious > deep": "in the way: deep/file",
    "rm README; mkdir README; echo precious > README/mine": "in the way: README",
    "rm README; git init -q README": "in the way: README",
    "git init -q folder": "in the way: folder",
    "echo mine > theirs": "in the way: theirs",
    "exclude theirs; echo precious > theirs": "in the way: theirs",
    "exclude theirs; mkdir -p theirs/deep; echo 1 > theirs/deep/file": "theirs/deep/file",
    "exclude folder; exclude own; mkdir own; echo 1 > own/x; ln -s own folder": "the way: folder",
    "exclude '*.o'; echo precious > gone/mine.o": "in the way: gone/mine.o",
    "git update-index --assume-unchanged file; echo mine > file": "file (hidden from git by a",
    "git update-index --skip-worktree file; echo mine > file": "file (hidden from git by a",
    "conflict merge": "merge in progress",
    "conflict rebase": "rebase in progress",
    "conflict cherry-pick": "cherry-pick in progress",
    "commit file; echo 2 > file; git commit -qam 2; ! git revert HEAD~1": "revert in progress",
    "git bisect start": "bisect in progress",
    "echo no patch > .git/patch; ! git am --patch-format=mbox .git/patch": "am in progress",
}


class Batch:
    """A clone for each kind of local work, all of which one run updates."""

    def __init__(self, folder: Path):
        self.world = World(folder)
        names = ("file", "deep/file", "kept", "gone/file")
        self.server, first = self.world.pair(files=dict.fromkeys(names, "old\n"))
        self.entry = self.world.table.pop("a")
        self.first = first.path.rename(folder / "first")
        for name in ("file", "README", "deep/file", "theirs", "folder/file"):
            self.server.commit(name, "theirs\n")
        self.server.git("rm", "-q", "-r", "gone")
        self.server.commit("gone", "a file now\n")

    def clone(self, number: int, work: str, *options: str) -> str:
        name = f"clone{number}"
        clone = self.world.repo(self.world.folder / "src" / name)
        shutil.copytree(self.first, clone.path, symlinks=True)
        clone.shell(work)
        self.world.table[name] = {**self.entry, "path": str(clone.path)}
        return name

    def run(self, *words: str) -> Ran:
        self.before = holdings.read(self.world.folder / "src")
        return self.world.run(*words)


@pytest.fixture(scope="module")
def in_the_way(tmp_path_factory: pytest.TempPathFactory) -> tuple[Batch, Ran, list[str]]:
    batch = Batch(tmp_path_factory.mktemp("in_the_way"))
    for number, work in enumerate(_IN_THE_WAY):
        batch.clone(number, work)
    ran = batch.run()
    return batch, ran, holdings.different(batch.before, holdings.read(batch.world.folder / "src"))


@pytest.mark.parametrize("work", _IN_THE_WAY)
def test_a_repository_with_local_work_in_the_way_is_skipped(
    in_the_way: tuple[Batch, Ran, list[str]], work: str
):
    _, ran, different = in_the_way
    one = ran.one(f"clone{[*_IN_THE_WAY].index(work)}")
    assert (ran.code, one["status"], different) == (1, "skipped", [])
    assert _IN_THE_WAY[work] in one["reason"]


def test_an_update_goes_on_beside_local_work_and_undo_too(world: World):
    server, clone = world.pair(files=dict.fromkeys(("kept", "removed"), "old\n"))
    clone.shell("echo mine > kept; git add kept; echo later > kept; rm removed; mkdir removed")
    clone.shell("echo mine > removed/mine; exclude build; echo slow to make > build")
    # It would ask for a stash, which unstages files.
    clone.git("config", "branch.main.mergeOptions", "--autostash")
    before, new = clone.everything(), server.commit("theirs")
    assert (world.run().one()["status"], clone.head) == ("updated", new)
    assert (clone.read("kept"), clone.read("removed/mine")) == ("later\n", "mine\n")
    assert world.run("undo").code == 0
    assert clone.everything() == before


@pytest.mark.nightly
def test_local_work_does_not_matter_where_nothing_is_to_do(world: World):
    _, clone = world.pair()
    clone.shell("git bisect start; echo mine > README")
    before = clone.everything()
    ran = world.run()
    assert (ran.code, ran.one()["status"], clone.everything()) == (0, "current", before)


_NAMES = ("-dash", "--force", 'quo"te', "new\nline", "tab\tstop", "back\\slash", "ünï", "*", "[a]")
_MORE_NAMES = (":(top)x", " blanks ", "\x1b[31mred", "two\u2028lines", "byte\udcff")


@pytest.mark.nightly
def test_files_of_any_name_are_updated_restored_and_named_where_they_are_in_the_way(world: World):
    server, clone = world.pair('odd "name"\n-x $(y)')
    world.table = {"a": next(iter(world.table.values()))}
    names = [*_NAMES, *_MORE_NAMES]
    for content in ("first", "second"):
        for name in names:
            server.write(name, content)
        server.git("add", "--all")
        server.git("commit", "-q", "-m", content)
        assert world.run().one()["status"] == "updated"
    assert clone.files() == server.files()
    assert world.run("undo").code == 0
    for name in names:
        clone.write(name, "mine")
    ran = world.run()
    assert (ran.one()["status"], set(ran.one()["files"])) == ("skipped", set(names))
    out = world.run(json=False, PYTHONIOENCODING="ascii", PYTHONUTF8="0").out
    assert all(shown in out for shown in ("new\\nline", "\\x1b[31mred", "byte\\xff"))
    assert {*"\x1b\x85\u2028"} & {*out} == set()
