"""Makes the editable install, with which Python imports the package from the source tree.

    if not in_place(root, site):
        install(root, site, commands_folder())

It consists of a .pth file, a module, a .dist-info folder like pip's (for `pip list`,
`pip uninstall` and `importlib.metadata`) and the commands. The .pth file names the root of the
tree, which pyright and editors read, and imports the module. The module takes the root off the
import path: `bazel`, `scripts`, `setup` and `third_party` would be importable, too. Instead it adds
a finder of the package alone, so that Python has one path for every file. mypy reads the import
path and asks no finder: for it a folder of the tree is there, with nothing but a link to the
package. The module that `import torch` calls is a copy, so that torch can be imported when the tree
is gone. `develop` does not call pip, which takes longer to start than an incremental build; the
PEP 660 hook packs the same files.
"""

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bazel.pybuild.dist import sources
from bazel.pybuild.errors import BuildError
from bazel.pybuild.files import remove, replace

if TYPE_CHECKING:
    from bazel.pybuild.dist.archive import Source
    from bazel.pybuild.dist.metadata import Metadata

NAME = "torch_xla_lite"
PTH = f"__editable__.{NAME}.pth"
FINDER = f"__editable___{NAME}.py"
LINKED = "build/editable"  # The folder with the link.
TAG = "py3-none-any"

_FINDER_TEXT = '''\
"""Imports {name} from its source tree. `python setup.py develop` of that tree writes this file."""

import sys

ROOT = {root!r}
LINKED = {linked!r}


class Finder:
    """Finds the package as if the tree were the last folder of the import path."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "{name}":
            return None
        from importlib.machinery import PathFinder

        found = PathFinder.find_spec(name, [folder for folder in sys.path if folder != LINKED])
        if found is None or found.loader is None or found.origin is None:
            found = PathFinder.find_spec(name, [ROOT])
        if found is None or found.origin is None:
            raise ModuleNotFoundError(
                f"{name} is installed from {{ROOT}}, where it is not any more. Install it from "
                f"where it is:  python setup.py develop\\nor uninstall it:  "
                f"{{sys.executable}} -m pip uninstall {name}",
                name=name,
            )
        return found


sys.meta_path.insert(0, Finder)
# The .pth file added it, for tools that read no Python.
if ROOT in sys.path[-2:]:
    sys.path.remove(ROOT)
'''


def site_folder() -> Path:
    """The folder of this interpreter's packages."""
    # In a virtual environment, the same as from sysconfig, without the time of its import.
    folder = (
        Path(sys.prefix)
        / sys.platlibdir
        / f"python{sys.version_info.major}.{sys.version_info.minor}"
        / "site-packages"
    )
    if sys.prefix != sys.base_prefix and folder.is_dir():
        return folder
    import sysconfig

    return Path(sysconfig.get_path("purelib"))


def commands_folder() -> Path:
    """The folder of programs that this interpreter's packages install."""
    import sysconfig

    return Path(sysconfig.get_path("scripts"))


def check(site: Path, commands: Path) -> None:
    """Raises BuildError if the editable install cannot be made there, or would have no effect."""
    for what, folder in (("packages", site), ("commands", commands)):
        if folder.exists() and not os.access(folder, os.W_OK):
            raise BuildError(
                f"The {what} of {sys.executable} are in {folder}, where you may not write.",
                "Make your own environment:  python3 -m venv .venv && . .venv/bin/activate",
            )
    wheels = [info for info in installed(site) if not _is_editable(info)]
    names = [info.name.partition("-")[0] for info in wheels if (info / "RECORD").exists()]
    if names:
        names += [f"{NAME}_lib"] if any(site.glob(f"{NAME}_lib-*.dist-info")) else []
        raise BuildError(
            f"{' and '.join(names)}, installed from a wheel in {site}, would hide this tree.",
            f"Uninstall it:  {sys.executable} -m pip uninstall --yes {' '.join(names)}",
        )
    package = site / NAME / "__init__.py"
    if package.exists():
        raise BuildError(
            f"{package.parent} would be imported instead of this tree, and no installed "
            "distribution lists its files.",
            f"Remove it:  rm -r {package.parent}",
        )


def in_place(root: Path, site: Path, version: str | None = None) -> bool:
    """Whether the editable install of this tree exists and would be made again as it is.

    Args:
      root: of the tree.
      site: folder of packages.
      version: overrides the version of the tree.
    """
    try:
        if (site / PTH).read_text() != _pth_text(root):
            return False
        if (site / FINDER).read_text() != _finder_text(root):
            return False
        if _autoload(site).read_bytes() != (root / sources.AUTOLOAD_SOURCE).read_bytes():
            return False
        described = os.stat(root / "pyproject.toml").st_mtime_ns
        (info,) = installed(site)
        found = info.name.removeprefix(f"{NAME}-").removesuffix(".dist-info")
        if found != version if version else not _has_version(root, found):
            return False
        return _is_editable(info) and os.stat(info / "METADATA").st_mtime_ns >= described
    except (OSError, ValueError):
        # A file is missing, or there is not exactly one .dist-info folder.
        return False


def _has_version(root: Path, version: str) -> bool:
    """As metadata.read: the import of a TOML parser would take longer than the rest of a build that
    has nothing to do."""
    released = root / "PKG-INFO"
    if released.exists():
        return f"\nVersion: {version}\n" in released.read_text()
    return f'\nversion = "{version}"\n' in (root / "pyproject.toml").read_text()


def installed(site: Path) -> list[Path]:
    """The .dist-info folders of the package. There are several after an interrupted install, or
    with a Python-only wheel, which has another name."""
    ours = (f"{NAME}-", f"{NAME}_python-")
    entries = os.listdir(site)
    return [site / e for e in entries if e.startswith(ours) and e.endswith(".dist-info")]


def _is_editable(info: Path) -> bool:
    """Whether it is an editable install, of this or of another tree."""
    record = info / "RECORD"
    return record.exists() and PTH in record.read_text()


def install(root: Path, site: Path, commands: Path, version: str | None = None) -> None:
    """Makes the editable install of this tree, and removes that of another tree.

    Args:
      root: of the tree.
      site: folder of packages.
      commands: folder for the programs of the package, usually commands_folder().
      version: overrides the version of the tree.
    """
    from bazel.pybuild.dist import archive, metadata

    check(site, commands)
    described = metadata.read(root, version)
    for other in installed(site):
        remove(other)
    folder = site / described.folder
    # The .dist-info folder comes last, so that a complete one proves a complete install.
    replace(site / FINDER, _finder_text(root))
    replace(site / PTH, _pth_text(root))
    replace(_autoload(site), (root / sources.AUTOLOAD_SOURCE).read_bytes())
    temporary = site / f".{described.folder}.new"
    remove(temporary)
    temporary.mkdir()
    contents = files(root, described)
    contents[f"{described.folder}/INSTALLER"] = b"setup.py\n"
    contents[f"{described.folder}/direct_url.json"] = _direct_url(root)
    for path, source in contents.items():
        if path.startswith(described.folder):
            file = temporary / Path(path).relative_to(described.folder)
            replace(file, archive.read(source))
    listed = [*contents, f"{described.folder}/RECORD"]
    listed += [os.path.relpath(file, site) for file in _write_commands(described, commands)]
    replace(temporary / "RECORD", "".join(f"{path},,\n" for path in listed))
    # A pyproject.toml with a time in the future is not newer than what was made of it.
    latest = max(os.stat(root / "pyproject.toml").st_mtime_ns, time.time_ns())
    os.utime(temporary / "METADATA", ns=(latest, latest))
    temporary.rename(folder)


def link(root: Path) -> None:
    """Makes the link for mypy, where `clean` has removed it."""
    folder = root / LINKED
    if not (folder / NAME).is_symlink():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NAME).symlink_to(f"../../{NAME}")


def files(root: Path, described: "Metadata") -> dict[str, "Source"]:
    """The files of the install without an installer's, relative to the folder of packages."""
    from bazel.pybuild.dist import wheel_format

    info = wheel_format.dist_info(root, described, TAG, pure=True)
    finder = {FINDER: _finder_text(root).encode(), PTH: _pth_text(root).encode()}
    return {**finder, sources.AUTOLOAD: root / sources.AUTOLOAD_SOURCE, **info}


def _write_commands(described: "Metadata", folder: Path) -> list[Path]:
    """Writes the programs of the entry points, as pip does, and returns the files."""
    folder.mkdir(exist_ok=True)
    files = []
    for name, what in described.entry_points.get("console_scripts", {}).items():
        module, _, function = what.partition(":")
        text = (
            f"{_first_lines(sys.executable)}import sys\n\nfrom {module} import {function}\n\n"
            f"sys.exit({function}())\n"
        )
        replace(folder / name, text, 0o755)
        files.append(folder / name)
    return files


def _first_lines(python: str) -> str:
    """The first lines of a program, which start the interpreter.

    The system splits a #! line at spaces and cuts off a long one. In these cases a shell runs the
    second line, which is a string for Python."""
    if " " not in python and len(python) < 120:
        return f"#!{python}\n"
    return f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\" #'''\n"


def _autoload(site: Path) -> Path:
    return site / sources.AUTOLOAD


def _pth_text(root: Path) -> str:
    return f"{root}\n{root / LINKED}\nimport {FINDER.removesuffix('.py')}\n"


def _finder_text(root: Path) -> str:
    return _FINDER_TEXT.format(name=NAME, root=str(root), linked=str(root / LINKED))


def _direct_url(root: Path) -> bytes:
    """PEP 610: where the install comes from; pip shows it as the project's location."""
    import json

    return json.dumps({"dir_info": {"editable": True}, "url": root.as_uri()}).encode() + b"\n"
