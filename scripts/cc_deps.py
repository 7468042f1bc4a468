#!/usr/bin/env python3
"""Writes which C++ targets each folder has: the files of each, and the targets that they include.

    python scripts/cc_deps.py             # after a change of #include lines, for a new file
    python scripts/cc_deps.py --check     # writes nothing; exit code 1 if a list is out of date

    FOLDER/cc_deps.bzl    for each folder of the root: folder -> target -> (files, deps)

`lite_cc_files()` in a BUILD file makes the targets of its folder:

    x.h, x.cc      the library x
    x.cu, x.cuh    the libraries x_cuda and x
    *_test.cc      one test with the name of the folder, to which also belongs what only it includes

Files that include each other in a circle are one library, with the name of the header that most
others include. Of torch's layers (third_party/torch/layers.py) a target has the highest alone.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from bazel.pybuild.dist import sources  # noqa: E402
from scripts import python_deps  # noqa: E402
from third_party.torch import layers  # noqa: E402

_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
_SUFFIXES = (".cc", ".cu", ".cuh", ".h")

# Beginnings of headers, and the targets that have them.
_OUTSIDE = {
    "Python.h": "@python//:headers",
    "autocast_ops.h": "@torch//:autocast_ops",
    "gtest/": "@googletest//:gtest",
    "meta_functions.h": "@torch//:meta",
    "pybind11/": "@pybind11",
    "xla/": "@jaxlib//:xla_ffi",
}
_HEADING = '''\
"""C++ targets of each folder: name -> (files, deps). Written by scripts/cc_deps.py."""

CC_DEPS = {
'''


def texts(root: Path) -> dict[str, str]:
    """Path of each list, relative to the root -> what it should contain."""
    files = [Path(path) for path in sources.all_files(root)]
    made = {
        path.parent
        for path in files
        if path.name == "BUILD.bazel" and "lite_cc_files(" in python_deps.content(root / path)
    }
    included = {
        path: _INCLUDE.findall(python_deps.content(root / path))
        for path in sorted(files)
        if path.suffix in _SUFFIXES and path.parent in made
    }
    names = _targets(included)
    blocks: dict[str, str] = {}
    for folder in sorted(made):
        lines = _block(
            {path: name for path, name in names.items() if path.parent == folder}, names, included
        )
        place = f"{folder.parts[0]}/cc_deps.bzl"
        blocks[place] = blocks.get(place, "") + f'    "{folder}": {{\n{lines}    }},\n'
    return {place: f"{_HEADING}{block}}}\n" for place, block in blocks.items()}


def _targets(included: Mapping[Path, list[str]]) -> dict[Path, str]:
    """The target of each file, by the names of files, circles, and what only tests include."""
    names = {path: _name(path) for path in included}
    users: dict[Path, set[Path]] = {path: set() for path in included}
    for path, headers in included.items():
        for header in headers:
            if Path(header) in users:
                users[Path(header)].add(path)
    for folder in {path.parent for path in included}:
        inside = [path for path in included if path.parent == folder]
        _join_circles(inside, names, users)
        _join_test(inside, names, users)
    return names


def _name(path: Path) -> str:
    if path.name.endswith("_test.cc"):
        return path.parent.name
    return f"{path.stem}_cuda" if path.suffix == ".cu" else path.stem


def _join_circles(
    inside: list[Path], names: dict[Path, str], users: Mapping[Path, set[Path]]
) -> None:
    """Gives the targets of a folder that need each other one name."""
    reached: dict[str, set[str]] = {}
    for name in {names[path] for path in inside}:
        waiting, found = [name], set[str]()
        while waiting:
            one = waiting.pop()
            of_one = {names[u] for p in inside if names[p] == one for u in users[p] if u in inside}
            waiting += of_one - found
            found |= of_one
        reached[name] = found
    uses = {path.stem: len(users[path]) for path in inside}
    for path in inside:
        circle = {other for other in reached[names[path]] if names[path] in reached[other]}
        if len(circle) > 1:
            names[path] = max(circle, key=lambda name: (uses.get(name, 0), name))


def _join_test(inside: list[Path], names: dict[Path, str], users: Mapping[Path, set[Path]]) -> None:
    """Moves the libraries that only the test of their folder includes into the test."""
    of_test = {path for path in inside if path.name.endswith("_test.cc")}
    found = set(of_test)
    while found:
        of_test |= found
        found = set()
        for path in set(inside) - of_test:
            own = {other for other in inside if names[other] == names[path]}
            others = {user for one in own for user in users[one]} - own
            if others and others <= of_test:
                found |= own
    names.update((path, path.parent.name) for path in of_test)


def _block(
    own: Mapping[Path, str], names: Mapping[Path, str], included: Mapping[Path, list[str]]
) -> str:
    """The lines of the targets of a folder."""
    lines = ""
    for name in sorted(set(own.values())):
        files = [path for path in own if own[path] == name]
        headers = {header for path in files for header in included[path]}
        labels = _inner(headers, names, files[0].parent, name) + _outer(headers)
        is_test = any(path.name.endswith("_test.cc") for path in files)
        deps = [label for label in labels if not (is_test and "googletest" in label)]
        files_, deps_ = (python_deps.quoted(words) for words in ([p.name for p in files], deps))
        lines += python_deps.entry(name, f"({files_}, {deps_})")
    return lines


def _inner(headers: set[str], names: Mapping[Path, str], folder: Path, target: str) -> list[str]:
    """The labels of this project's headers, those of their own folder first."""
    found = {(path.parent, names[path]) for path in map(Path, headers) if path in names}
    found -= {(folder, target)}
    return [
        f":{name}" if place == folder else f"//{place}:{name}"
        for place, name in sorted(found, key=lambda one: (one[0] != folder, str(one[0]), one[1]))
    ]


def _outer(headers: set[str]) -> list[str]:
    """The labels of the headers of others."""
    labels = {
        label for header in headers for start, label in _OUTSIDE.items() if header.startswith(start)
    }
    return sorted(labels | {f"@torch//:{name}" for name in layers.highest(headers)})


if __name__ == "__main__":
    sys.exit(python_deps.run(__doc__ or "", texts, "scripts/cc_deps.py"))
