"""Commands in one tree wait for each other."""

import fcntl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bazel.pybuild import lock
from bazel.pybuild.errors import BuildError

_HOLD = """
import sys
from pathlib import Path
from bazel.pybuild import lock
with lock.exclusive(Path(sys.argv[1])):
    print("has it", flush=True)
    sys.stdin.read()
"""
_WAITS = "torch_xla_lite: waiting for another command in this tree\n"
_HAS = "has it\n"


@pytest.fixture
def other(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that takes the tree, and has it until its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, tmp_path],
        env={"PYTHONPATH": str(Path(lock.__file__).parents[2])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[int]:
    """The tree is taken before `other` starts; the file descriptor gives it up."""
    (tmp_path / "build").mkdir()
    with (tmp_path / lock.FILE).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _is_taken(root: Path) -> bool:
    with (root / lock.FILE).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_second_process_says_that_it_waits_and_then_has_the_tree(
    holder: int, other: "subprocess.Popen[str]"
):
    assert other.stdout.readline() == _WAITS
    fcntl.flock(holder, fcntl.LOCK_UN)
    assert other.stdout.readline() == _HAS


@pytest.mark.usefixtures("holder")
def test_a_process_that_must_not_wait_gets_an_error(tmp_path: Path):
    with (
        pytest.raises(BuildError, match="Another command works in this tree"),
        lock.exclusive(tmp_path, wait=False),
    ):
        pass


def test_a_waiter_whose_lock_file_clean_removed_locks_the_new_one(
    holder: int, other: "subprocess.Popen[str]", tmp_path: Path
):
    assert other.stdout.readline() == _WAITS
    (tmp_path / lock.FILE).unlink()
    (tmp_path / "build").rmdir()
    fcntl.flock(holder, fcntl.LOCK_UN)
    assert other.stdout.readline() == _HAS
    assert _is_taken(tmp_path)


def test_who_has_the_tree_gets_it_again(tmp_path: Path):
    with lock.exclusive(tmp_path):
        with lock.exclusive(tmp_path):
            pass
        assert _is_taken(tmp_path)
    assert not _is_taken(tmp_path)
