"""What git or a hook does wrong while a branch moves: nothing stays half done."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from test.build.shell import program
from test.scripts.repos.world import Repo, World, needs_rights, wait_for_orphans


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


@pytest.mark.parametrize("words", [[], ["undo"]], ids=["run", "undo"])
def test_a_locked_branch_changes_nothing(world: World, clone: Repo, words: list[str]):
    assert not words or world.run().code == 0
    clone.write(".git/refs/heads/main.lock", "")
    before = clone.everything()
    ran = world.run(*words)
    assert (ran.code, ran.one()["status"], clone.everything()) == (1, "failed", before)


@pytest.mark.parametrize("how", ["", "--rebase"])
def test_a_hook_that_fails_after_the_move_is_reported_and_stops_nothing(
    world: World, clone: Repo, how: str
):
    if how:
        clone.commit_on_feature()
    before = clone.everything()
    for name in ("post-checkout", "post-merge"):
        clone.hook(name, "echo git-lfs was not found >&2; exit 2")
    ran = world.run(*([how] if how else []))
    assert (ran.code, ran.one()["status"]) == (0, "updated")
    ran = world.run("undo")
    assert (ran.code, clone.everything()) == (0, before)
    assert any("a hook failed: git-lfs was not found" in note for note in ran.one()["notes"])


@pytest.mark.parametrize(
    ("option", "refuses", "reason"),
    [
        (
            "--rebase",
            "ln -s /bin/false .git/hooks/pre-rebase",
            "pre-rebase",
        ),
        ("--merge", "git config commit.gpgSign 1; git config gpg.program /no/such", "gpg"),
    ],
    ids=["hook", "signature"],
)
def test_a_commit_that_git_refuses_to_make_is_reported_and_changes_nothing(
    world: World, clone: Repo, option: str, refuses: str, reason: str
):
    clone.shell("git switch -q -c feature; commit mine")
    world.run()
    clone.shell(refuses)
    before = clone.everything()
    ran = world.run(option)
    assert (ran.code, ran.one()["status"], clone.everything()) == (1, "failed", before)
    assert reason in ran.one()["reason"]


def test_a_process_that_a_hook_leaves_behind_delays_nothing(
    world: World, clone: Repo, tmp_path: Path
):
    # The hook's child holds its output open until the test ends, which is when we have ended.
    ended = tmp_path / "ended"
    clone.hook("post-merge", f"(while [ ! -e {ended} ]; do sleep 0.1; done) &")
    try:
        assert world.run().code == 0
    finally:
        ended.touch()


def test_a_hook_that_hangs_is_waited_for_until_the_second_interrupt_and_undo_restores(
    world: World, clone: Repo, tmp_path: Path
):
    before, started, ended = clone.everything(), tmp_path / "started", tmp_path / "ended"
    clone.hook("post-merge", f"touch {started}; while [ ! -e {ended} ]; do sleep 0.1; done")
    process = subprocess.Popen(world.command(), env=world.environ, stderr=subprocess.PIPE)
    while not started.exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline() == b"stopping after the current step ...\n"
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate()
    ended.touch()
    wait_for_orphans(clone.path)
    assert process.returncode == -signal.SIGINT
    assert clone.everything() != before
    assert world.run("undo", "--list").json["runs"][0]["state"] == "interrupted"
    assert (world.run("undo").code, clone.everything()) == (0, before)


def test_a_commit_made_while_a_rebase_is_prepared_stays(world: World, clone: Repo):
    clone.commit_on_feature()
    late = f"unset $(git rev-parse --local-env-vars); cd '{clone.path}'"
    clone.hook("pre-rebase", f"{late} && git commit -q --allow-empty -m late")
    assert world.run("--rebase").one()["status"] == "failed"
    assert clone.git("log", "-1", "--format=%s") == "late"
    assert clone.git("status", "--porcelain") == ""


def test_a_record_that_cannot_be_written_after_the_move_hides_nothing(world: World, clone: Repo):
    before = clone.everything()
    clone.hook("post-merge", "cd .git/update-repos && for f in *.json; do mkdir .$f.new; done")
    ran = world.run()
    assert (ran.code, ran.one()["status"], ran.one()["new"]) == (1, "failed", clone.head)
    (clone.path / ".git" / "update-repos" / f".{ran.json['run']}.json.new").rmdir()
    assert world.run("undo", ran.json["run"]).code == 0
    assert clone.everything() == before


def test_a_branch_that_was_checked_out_meanwhile_stays(world: World, clone: Repo):
    mine = clone.commit_on_feature()
    clone.git("branch", "other")
    late = f"unset $(git rev-parse --local-env-vars); cd '{clone.path}'"
    clone.hook("pre-rebase", f"{late} && git switch -q other")
    ran = world.run("--rebase")
    assert ran.one()["status"] == "failed"
    assert "another branch was checked out meanwhile" in ran.one()["reason"]
    assert (clone.head, clone.branch, clone.git("rev-parse", "feature")) == (mine, "other", mine)


@needs_rights
@pytest.mark.parametrize("how", ["plain", "rebase", "to", "undo"])
def test_a_folder_that_may_not_be_written_is_not_half_updated(world: World, how: str):
    server, clone = world.pair(files=dict.fromkeys(("d/changed", "d/removed"), "old\n"))
    if how == "rebase":
        clone.commit_on_feature()
    server.git("rm", "-q", "d/removed")
    server.commit("d/changed")
    options = {"rebase": ["--rebase"], "to": [world.frozen(a=server.head)], "undo": ["undo"]}
    assert world.run(*(["--plan"] if how != "undo" else [])).code == 0
    before = clone.everything()
    (clone.path / "d").chmod(0o555)
    ran = world.run(*options.get(how, []), as_a_user=True)
    assert (ran.code, ran.one()["status"], clone.everything()) == (1, "skipped", before)
    assert ran.one()["reason"] == "in the way: d (a folder that may not be written)"


@needs_rights
def test_a_submodule_with_a_folder_that_may_not_be_written_stays(world: World):
    inner, server = world.server("inner"), world.server("a")
    inner.commit("d/file")
    server.add_submodule(inner, "s")
    clone = world.clone(server, "a", "--recursive")
    inner.commit("d/file")
    world.repo(server.path / "s").git("pull", "-q", "origin", "main")
    server.git("commit", "-q", "-a", "-m", "bump")
    below = world.repo(clone.path / "s")
    before = below.head, below.read("d/file")
    (below.path / "d").chmod(0o555)
    assert world.run(as_a_user=True).one()["status"] == "failed"
    assert (below.head, below.read("d/file")) == before
    (below.path / "d").chmod(0o755)
    assert world.run().code == 0
    assert below.head == inner.head


@needs_rights
def test_files_that_git_only_warns_of_are_named(world: World):
    server, clone = world.pair(files={"d/file": "old\n"})
    server.commit(".gitattributes", "a.bin filter=x\n")
    server.commit("a.bin")
    new = server.commit("d/file")
    clone.git("config", "filter.x.smudge", f"chmod 555 '{clone.path}/d'; cat")
    ran = world.run(world.frozen(a=new), as_a_user=True)
    assert (ran.code, ran.one()["status"]) == (1, "failed")
    assert "HEAD has moved, but not all files" in ran.one()["reason"]
    assert "unable to unlink old 'd/file'" in ran.one()["reason"]


def _fetch_slowly(world: World, clone: Repo, meanwhile: str) -> None:
    """Does something while a second repository is fetched."""
    server_b, b = world.pair("b")
    server_b.commit()
    script = f'cd "{clone.path}"; {meanwhile}\nexec git upload-pack "$@"'
    b.git("config", "remote.origin.uploadpack", str(program(world.folder / "pack", script)))
    world.settings["jobs"] = 1


def test_a_default_branch_that_is_checked_out_meanwhile_stays(world: World):
    server, clone = world.pair()
    clone.git("switch", "-q", "-c", "feature")
    old = clone.head
    server.commit()
    _fetch_slowly(world, clone, "git switch -q main")
    one = world.run().one()
    assert (one["status"], clone.git("rev-parse", "main")) == ("failed", old)
    assert "main was checked out meanwhile" in one["reason"]
    assert clone.git("status", "--porcelain") == ""


def test_a_default_branch_that_the_main_worktree_rebases_stays(world: World):
    server, main = world.pair(files={"p": "theirs\n"})
    clone = world.repo(world.folder / "src" / "linked")
    main.git("worktree", "add", "-q", "-b", "feature", str(clone.path))
    world.table["a"]["path"] = str(clone.path)
    main.git("-c", "sequence.editor=sed -i 1s/pick/edit/", "rebase", "-q", "-i", "HEAD~1")
    old = main.git("rev-parse", "main")
    server.commit()
    ran = world.run()
    assert (ran.code, main.git("rev-parse", "main")) == (1, old)
    assert f"main is checked out in {main.path}" in ran.one()["reason"]


def test_undo_does_not_move_a_branch_that_is_rebased(world: World):
    server, clone = world.pair()
    server.commit("p")
    server.commit("q")
    assert world.run().code == 0
    clone.git("-c", "sequence.editor=sed -i 1s/pick/edit/", "rebase", "-q", "-i", "HEAD~1")
    old = clone.git("rev-parse", "main")
    ran = world.run("undo")
    assert (ran.code, clone.git("rev-parse", "main")) == (1, old)
    assert ran.one()["reason"] == "rebase in progress"


def test_a_branch_that_is_another_name_of_the_checked_out_one_stays(world: World):
    server, clone = world.pair(branch="main")
    clone.git("branch", "-m", "main", "master")
    clone.git("symbolic-ref", "refs/heads/main", "refs/heads/master")
    old = clone.head
    server.commit()
    world.run()
    assert (clone.head, clone.git("status", "--porcelain")) == (old, "")


@pytest.mark.parametrize("is_new", [False, True])
def test_a_file_that_the_user_writes_meanwhile_stays(world: World, is_new: bool):
    server, clone = world.pair(files={} if is_new else {"file": "old\n"})
    server.commit("file", "new line\nanother\n")
    _fetch_slowly(world, clone, "printf 'new line' > file")
    one = world.run().one()
    assert one["status"] in ("failed", "skipped")
    assert clone.read("file") == "new line"
    assert "file" in one["reason"]


@needs_rights
def test_objects_that_cannot_be_written_are_no_problem_of_the_network(world: World):
    server, clone = world.pair()
    server.commit()
    for folder in (clone.path / ".git/objects", *(clone.path / ".git/objects").iterdir()):
        folder.chmod(0o555)
    ran = world.run(as_a_user=True)
    assert (ran.code, ran.one()["status"]) == (1, "failed")
    assert "Permission denied" in ran.one()["reason"] or "permission" in ran.one()["reason"]
