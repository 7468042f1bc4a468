"""setup.py before Bazel starts: what it prints, and what fails at once."""

import ast
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from test.build.tree import ROOT


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what setup.py itself consists of; there is nothing that Bazel could build."""
    for name in ("setup.py", "pyproject.toml", "requirements.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "bazel" / "pybuild", tmp_path / "bazel" / "pybuild")
    return tmp_path


def _run(tree: Path, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "setup.py", *arguments],
        cwd=tree,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environ},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "environ", "message"),
    [
        (["develop", "--bogus"], {}, "unrecognized arguments: --bogus"),
        (["build_ext", "--bogus"], {}, "option --bogus not recognized"),
        (["developp"], {}, "invalid command 'developp'"),
        (["develop"], {"TORCH_XLA_LITE_BAZL": "x"}, "nearest one is TORCH_XLA_LITE_BAZEL."),
        (["clean"], {"TORCH_XLA_LITE_BAZL": "x"}, "nearest one is TORCH_XLA_LITE_BAZEL."),
        (["develop"], {"BUILD_LIB_WHL": "1"}, "the package in this tree needs both"),
        (["develop"], {"MAX_JOBS": "two"}, "MAX_JOBS='two' is not a whole number from 1."),
        (["develop"], {"TORCH_XLA_LITE_BAZEL": "/no/bazel"}, "is not a program that can be run"),
        (["develop"], {"PATH": "/nowhere"}, "neither bazelisk nor bazel on PATH"),
    ],
)
def test_a_wrong_argument_fails_in_a_second_and_leaves_nothing(
    tree: Path, arguments: list[str], environ: dict[str, str], message: str
):
    before = sorted(tree.rglob("*"))
    began = time.perf_counter()
    process = _run(tree, *arguments, **environ)
    assert time.perf_counter() - began < 1
    assert process.returncode != 0
    assert message in process.stderr
    assert "Traceback" not in process.stderr
    assert sorted(tree.rglob("*")) == before


def test_a_dry_run_prints_the_command_and_does_nothing(tree: Path):
    before = sorted(tree.rglob("*"))
    process = _run(tree, "develop", "--dry-run", MAX_JOBS="2", TORCH_XLA_LITE_BAZEL="true")
    assert process.returncode == 0, process.stderr
    assert " build " in process.stdout
    assert "--jobs=2" in process.stdout
    assert sorted(tree.rglob("*")) == before


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_questions_are_answered_without_building_or_writing(tree: Path, argument: str):
    before = sorted(tree.rglob("*"))
    process = _run(tree, argument, PATH="/nowhere")
    assert process.returncode == 0, process.stderr
    assert sorted(tree.rglob("*")) == before


def test_develop_imports_neither_setuptools_nor_pip(tree: Path):
    script = (
        "import runpy, sys; sys.argv = ['setup.py', 'develop', '--dry-run']\n"
        "try: runpy.run_path('setup.py', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print([name for name in ('setuptools', 'pip', 'torch', 'jax') if name in sys.modules])"
    )
    command = [sys.executable, "-c", script]
    environ = {**os.environ, "TORCH_XLA_LITE_BAZEL": "true"}
    process = subprocess.run(
        command, cwd=tree, env=environ, capture_output=True, text=True, check=True
    )
    assert process.stdout.splitlines()[-1] == "[]"


def test_an_older_python_is_told_so_and_not_shown_a_syntax_error(tree: Path):
    source = (tree / "setup.py").read_text()
    ast.parse(source, feature_version=(3, 6))
    # There is no old Python here, so the limit is moved instead.
    (tree / "setup.py").write_text(source.replace("(3, 11)", "(9, 0)"))
    process = _run(tree, "develop")
    assert process.returncode == 1
    assert "is too old" in process.stderr
    assert "torch_xla_lite needs 3.11 or newer" in process.stderr
