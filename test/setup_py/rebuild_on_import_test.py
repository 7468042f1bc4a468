"""TORCH_XLA_LITE_REBUILD_ON_IMPORT=1, in a small copy of this tree with the file that does it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from test.build.nested import Nested
from test.build.tree import ROOT

_INIT = """
from pathlib import Path
from .startup import rebuild
rebuild.rebuild(Path(__file__).absolute().parent)
"""
_ANSWER = """
import ctypes, os, subprocess, sys, {first}
from pathlib import Path
import torch_xla_lite
library = Path(torch_xla_lite.__file__).parent / "lib" / "libtorch_xla_lite.so"
print(ctypes.CDLL(library)._Z3onev(), os.environ["TORCH_XLA_LITE_REBUILD_ON_IMPORT"])
"""


@pytest.fixture
def tree(nested: Nested) -> Nested:
    nested.add("torch_xla_lite/startup/rebuild.py")
    nested.write("__init__.py", _INIT)
    nested.develop()
    return nested


def _import(
    tree: Nested, first: str = "json", **changes: str
) -> "subprocess.CompletedProcess[str]":
    variables = {"TORCH_XLA_LITE_REBUILD_ON_IMPORT": "1", **changes}
    return tree.run(tree.python, "-P", "-c", _ANSWER.format(first=first), **variables)


def test_an_edit_is_built_before_the_package_is_loaded(tree: Nested):
    tree.write("one.cc", "int one() { return 2; }\n")
    process = _import(tree)
    # Its own processes do not build.
    assert process.stdout == "2 0\n", process.stderr
    assert "1 compiled, 1 linked" in process.stderr
    assert _import(tree).stderr == ""


@pytest.mark.parametrize(
    ("first", "changes"),
    [
        ("json", {"TORCH_XLA_LITE_REBUILD_ON_IMPORT": "0"}),
        ("pytest", {}),
        ("json", {"TEST_SRCDIR": "/somewhere"}),
    ],
    ids=["off", "pytest", "bazel_test"],
)
def test_nothing_is_built(tree: Nested, first: str, changes: dict[str, str]):
    tree.write("one.cc", "int one() { return 3; }\n")
    before = tree.outputs[1].read_bytes()
    process = _import(tree, first, **changes)
    # The processes that it starts build nothing either.
    assert process.stdout.endswith(" 0\n"), process.stderr
    assert tree.outputs[1].read_bytes() == before


_UNITTEST = """
import unittest
import torch_xla_lite
if __name__ == "__main__":
    unittest.main(argv=["test_it"])
"""


# As editors find tests.
_DISCOVER = "import unittest; unittest.TestLoader().discover('.')"


@pytest.mark.parametrize(
    ("command", "builds"),
    [
        (["-m", "unittest", "discover"], False),
        (["-c", _DISCOVER], False),
        (["test_it.py"], True),
    ],
    ids=["runner", "loader", "script"],
)
def test_the_runner_of_unittest_builds_nothing_and_a_script_with_tests_does(
    tree: Nested, command: list[str], builds: bool
):
    (tree.root / "test_it.py").write_text(_UNITTEST)
    tree.write("one.cc", f"int one() {{ return {4 + builds}; }}\n")
    before = tree.outputs[1].read_bytes()
    tree.run(tree.python, *command, TORCH_XLA_LITE_REBUILD_ON_IMPORT="1")
    assert (tree.outputs[1].read_bytes() != before) is builds


def test_a_failure_is_an_import_error_that_ends_in_the_command(tree: Nested):
    tree.write("one.cc", "int one() { return unknown_name; }\n")
    process = _import(tree)
    assert process.returncode == 1
    assert "unknown_name" in process.stderr
    assert "ImportError: torch_xla_lite could not be built" in process.stderr
    assert process.stderr.splitlines()[-1] == "Build it by hand:  python setup.py develop"


def test_an_installed_package_has_nothing_to_build(tmp_path: Path):
    package = tmp_path / "torch_xla_lite"
    (package / "startup").mkdir(parents=True)
    (package / "__init__.py").write_text(_INIT)
    shutil.copy(ROOT / "torch_xla_lite" / "startup" / "rebuild.py", package / "startup")
    subprocess.run(
        [sys.executable, "-c", "import torch_xla_lite"],
        cwd=tmp_path,
        env={"TORCH_XLA_LITE_REBUILD_ON_IMPORT": "1"},
        check=True,
    )
