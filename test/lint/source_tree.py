"""Lists the files of the source tree, for tests that check all of them."""

import functools
import os
from pathlib import Path

# Tests run in a folder of links to the sources; the link to WORKSPACE leads to the tree.
ROOT = Path("WORKSPACE").resolve().parent

# Written by setup.py, in the root of the tree; other folders of these names hold sources.
_PRODUCTS = {ROOT / "build", ROOT / "dist"}


@functools.cache
def files(*suffixes: str) -> list[Path]:
    """Source files whose names end with one of the suffixes, relative to ROOT."""
    found: list[Path] = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [
            name
            for name in folders
            if not name.startswith((".", "bazel-"))
            and Path(folder, name) not in _PRODUCTS
            and not name.endswith(".egg-info")
        ]
        found += [Path(folder, name).relative_to(ROOT) for name in names if name.endswith(suffixes)]
    assert found, f"no files with {suffixes} under {ROOT}"
    return sorted(found)
