"""The source tree, for tests that read it or copy it."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from bazel.pybuild.dist import sources

# A test runs among links to what it may read; the link to WORKSPACE leads to the tree itself.
ROOT = Path("WORKSPACE").resolve().parent


def source_files(*places: str) -> list[Path]:
    """Files that belong to the project, relative to ROOT: tracked by git, or new and not ignored.
    Without git, those of a source distribution.

    Args:
      *places: files or folders; all when none is given.
    """
    if not (ROOT / ".git").exists():
        files = map(Path, sources.all_files(ROOT))
        return [file for file in files if any(map(file.is_relative_to, places or "."))]
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *places]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = [Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()]
    assert found, f"git knows no files in {ROOT}"
    return found


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
