"""Plain pytest, as an editor runs it, collects all folders and has the settings of Bazel."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from test.lint.source_tree import ROOT

_TESTS = """
import os
import pytest

def test_variables():
    assert os.environ["TORCH_XLA_LITE_COMPILE"] == "first"
    assert os.environ["TORCH_XLA_LITE_COMPILATION_CACHE"] == "0"
    assert os.environ["OMP_NUM_THREADS"] == "1"

@pytest.mark.nightly
def test_long():
    pass
"""


def _pytest(folder: Path, *arguments: str) -> str:
    environ = {name: os.environ[name] for name in ("HOME", "PATH", "TMPDIR") if name in os.environ}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    ).stdout


def test_folders_named_build_are_collected():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert "build" not in settings["norecursedirs"]  # It is in pytest's own list.


def test_variables_are_set_and_nightly_cases_wait_for_the_night(tmp_path: Path):
    shutil.copy(ROOT / "test" / "conftest.py", tmp_path)
    (tmp_path / "some_test.py").write_text(_TESTS)
    assert "1 passed, 1 deselected" in _pytest(tmp_path)
    named = ("some_test.py::test_variables", "some_test.py::test_long")
    assert "2 passed" in _pytest(tmp_path, *named)
