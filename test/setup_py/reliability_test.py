"""What interrupts or disturbs a build never leaves a stale or damaged library.

After each fault the installed library answers as before or as the new source says, and the next
`develop` makes it answer as the new source says.
"""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from test.build.nested import Nested
from test.build.shell import AS_A_USER

# The seed of all random numbers in tests is fixed, or another one in each run of --runs_per_test.
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


@pytest.mark.nightly
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
