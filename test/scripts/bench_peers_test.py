"""What scripts/bench/peers.py reads from the log of a build, of a small copy of this tree."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bazel.pybuild.why import execution_log
from scripts.bench import peers
from test.build.nested import Nested

_MORE = """
lite_cc_library(
    name = "three",
    srcs = ["three.cc"],
    deps = [
        ":two",
        "@torch//:c10",
    ],
)

lite_cc_shared_library(
    name = "lib/libthree.so",
    dynamic_deps = [":lib/libtorch_xla_lite.so"],
    exported_names = ["_Z5threev"],
    deps = [":three"],
)
"""
_THREE = """\
#include "c10/core/DeviceType.h"
int two();
int three() { return two() + static_cast<int>(c10::DeviceType::CPU); }
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nested]:
    """A tree in which everything was built, also a library that is linked to the first one."""
    tree = Nested(tmp_path_factory.mktemp("nested"), tmp_path_factory.mktemp("shared"))
    build_file = tree.root / "torch_xla_lite" / "BUILD.bazel"
    build_file.write_text(build_file.read_text() + _MORE)
    tree.write("three.cc", _THREE)
    tree.build("--disk_cache=", "//torch_xla_lite:lib/libthree.so")
    yield tree
    tree.close()


@pytest.fixture(scope="module")
def objects(tree: Nested) -> list[peers.SharedObject]:
    root = tree.bazel("info", "execution_root").stdout.strip()
    return peers.read_build(tree.root / execution_log.FILE, Path(root))


def test_sources_libraries_and_flags_are_those_of_the_build(
    tree: Nested, objects: list[peers.SharedObject]
):
    first, second = objects
    sources = [{unit.source for unit in one.units} for one in objects]
    assert sources == [
        {"torch_xla_lite/one.cc", "torch_xla_lite/two.cc"},
        {"torch_xla_lite/three.cc"},
    ]
    assert (first.name, first.needs) == ("lib/libtorch_xla_lite.so", ())
    assert (second.name, second.needs) == ("lib/libthree.so", (first.name,))
    assert {"-std=c++20", "-O2", "-fPIC", "@TREE@"} <= set(first.compile_flags)
    assert "-Wl,-soname,libthree.so" in second.flags
    words = [*second.compile_flags, *second.flags]
    # Another tool runs in another folder.
    assert [word for word in words if word.startswith(("bazel-out/", "external/"))] == []


def _symbols(library: Path) -> set[tuple[str, ...]]:
    """The symbols that a library defines and those that it needs, without addresses."""
    command = ["nm", "--dynamic", library]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {tuple(line.split()[-2:]) for line in listed.splitlines()}


@pytest.mark.skipif(not shutil.which("ninja"), reason="ninja is not installed")
def test_ninja_builds_the_same_libraries(
    tree: Nested, objects: list[peers.SharedObject], tmp_path: Path
):
    # Of a clone, the generator uses what such a tree has, too.
    peer = peers.Peer("ninja", tmp_path, tree, objects)
    process = subprocess.run(["ninja"], cwd=peer.root, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout
    for one in objects:
        ours = tree.root / "bazel-bin" / "torch_xla_lite" / one.name
        assert _symbols(peer.root / "build" / one.name) == _symbols(ours)
