"""Lists the files of the source tree, for tests that check all of them.

    def test_the_description_is_first():
        expect_none(f"{file}: begin with a description" for file in files(".py") if ...)

A test is one rule, and names all that break it.
"""

import functools
from collections.abc import Iterable
from pathlib import Path

import pytest

from test.build.tree import ROOT, source_files

__all__ = ["ROOT", "expect_none", "files", "text"]


@functools.cache
def files(*suffixes: str) -> list[Path]:
    """Source files whose names end with one of the suffixes, relative to ROOT."""
    found = sorted(file for file in source_files() if file.name.endswith(suffixes))
    assert found, f"no files with {suffixes} under {ROOT}"
    return found


@functools.cache
def text(file: Path) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def expect_none(findings: Iterable[str]) -> None:
    """Fails if there are findings. Each is a line: the file, and what to change in it."""
    if lines := list(findings):
        pytest.fail("\n".join(lines), pytrace=False)
