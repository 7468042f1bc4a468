"""Checks the style: ruff and clang-format; and names, with mypy."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from test.lint.source_tree import ROOT, expect_none, files, text

_CPP = (".cc", ".cu", ".cuh", ".h")
_TOOLS = Path(sys.executable).parent


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_ruff_finds_no_problem():
    result = _run(_TOOLS / "ruff", "check", "--no-cache", "--output-format=concise", *files(".py"))
    if result.returncode:
        pytest.fail(f"{result.stdout}{result.stderr}", pytrace=False)


def test_clang_format_changes_nothing():
    result = _run(_TOOLS / "clang-format", "--dry-run", "--Werror", *files(*_CPP))
    changed = sorted(set(re.findall(r"^(\S+?):\d+:", result.stderr, re.MULTILINE)))
    if result.returncode:
        remedy = f"Format them:  .venv/bin/clang-format -i {' '.join(changed)}"
        pytest.fail(remedy if changed else result.stderr, pytrace=False)


def test_modules_have_the_names_that_others_ask_them_for():
    options = ("--follow-imports=skip", "--cache-dir=/dev/null")
    found = _run(sys.executable, "-m", "mypy", *options, "torch_xla_lite").stdout
    assert "source files" in found
    assert not re.findall('.*Module .*has no attribute "(?!_build_info).*', found)  # It is built.


def test_nothing_that_is_built_depends_on_a_gpu():
    # CUDA code is built if there is a compiler for it, and used if jax finds a GPU.
    words = "cuda." + "is_available"
    sources = files(".bzl", ".py", ".sh")
    expect_none(f"{file}: do not ask {words}" for file in sources if words in text(file))
