"""Removes what was installed from wheels, where an editable install takes its place.

    remove([site / "torch_xla_lite-0.1.0.dist-info"])

By the list of files that their installer left, as pip does it; pip itself need not be there.
"""

import csv
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from bazel.pybuild.errors import BuildError


def remove(infos: Sequence[Path]) -> None:
    """Removes all files of some distributions, and says so.

    Args:
      infos: their .dist-info folders.

    Raises:
      BuildError: a file could not be removed.
    """
    names = [info.name.partition("-")[0] for info in infos]
    print(
        f"torch_xla_lite: {' and '.join(names)}, installed from a wheel, "
        f"{'is' if len(names) == 1 else 'are'} removed: this tree takes the place."
    )
    try:
        for info in infos:
            _remove_files(info)
    except OSError as error:
        raise BuildError(
            f"An installed torch_xla_lite would hide this tree and could not be removed: {error}",
            f"Remove it by hand:  {sys.executable} -m pip uninstall --yes {' '.join(names)}",
        ) from None


def _remove_files(info: Path) -> None:
    site = info.parent
    if not (info / "RECORD").exists():
        # The remainder of something interrupted; pip would not remove it at all.
        shutil.rmtree(info)
        return
    # The prefix, of which site is lib/python3.x/site-packages. A list is no reason to remove what
    # lies beyond it.
    environment = site.parents[:3][-1]
    with (info / "RECORD").open(newline="") as record:
        listed = [Path(os.path.normpath(site / row[0])) for row in csv.reader(record) if row]
    files = [file for file in listed if file.is_relative_to(environment)]
    # The list itself last, which pip writes first: what is interrupted or fails can be done again.
    files.sort(key=lambda file: file == info / "RECORD")
    folders = {file.parent for file in files}
    for file in files:
        file.unlink(missing_ok=True)
        # Compiled on the first import, which no list knows of.
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            compiled.unlink()
        folders.add(file.parent / "__pycache__")
    # The innermost first; what holds somebody else's files stays.
    inside = [folder for folder in folders if folder.is_relative_to(site) and folder != site]
    parents = {parent for folder in inside for parent in (folder, *folder.parents)}
    for folder in sorted(parents, key=lambda folder: len(folder.parts), reverse=True):
        if folder.is_relative_to(site) and folder != site and _is_empty(folder):
            folder.rmdir()


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())
