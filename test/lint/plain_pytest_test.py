"""Plain pytest, as an editor runs it, collects all folders and has the settings of Bazel."""

import os
import shutil
import subprocess
import sys
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
    left_out = [folder.name for folder in (ROOT / "test").iterdir() if folder.name != "build"]
    ignored = [f"--ignore=test/{name}" for name in left_out]
    collected = _pytest(ROOT, "--collect-only", *ignored)
    assert "test/build/options_test.py" in collected


def test_variables_are_set_and_nightly_cases_wait_for_the_night(tmp_path: Path):
    shutil.copy(ROOT / "test" / "conftest.py", tmp_path)
    (tmp_path / "some_test.py").write_text(_TESTS)
    assert "1 passed, 1 deselected" in _pytest(tmp_path)
    assert "1 passed, 1 deselected" in _pytest(tmp_path, "-m", "nightly")
    assert "2 passed" in _pytest(
        tmp_path, "some_test.py::test_variables", "some_test.py::test_long"
    )
