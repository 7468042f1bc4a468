"""A part has at most so many lines: one person has to be able to hold it.

    python -m pytest -s test/lint/budgets_test.py    # prints the lines of each part

Take something away before you raise a number, and say in the commit what the new lines are worth.
"""

from pathlib import Path
from typing import NamedTuple

import pytest

from test.lint.source_tree import ROOT, files


class _Part(NamedTuple):
    """The largest number of lines, the folders and files, and the folders among them left out."""

    limit: int
    places: tuple[str, ...]
    without: tuple[str, ...] = ()


_TESTS = ("bazel", "build", "cache", "lint", "scripts", "setup_py", "third_party")
_PARTS = {
    "bazel/pybuild": _Part(7_040, ("bazel/pybuild",)),  # The goal is 7,000.
    "rules and runners": _Part(2_250, ("bazel",), ("bazel/pybuild",)),  # The goal is 2,200.
    "third_party": _Part(1_535, ("third_party",)),
    "scripts": _Part(6_760, ("scripts",)),  # The goal is 6,400.
    "scripts/repos": _Part(2_221, ("scripts/repos",)),  # The goal is 2,000.
    "scripts/bench": _Part(2_476, ("scripts/bench",)),
    "scripts/ci": _Part(30, ("scripts/ci",)),
    # The goal is 13,100.
    "their tests": _Part(13_423, tuple(f"test/{name}" for name in _TESTS)),
    "pages": _Part(3_525, ("docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    # The goal is 28,500, with the lists of dependencies.
    "tests of the runtime": _Part(32_879, ("test",), tuple(f"test/{name}" for name in _TESTS)),
}


def _is_of(part: _Part, file: Path) -> bool:
    is_inside = any(map(file.is_relative_to, part.places))
    return is_inside and not any(map(file.is_relative_to, part.without))


@pytest.mark.parametrize("name", _PARTS)
def test_a_part_has_few_lines(name: str):
    part = _PARTS[name]
    # Links lead to files of the package.
    of_part = [ROOT / file for file in files("") if _is_of(part, file)]
    lines = sum(file.read_bytes().count(b"\n") for file in of_part if not file.is_symlink())
    print(f"{name}: {lines:,} of {part.limit:,} lines")
    assert lines <= part.limit
