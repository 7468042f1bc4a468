"""The inputs of Bazel's settings. Collecting them takes milliseconds."""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from bazel.pybuild.machine import cuda, packages, toolchain
from bazel.pybuild.options import Options


class Inputs(NamedTuple):
    """What the settings depend on; files with their times."""

    code: dict[str, int | None]
    pins: dict[str, str]
    python: str
    bazel: str
    bazel_files: dict[str, int | None]
    bazelisk: str
    compiler: str
    toolchain: dict[str, int | None]
    cache: str
    cuda: list[str]
    packages: dict[str, list[str | int]]
    environment: list[str]
    buildgrid: str


def collect(
    root: Path,
    bazel: Path,
    installed: Mapping[str, packages.Package],
    cache: Path,
    options: Options,
    environ: Mapping[str, str],
) -> Inputs:
    """Collects what the settings depend on.

    Args:
      root: of the tree.
      bazel: to call.
      installed: the packages that the C++ code is built against, and our own library.
      cache: the folder of this project's caches.
      options: from the environment.
      environ: usually os.environ.
    """
    folder = Path(__file__).parent
    code = sorted(entry.path for entry in os.scandir(folder) if entry.is_file())
    pins = packages.wanted(root)
    return Inputs(
        code=times([*code, *(folder.parent / name for name in ("bazelrc.py", "configure.py"))]),
        pins={name: pin for name, pin in pins.items() if name in packages.BUILT_AGAINST},
        python=f"{python_executable()} {sys.version.split()[0]}",
        bazel=str(bazel),
        bazel_files=times([bazel.resolve(), root / ".bazeliskrc"]),
        bazelisk=environ.get("USE_BAZEL_VERSION", ""),
        # Its name, too: preflight rejects a relative one.
        compiler=toolchain.compiler(environ),
        toolchain=times(toolchain.files(environ)),
        cache=str(cache),
        cuda=cuda.depends_on(options, environ),
        packages={name: [p.version, p.changed_ns] for name, p in sorted(installed.items())},
        environment=packages.environment(),
        buildgrid=packages.buildgrid(),
    )


def times(paths: Iterable[str | Path]) -> dict[str, int | None]:
    """When each file was changed; None for one that is missing."""
    times: dict[str, int | None] = {}
    for path in paths:
        try:
            # A program that sets the time of modification cannot set the time of change.
            times[str(path)] = max(os.stat(path).st_mtime_ns, os.stat(path).st_ctime_ns)
        except OSError:
            times[str(path)] = None
    return times


def python_executable() -> str:
    """The path of this interpreter, equal for `python setup.py` and `python3 setup.py`.

    With two names for one interpreter, Bazel would read all packages again at each change.
    """
    for name in ("python", f"python{sys.version_info.major}"):
        candidate = os.path.join(sys.prefix, "bin", name)
        if os.path.exists(candidate) and os.path.samefile(candidate, sys.executable):
            return candidate
    return sys.executable
