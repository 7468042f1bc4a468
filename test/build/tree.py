"""The source tree, for tests that read it or copy it."""

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from bazel.pybuild.dist import sources

# A test runs among links to what it may read; the link to WORKSPACE leads to the tree itself.
ROOT = Path("WORKSPACE").resolve().parent


def source_files(*places: str) -> list[Path]:
    """Files that belong to the project, relative to ROOT.

    Args:
      *places: files or folders; all when none is given.
    """
    files = map(Path, sources.all_files(ROOT))
    return [file for file in files if any(map(file.is_relative_to, places or "."))]


def inputs(*places: str) -> list[Path]:
    """Those of source_files() that are inputs of this test."""
    return [file for file in source_files(*places) if file.exists()]


def copied(folder: Path, files: Iterable[Path], copy: Callable[..., object] = shutil.copy2) -> Path:
    """Makes a tree of files of this one, and of another README, so that an edit of ours runs no
    test that does not check it.

    Args:
      folder: of the tree.
      files: to copy, relative to ROOT.
      copy: what makes one file of another; or a link to it.
    """
    for file in files:
        if str(file) != "README.md":
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            copy(ROOT / file, folder / file)
    (folder / "README.md").write_text("# A tree\n")
    return folder


def linked(folder: Path) -> Path:
    """Makes a tree of links to all files of this one, to package."""
    return copied(folder, source_files(), os.symlink)
