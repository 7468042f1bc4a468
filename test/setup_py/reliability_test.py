"""What interrupts or disturbs a build never leaves a stale or damaged library.

After each fault the installed library answers as before or as the new source says, and the next
`develop` makes it answer as the new source says.
"""

import ctypes
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from test.build.nested import Nested
from test.build.shell import AS_A_USER

# As of all random numbers in tests: fixed, or another one in each run of --runs_per_test.
_SEED = int(os.environ.get("TEST_RANDOM_SEED", "0"))
_NO_CACHE = {"TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS": "--disk_cache="}


@pytest.fixture
def built(nested: Nested) -> Nested:
    _set_answer(nested, 1)
    nested.develop()
    return nested


def _set_answer(tree: Nested, answer: int) -> None:
    # The header is there to be compiled for a while.
    tree.write("one.cc", f"#include <regex>\nint one() {{ return {answer}; }}\n")


def _answer(tree: Nested) -> int:
    """What the installed library answers, in a new process; two() is one() + 1."""
    code = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1])._Z3twov() - 1)"
    command = [sys.executable, "-c", code, tree.outputs[1]]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.nightly
def test_interrupts_at_any_moment(built: Nested):
    chance = random.Random(_SEED)
    answers = {1}
    for answer in range(100, 120):
        _set_answer(built, answer)
        process = built.start()
        time.sleep(chance.uniform(0, 1.5))
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate()
        # Python itself prints a traceback if it is interrupted before it runs setup.py.
        assert "pybuild" not in errors.partition("Traceback")[2]
        installed = _answer(built)
        assert installed in answers | {answer}
        answers = {installed}
        if process.returncode == 0:
            assert installed == answer
        elif "Traceback" not in errors:
            assert process.returncode == 130
            assert "error: interrupted. " in errors
    built.develop()
    assert _answer(built) == 119


@pytest.mark.nightly
def test_a_server_that_is_killed(built: Nested):
    _set_answer(built, 2)
    server = int(built.bazel("info", "server_pid").stdout)
    process = built.at_work(**_NO_CACHE)
    os.kill(server, signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode == 1
    assert "Bazel's server ended during the build.\nThe installed files have not changed." in errors
    assert _answer(built) == 1
    built.develop()
    assert _answer(built) == 2


def test_a_read_only_checkout_is_refused_with_the_command_that_mends_it(built: Nested):
    _set_answer(built, 6)
    with built.read_only():
        process = built.run(*AS_A_USER, built.python, "setup.py", "develop")
    assert process.returncode == 1
    assert "Traceback" not in process.stderr
    assert "chmod" in process.stderr.splitlines()[-1]
    assert _answer(built) == 1
    built.develop()
    assert _answer(built) == 6


def _in_own_mount_namespace(check: Callable[[], None]) -> None:
    """Runs a check in a child, whose mounts others do not see: a mount below Bazel's folders would
    keep Bazel from making sandboxes."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS):
                raise OSError(ctypes.get_errno(), "unshare")
            subprocess.run(["mount", "--make-rprivate", "/"], check=True)
            check()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# From sched.h; Python has os.unshare since 3.12.
_CLONE_NEWNS = 0x20000
_MAY_MOUNT = (
    shutil.which("unshare")
    and not subprocess.run(
        ["unshare", "--mount", "true"], capture_output=True, check=False
    ).returncode
)


needs_mount = pytest.mark.skipif(not _MAY_MOUNT, reason="this user may not mount")


@pytest.mark.nightly
@needs_mount
@pytest.mark.parametrize("full", ["bazel", "tree"])
def test_a_full_disk(tmp_path: Path, full: str):
    _in_own_mount_namespace(lambda: _check_full_disk(tmp_path, full))


def _check_full_disk(folder: Path, full: str) -> None:
    disk = folder / "disk"
    disk.mkdir()
    # Bazel's own files need 250 MB.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600m", "tmpfs", disk], check=True)
    places = {"bazel": folder / "shared", "tree": folder / "nested", full: disk}
    with closing(Nested(places["tree"], places["bazel"])) as tree:
        tree.develop()
        # A library that needs more space than the files that a build removes when it begins.
        large = "int one(), table[1 << 18] = {1};\nint two() { return one() + *table; }\n"
        tree.write("two.cc", large)
        _set_answer(tree, 8)
        filler = disk / "filler"
        with pytest.raises(OSError, match="No space"), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
        process = tree.setup("develop", **_NO_CACHE)
        assert process.returncode == 1, process.stdout + process.stderr
        assert re.search(f"error: .*No space left on device: .*{disk}/", process.stderr)
        assert "Traceback" not in process.stderr
        assert _answer(tree) == 1
        filler.unlink()
        tree.develop()
        assert _answer(tree) == 8
