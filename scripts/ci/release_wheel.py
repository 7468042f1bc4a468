#!/usr/bin/env python3
"""Builds a wheel without any cache, and checks that it has the same bytes as one from the cache.

    python scripts/ci/release_wheel.py                       # writes it to dist/
    BUILD_LIB_WHL=1 python scripts/ci/release_wheel.py       # the variables of setup.py select it

The wheel to release is built in a copy of this tree, in another folder, by a Bazel server of its
own, without the disk cache, the remote cache and the user's rc file. The one to compare with is
built in this tree, as always. A result of a cache that does not belong to these sources, or that
another compiler made, is a difference.

Nothing is written if the two differ: the files that do are named, and diffoscope shows how if it is
installed (Debian: diffoscope-minimal). Exit code: 0 if they are equal, 1 if not, 2 if a build
failed or used a cache.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from bazel.pybuild.machine import find_bazel  # noqa: E402
from scripts.bench import clones  # noqa: E402

_OPTIONS = "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS"
_STARTUP = "TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS"


class Failure(Exception):
    """A build failed, or used a cache."""


def build(tree: Path, folder: Path, **changes: str) -> Path:
    """Builds a wheel in a tree, and returns it."""
    environ = {**os.environ, **changes}
    command = [sys.executable, "setup.py", "bdist_wheel", "-d", folder]
    if subprocess.run(command, cwd=tree, env=environ, stdout=2, check=False).returncode:
        raise Failure(f"the wheel could not be built in {tree}")
    (wheel,) = folder.glob("*.whl")
    return wheel


def without_cache(folder: Path) -> Path:
    """Builds a wheel in a copy of this tree."""
    tree = folder / "tree"
    clones.copy_tree(tree)
    startup = f"{os.environ.get(_STARTUP, '')} --nohome_rc --output_user_root={folder / 'bazel'}"
    changes = {
        _STARTUP: startup,
        _OPTIONS: f"{os.environ.get(_OPTIONS, '')} --disk_cache= --remote_cache=",
        "TORCH_XLA_LITE_REMOTE_CACHE": "",
    }
    try:
        wheel = build(tree, folder / "dist", **changes)
        hits = json.loads((tree / "build" / "report.json").read_text())["cache_hits"]
    finally:
        shutdown = [find_bazel.default(), *startup.split(), "shutdown"]
        subprocess.run(shutdown, cwd=tree, capture_output=True, check=False)
    if hits["disk"] or hits["remote"]:
        raise Failure(f"the build without a cache used one: {hits}")
    return wheel


def differences(a: Path, b: Path) -> list[str]:
    """The members of two wheels that differ; empty if the wheels have the same bytes."""
    if a.read_bytes() == b.read_bytes():
        return []
    with zipfile.ZipFile(a) as first, zipfile.ZipFile(b) as second:
        names = sorted({*first.namelist(), *second.namelist()})
        contents = [
            {name: archive.read(name) for name in archive.namelist()} for archive in (first, second)
        ]
    different = [name for name in names if contents[0].get(name) != contents[1].get(name)]
    return different or ["the archives: the order, times or permissions of their files"]


def diffoscope(a: Path, b: Path) -> str:
    """How two files differ; empty where diffoscope is not installed."""
    if not shutil.which("diffoscope"):
        return ""
    command = ["diffoscope", "--max-report-size=20000", a, b]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-d", "--dist-dir", type=Path, default=Path("dist"), help="default: dist")
    target = parser.parse_args().dist_dir.absolute()
    with tempfile.TemporaryDirectory(prefix="release-wheel-") as name:
        folder = Path(name)
        try:
            cached = build(ROOT, folder / "cached")
            released = without_cache(folder)
        except (Failure, OSError) as failure:
            print(f"error: {failure}", file=sys.stderr)
            return 2
        finally:
            # Bazel removes the permission to write from some folders.
            subprocess.run(["chmod", "-R", "u+w", folder], check=False)
        different = differences(cached, released)
        if different:
            print(f"error: {released.name} differs from the one that was built with a cache in:")
            print("".join(f"  {name}\n" for name in different), end="")
            print(diffoscope(cached, released))
            return 1
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy2(released, target)
    print(f"{target / released.name}: built without a cache; the same bytes as with one")
    return 0


if __name__ == "__main__":
    sys.exit(main())
