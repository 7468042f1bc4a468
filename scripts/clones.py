"""Copies this tree, for scripts that build it in another place."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def copy_tree(tree: Path, source: Path = ROOT) -> None:
    """Copies the files that git tracks or would add, so that uncommitted edits are included.

    Args:
      tree: to write.
      source: this tree, or a copy of it, which has no git folder.
    """
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (source / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, tree / name)
