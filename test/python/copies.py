"""Copies of the package that tests may damage."""

import os
import shutil
from pathlib import Path

import torch_xla_lite

PACKAGE = Path(torch_xla_lite.__file__).parent


def copy_of_the_package(folder: Path, *, checkout: bool = True, skip: str = "") -> Path:
    """A package in `folder` that can be changed. Its shared objects are links to the real ones.

    Args:
      folder: for the package.
      checkout: whether there is a setup.py beside it, as in a tree of sources.
      skip: start of the names of shared objects that are to be missing.
    """
    package = folder / "torch_xla_lite"
    package.mkdir()
    for source in sorted(PACKAGE.rglob("*")):
        target = package / source.relative_to(PACKAGE)
        if source.is_dir():
            target.mkdir(exist_ok=True)
        elif source.suffix == ".so" and not (skip and source.name.startswith(skip)):
            target.symlink_to(source.resolve())
        elif source.suffix in (".json", ".py"):
            shutil.copyfile(source, target)
    if checkout:
        (folder / "setup.py").touch()
    return package


def edit_a_source(package: Path) -> Path:
    """Makes the package that of a checkout whose libraries are older than the source that is
    returned."""
    built = package.parent / "build" / "installed.json"
    source = package / "csrc" / "some.cc"
    for file in (built, source):
        file.parent.mkdir(exist_ok=True)
        file.touch()
    os.utime(built, (1, 1))
    return source


def change(package: Path, name: str, value: str) -> None:
    """Sets one constant of the copied _build_info."""
    info = package / "_build_info.py"
    info.write_text(f"{info.read_text()}\n{name} = {value!r}\n")
