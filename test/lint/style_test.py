"""Style: ruff for Python, clang-format for C++, and a first line that says what a file is for."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from test.lint.source_tree import ROOT, files

_TOOLS = Path(sys.executable).parent


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_ruff_has_nothing_to_say():
    result = _run(_TOOLS / "ruff", "check", "--no-cache", "--output-format=concise", *files(".py"))
    if result.returncode:
        pytest.fail(f"{result.stdout}{result.stderr}", pytrace=False)


def test_clang_format_would_change_nothing():
    result = _run(_TOOLS / "clang-format", "--dry-run", "--Werror", *files(".h", ".cc"))
    changed = sorted(set(re.findall(r"^(\S+?):\d+:", result.stderr, re.MULTILINE)))
    if result.returncode:
        remedy = f"Format these:  .venv/bin/clang-format -i {' '.join(changed)}"
        pytest.fail(remedy if changed else result.stderr, pytrace=False)


def _says_what_it_is_for(file: Path) -> bool:
    """Whether a file has to: not a test, whose name says it, nor a .cc, whose header does."""
    if file.stem.endswith("_test"):
        return False
    if file.suffix == ".cc":
        return not (ROOT / file).with_suffix(".h").exists()
    return (ROOT / file).stat().st_size > 0


@pytest.mark.parametrize(
    "file",
    [f for f in files(".h", ".cc", ".py", ".bzl", ".sh") if _says_what_it_is_for(f)],
    ids=str,
)
def test_a_file_begins_with_what_it_is_for(file: Path):
    start = {".h": "// ", ".cc": "// ", ".py": ('"""', "#!"), ".bzl": '"""', ".sh": "#"}
    assert (ROOT / file).read_text(encoding="utf-8").startswith(start[file.suffix])
