"""Where the tool refuses, what it exits with, and what it prints where."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from bazel.pytest_plugin import mostly_nightly
from scripts.repos import git
from test.scripts.repos.world import ROOT, TOOL, World


def _without_allow_root(world: World, *words: str) -> tuple[int, str]:
    command = [word for word in world.command(*words) if word != "--allow-root"]
    done = subprocess.run(command, env=world.environ, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused")
def test_root_is_refused_with_the_option_that_allows_it(world: World):
    world.pair()
    code, output = _without_allow_root(world)
    assert (code, "--allow-root" in output) == (2, True)


_READS = [["status"], ["undo", "--list"], ["--dry-run"]]


@pytest.mark.parametrize("words", mostly_nightly(_READS, _READS[:2]))
def test_what_only_reads_is_for_root_and_containers_too(world: World, words: list[str]):
    world.pair()
    world.environ["TORCH_XLA_LITE_CONTAINER"] = "1"
    assert _without_allow_root(world, *words) == (0, "")


@pytest.mark.parametrize("name", mostly_nightly(["TORCH_XLA_LITE_CONTAINER", "CODESPACES"], []))
def test_the_development_container_is_refused(world: World, name: str):
    server, clone = world.pair()
    server.commit()
    before = clone.everything()
    world.environ.pop("TORCH_XLA_LITE_CONTAINER")
    ran = world.run(**{name: "true"})
    assert (ran.code, ran.out, clone.everything()) == (2, "", before)
    assert "development container" in ran.err


_WRONG = [
    *(["--no-such-option"], ["--rebase", "--merge"], ["--dry-run", "--plan"], ["-j0"]),
    *(["-j1.5"], ["no-such-repository"]),
    *(["-b", "no-such"], ["undo", "no-such-run"], ["--config=/no/such/file"]),
]


@pytest.mark.parametrize("words", mostly_nightly(_WRONG, _WRONG[:1]))
def test_wrong_usage_exits_with_two_and_says_why(world: World, words: list[str]):
    world.pair()
    ran = world.run(*words)
    assert (ran.code, ran.out, ran.err.strip() != "") == (2, "", True)


@pytest.mark.parametrize(
    "words", [["--clone"], ["--to=f"], ["--to", "f"], ["freeze", "f"], ["--retries=1"]], ids=str
)
def test_an_option_that_was_removed_is_refused_in_one_line_before_anything_changes(
    world: World, words: list[str]
):
    server, clone = world.pair()
    server.commit()
    before = clone.everything()
    ran = world.run(*words, "a")
    assert (ran.code, ran.out, clone.everything(), ran.err.count("\n")) == (2, "", before, 1)
    name = words[0].partition("=")[0]
    assert ran.err.startswith(f"error: {name} was removed: ")
    assert "git " in ran.err


def test_help_lists_the_exit_codes(world: World):
    ran = world.run("--help")
    assert ran.code == 0
    assert all(f"\n  {code} " in ran.out for code in (0, 1, 2, 3, 130))


def test_variables_that_git_sets_for_a_hook_do_no_harm(world: World):
    server, clone = world.pair()
    other = world.init(world.folder / "other")
    new, before = server.commit(), other.everything()
    local = set(clone.git("rev-parse", "--local-env-vars").split())
    # Settings of the user's command line.
    local -= {"GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"}
    names = {*local, "GIT_QUARANTINE_PATH", "GIT_NAMESPACE", "GIT_LITERAL_PATHSPECS"}
    assert world.run(**dict.fromkeys(names, str(other.path / ".git"))).code == 0
    assert (clone.head, other.everything()) == (new, before)
    assert all(git._UNWANTED.fullmatch(name) for name in names)


@pytest.mark.nightly
def test_settings_that_would_do_more_do_nothing(world: World):
    server, clone = world.pair()
    settings = (
        *("fetch.prune=true", "fetch.pruneTags=true", "merge.ff=false", "merge.autoStash=true"),
        *("pull.rebase=true", "rebase.autoStash=true", "rebase.updateRefs=true"),
        *("submodule.recurse=true", "status.showUntrackedFiles=no", "core.quotePath=true"),
        "color.ui=always",
    )
    for setting in settings:
        clone.git("config", *setting.split("="))
    clone.git("update-ref", "refs/remotes/origin/gone", "HEAD")
    clone.git("tag", "mine")
    new = server.commit()
    clone.write("mine", "untracked\n")
    before = clone.refs() | {"refs/heads/main": new, "refs/remotes/origin/main": new}
    assert (world.run().code, clone.refs()) == (0, before)


def test_the_entry_point_refuses_an_old_interpreter():
    text = (ROOT / "scripts" / "update_repos.py").read_text()
    script = f"import sys; sys.version_info = (3, 8); exec({text!r}, {{'__name__': '__main__'}})"
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "needs Python 3.11" in done.stderr


@pytest.mark.nightly
def test_the_standard_library_is_enough_and_the_file_can_be_executed(world: World):
    server, clone = world.pair()
    new = server.commit()
    without_packages = [sys.executable, "-I", "-S", *world.command()[1:]]
    done = subprocess.run(without_packages, env=world.environ, capture_output=True, check=False)
    assert (done.returncode, done.stderr, clone.head) == (0, b"", new)
    assert os.access(TOOL, os.X_OK)


@pytest.mark.nightly
@pytest.mark.parametrize("json", [[], ["--json"]], ids=str)
def test_a_full_disk_behind_the_output_is_reported(world: World, json: list[str]):
    server, clone = world.pair()
    new = server.commit()
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            world.command(*json), env=world.environ, stdout=full, stderr=-1, text=True, check=False
        )
    # The plan is printed first: nothing has changed where that fails.
    assert (done.returncode, clone.head == new) == (1, bool(json))
    assert done.stderr.startswith("error: the output is not whole: ")
    assert "Traceback" not in done.stderr


@pytest.mark.nightly
def test_a_narrow_terminal_shows_what_was_done_and_which_server_is_called(world: World):
    server, clone = world.pair("a-repository-with-a-long-name")
    server.commit("README", "theirs\n")
    clone.write("README", "mine\n")
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 20, 0, 0))
    subprocess.run(world.command(), env=world.environ, stdout=slave, stderr=slave, check=False)
    output = os.read(master, 65536)
    os.close(slave), os.close(master)
    assert b"a-repository-with-a-long-name: git fetch ...\r\n" in output
    assert b"skipped: in the way: README" in output
