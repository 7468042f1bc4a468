"""Finds the Python packages that the C++ code is built against, without importing them.

installed(["torch"], sys.path)["torch"].version     # "2.13.0+cpu"
wanted(root)["torch"]                               # "2.13.0", from requirements.txt
"""

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from bazel.pybuild.machine.find_bazel import which

# The build reads headers, symbols or version numbers of these.
BUILT_AGAINST = ("torch", "jax", "jaxlib", "pybind11")

_ANSWER = "\n=torch_xla_lite="
# The package of the library wheel, to which a Python-only wheel is linked.
LIBRARY = "torch-xla-lite-lib"


class Package(NamedTuple):
    """An installed distribution.

    Attributes:
      name: normalized, such as torch-xla-lite-lib.
      version: with its local part, such as 2.13.0+cpu.
      info: its .dist-info folder.
    """

    name: str
    version: str
    info: Path

    @property
    def changed_ns(self) -> int:
        """When it was installed: pip writes the list of files last."""
        for name in ("RECORD", "METADATA", "."):
            try:
                return os.stat(self.info / name).st_mtime_ns
            except OSError:
                continue
        return 0


def search_path() -> list[str]:
    """The folders in which this interpreter finds packages."""
    return [folder for folder in sys.path if folder]


def environment() -> list[str]:
    """Names and versions of all packages in this interpreter's environment but our own.

    An environment may also use the packages of its base. setuptools adds a folder to sys.path whose
    packages belong to setuptools.
    """
    found = set()
    for folder in search_path():
        ours = [p for p in (sys.prefix, sys.base_prefix) if Path(folder).is_relative_to(p)]
        if ours and folder.endswith("-packages") and os.path.isdir(folder):
            found |= {name for name in os.listdir(folder) if name.endswith(".dist-info")}
    return sorted(name for name in found if not name.startswith("torch_xla_lite"))


def buildgrid() -> str:
    """The versions in the environment of BuildGrid, which scripts/test.sh makes; empty without."""
    try:
        return (Path(sys.prefix) / "buildgrid" / ".requirements.txt").read_text()
    except OSError:
        return ""


def own_folders() -> list[str]:
    """The folders of this interpreter's packages, without those that PYTHONPATH and the user's
    settings add."""
    import json
    import subprocess

    # The mark tells the answer from what the start of an interpreter prints.
    code = "import json, sys; print(sys.argv[1] + json.dumps(sys.path))"
    command = [sys.executable, "-I", "-c", code, _ANSWER]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(said.partition(_ANSWER)[2].partition("\n")[0])


def installed(names: Iterable[str], folders: Iterable[str]) -> dict[str, Package]:
    """Finds distributions by the names of their .dist-info folders.

    Reading the folders' names takes a millisecond, importing importlib.metadata alone takes twenty.

    Args:
      names: of distributions.
      folders: to search; the first hit wins, as for imports.
    """
    missing = set(names)
    found: dict[str, Package] = {}
    for folder in folders:
        try:
            entries = os.listdir(folder)
        except OSError:
            continue
        for entry in entries:
            if not entry.endswith(".dist-info"):
                continue
            name, _, version = entry.removesuffix(".dist-info").partition("-")
            name = name.lower().replace("_", "-")
            if name in missing:
                missing.discard(name)
                found[name] = Package(name, version, Path(folder) / entry)
    return found


def wanted(root: Path) -> dict[str, str]:
    """Versions of the project's own environment: those that requirements.txt pins."""
    pins = {}
    for line in (root / "requirements.txt").read_text().splitlines():
        name, equals, version = line.partition("#")[0].partition("==")
        if equals:
            pins[name.strip()] = version.strip()
    return pins


class Versions(NamedTuple):
    """Releases, from a first one on and before another one, as (major, minor)."""

    first: tuple[int, int]
    end: tuple[int, int]

    def contain(self, version: str) -> bool:
        """Whether a version such as 2.13.0+cpu is one of them."""
        release = re.match(r"(\d+)\.(\d+)", version)
        return release is not None and self.first <= tuple(map(int, release.groups())) < self.end

    def __str__(self) -> str:
        last = (self.end[0], self.end[1] - 1)
        return " to ".join(f"{major}.{minor}" for major, minor in (self.first, last))


def accepted(root: Path) -> dict[str, Versions]:
    """Versions that a build takes: those of the dependencies in pyproject.toml."""
    import tomllib

    file = root / "pyproject.toml"
    project = tomllib.loads(file.read_text())["project"] if file.exists() else {}
    requirements = project.get("dependencies", ())
    found = {}
    for requirement in requirements:
        if parts := re.fullmatch(r"([\w-]+)>=(\d+)\.(\d+),<(\d+)\.(\d+)", requirement):
            numbers = [int(number) for number in parts.groups()[1:]]
            found[parts[1]] = Versions((numbers[0], numbers[1]), (numbers[2], numbers[3]))
    return found


def exact(requirements: Iterable[str]) -> tuple[str, ...]:
    """The requirements, of what a build reads in the version that is installed."""
    there = installed(BUILT_AGAINST, search_path())

    def pinned(requirement: str) -> str:
        name = re.match(r"[\w-]*", requirement)[0]
        if name not in there:
            return requirement
        return f"{name}=={there[name].version.partition('+')[0]}"

    return tuple(map(pinned, requirements))


def install_command(requirements: Iterable[str], *options: str) -> str:
    """The command that installs packages for this interpreter, for a shell."""
    import importlib.util
    import shlex
    import sysconfig

    words = shlex.join([*options, *requirements])
    python = shlex.quote(sys.executable)
    managed = Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").exists()
    if managed and sys.prefix == sys.base_prefix:
        return f"{python} -m venv .venv && .venv/bin/python -m pip install {words}"
    if importlib.util.find_spec("pip"):
        return f"{python} -m pip install {words}"
    if which("uv", os.environ.get("PATH", os.defpath)):
        return f"uv pip install --python {python} {words}"
    return f"{python} -m ensurepip && {python} -m pip install {words}"


def fingerprint(packages: Mapping[str, Package]) -> str:
    """Names, versions and hashes of the installed files. When it changes, Bazel reads them again.

    The same packages have the same fingerprint in all environments, because RECORD contains paths
    relative to the environment.
    """
    import hashlib

    parts = []
    for name, package in sorted(packages.items()):
        record = package.info / "RECORD"
        content = record.read_bytes() if record.exists() else b""
        # Without the files that pip and Python add on each machine, such as bytecode.
        lines = (
            line
            for line in sorted(content.splitlines())
            if b"__pycache__" not in line
            and b".dist-info/" not in line
            and not line.startswith(b"..")
        )
        digest = hashlib.sha256(b"\n".join(lines)).hexdigest()[:12]
        parts.append(f"{name}-{package.version}-{digest}")
    return ",".join(parts)
