"""What git or a hook does wrong while a branch moves: nothing stays half done."""

import pytest

from bazel.pytest_plugin import mostly_nightly
from test.build.shell import program
from test.scripts.repos.world import Repo, World, needs_rights


@pytest.fixture
def clone(world: World) -> Repo:
    """A clone with news that change, add and remove files, and known here already."""
    server, clone = world.pair(files=dict.fromkeys(("changed", "removed", "z"), "old\n"))
    server.git("rm", "-q", "removed")
    server.commit("deep/er/added")
    server.commit("changed")
    server.commit(".gitattributes", "*.bin filter=lfs\n")
    server.write("file.bin", "large\n")
    server.commit("z")
    server.git("add", "file.bin")
    server.git("commit", "-q", "-m", "large")
    world.run("--plan")
    return clone


@pytest.mark.parametrize("words", mostly_nightly([[], ["undo"]], [[]]))
@pytest.mark.parametrize("lock", ["index.lock", "refs/heads/main.lock"])
def test_a_lock_of_git_changes_nothing(world: World, clone: Repo, words: list[str], lock: str):
    assert not words or world.run().code == 0
    clone.write(f".git/{lock}", "")
    before = clone.everything()
    ran = world.run(*words)
    assert (ran.code, ran.one()["status"], clone.everything()) == (1, "failed", before)
    assert f"{lock}': File exists" in ran.one()["reason"]
    assert (ran.one()["branch"], ran.json["run"] if not words else None) == ("main", None)


@pytest.mark.parametrize("says", mostly_nightly(["echo git-lfs was not found >&2; ", ""], [""]))
def test_a_hook_that_fails_after_the_move_is_reported_and_stops_nothing(
    world: World, clone: Repo, says: str
):
    clone.commit_on_feature()
    clone.hook("post-checkout", f"{says}exit 2")
    before = clone.everything()
    ran = world.run("--rebase")
    assert (ran.code, ran.one()["status"]) == (0, "updated")
    said = "git-lfs was not found" if says else "git ended with 1 and said nothing"
    assert f"HEAD has moved, but a hook failed: {said}" in ran.one()["notes"]
    assert (world.run("undo").code, clone.everything()) == (0, before)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("option", "refuses", "reason"),
    [
        ("--rebase", "ln -s /bin/false .git/hooks/pre-rebase", "pre-rebase"),
        ("--merge", "ln -s /bin/false .git/hooks/pre-merge-commit", "Not committing merge"),
        ("--merge", "git config commit.gpgSign 1; git config gpg.program /no/such", "gpg"),
    ],
    ids=["hook", "silent hook", "signature"],
)
def test_a_commit_that_git_refuses_to_make_is_reported_and_changes_nothing(
    world: World, clone: Repo, option: str, refuses: str, reason: str
):
    clone.shell(f"git switch -q -c feature; commit mine; git branch -q -D main; {refuses}")
    before = clone.everything()
    ran = world.run(option)
    assert (ran.code, ran.one()["status"], clone.everything()) == (1, "failed", before)
    assert reason in ran.one()["reason"]


@pytest.mark.nightly
@pytest.mark.parametrize("late", ["git commit -q --allow-empty -m late", "git switch -q other"])
def test_what_a_person_does_while_a_rebase_is_prepared_stays(world: World, clone: Repo, late: str):
    mine = clone.commit_on_feature()
    clone.git("branch", "other")
    there = f"unset $(git rev-parse --local-env-vars); cd '{clone.path}'"
    clone.hook("pre-rebase", f"{there} && {late}")
    one = world.run("--rebase").one()
    assert one["status"] == "failed"
    assert "a new commit or another branch was checked out meanwhile" in one["reason"]
    assert clone.git("rev-parse", "feature" if "switch" in late else "HEAD~1") == mine
    assert clone.git("status", "--porcelain") == ""


@needs_rights
@pytest.mark.parametrize("how", mostly_nightly(["plain", "undo"], ["plain"]))
def test_a_folder_that_may_not_be_written_is_not_half_updated(world: World, how: str):
    server, clone = world.pair(files=dict.fromkeys(("d/changed", "d/removed"), "old\n"))
    server.git("rm", "-q", "d/removed")
    server.commit("d/changed")
    assert world.run(*(["--plan"] if how != "undo" else [])).code == 0
    before = clone.everything()
    (clone.path / "d").chmod(0o555)
    ran = world.run(*(["undo"] if how == "undo" else []), as_a_user=True)
    assert (ran.code, ran.one()["status"], clone.everything()) == (1, "skipped", before)
    assert ran.one()["reason"] == "in the way: d (a folder that may not be written)"


def _fetch_slowly(world: World, clone: Repo, meanwhile: str) -> None:
    """Does something while a second repository is fetched."""
    server_b, b = world.pair("b")
    server_b.commit()
    script = f'cd "{clone.path}"; {meanwhile}\nexec git upload-pack "$@"'
    b.git("config", "remote.origin.uploadpack", str(program(world.folder / "pack", script)))


@pytest.mark.nightly
@pytest.mark.parametrize("is_new", [False, True])
def test_a_file_that_the_user_writes_meanwhile_stays(world: World, is_new: bool):
    server, clone = world.pair(files={} if is_new else {"file": "old\n"})
    server.commit("file", "new line\nanother\n")
    _fetch_slowly(world, clone, "printf 'new line' > file")
    one = world.run("-j1").one()
    assert (one["status"] in ("failed", "skipped"), clone.read("file")) == (True, "new line")
    assert "file" in one["reason"]


# No file that git checks out can be longer than so many blocks of 512 bytes.
_SMALL_DISK = """\
case " $* " in *" merge "*|*" checkout "*) trap '' XFSZ; ulimit -f 64;; esac
"""


@pytest.mark.nightly
def test_files_that_git_wrote_half_before_the_disk_was_full_are_removed(world: World):
    server, clone = world.pair(files={"large": "old\n", "z": "old\n"})
    server.commit(".gitattributes", "large text eol=crlf\n")
    server.commit("added", "x" * 100_000)
    server.commit("large", "y\n" * 50_000)
    assert world.run("--plan").code == 0
    before = clone.everything()
    ran = world.run(**world.wrapped_git(_SMALL_DISK))
    assert (ran.code, ran.one()["status"], clone.everything()) == (1, "failed", before)
    assert world.run().code == 0
