"""Lists the files of the source tree, for tests that check all of them."""

import functools
from pathlib import Path

from test.build.tree import ROOT, source_files

__all__ = ["ROOT", "files"]


@functools.cache
def files(*suffixes: str) -> list[Path]:
    """Source files whose names end with one of the suffixes, relative to ROOT."""
    found = sorted(file for file in source_files() if file.name.endswith(suffixes))
    assert found, f"no files with {suffixes} under {ROOT}"
    return found
