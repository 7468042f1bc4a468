"""Copies a tree that may not be written, to build a wheel of it.

    root = writable(root, os.environ)      # ~/.cache/torch_xla_lite/trees/NAME-3f1a0c9b2d44

The copy is kept, so the next wheel of the same tree takes what Bazel has built.
"""

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from bazel.pybuild.cache import folders
from bazel.pybuild.dist import metadata, sources


def writable(root: Path, environ: Mapping[str, str]) -> Path:
    """The tree itself, or its copy if no file may be written there."""
    if os.access(root, os.W_OK):
        return root
    digest = hashlib.sha256(str(root).encode()).hexdigest()[:12]
    folder = folders.home(environ) / "trees" / f"{root.name}-{digest}"
    wanted = [*sources.all_files(root), metadata.PKG_INFO]
    wanted = [path for path in wanted if (root / path).exists()]
    for path in sources.all_files(folder) if folder.exists() else ():
        if path not in wanted:
            (folder / path).unlink()
    for path in wanted:
        source, copy = root / path, folder / path
        if not copy.exists() or source.stat().st_mtime_ns != copy.stat().st_mtime_ns:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)
    print(f"torch_xla_lite: {root} may not be written; building in {folder}", flush=True)
    return folder
