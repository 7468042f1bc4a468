"""compile_commands.json as clangd reads it, for a small copy of this tree."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from test.build.nested import Nested

pytestmark = pytest.mark.nightly

_MORE = """
load("//bazel:defs.bzl", "lite_cc_test")

lite_cc_library(
    name = "three",
    srcs = ["three.cc"],
    hdrs = ["three.h"],
    deps = [
        "@jaxlib//:xla_ffi",
        "@torch//:python",
    ],
)

lite_cc_test(
    name = "tests",
    srcs = [
        "one_test.cc",
        "two_test.cc",
    ],
    deps = [":one"],
)
"""
# Headers of torch, pybind11, Python, XLA and this tree.
_THREE = """\
#include "torch/csrc/utils/pybind.h"
#include "torch_xla_lite/three.h"
#include "xla/ffi/api/ffi.h"

at::Tensor three = Three();
"""


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nested]:
    tree = Nested(tmp_path_factory.mktemp("nested"), tmp_path_factory.mktemp("shared"))
    tree.add("scripts/compile_commands.py")
    tree.append("torch_xla_lite/BUILD.bazel", _MORE)
    tree.write("three.h", '#include "ATen/core/Tensor.h"\nat::Tensor Three();\n')
    tree.write("three.cc", _THREE)
    for name in ("one_test.cc", "two_test.cc"):
        tree.write(name, '#include "gtest/gtest.h"\nTEST(One, Passes) {}\n')
    tree.configure()
    yield tree
    tree.close()


def _write(tree: Nested) -> Path:
    tree.run(tree.python, "scripts/compile_commands.py", check=True)
    return tree.root / "compile_commands.json"


def test_every_source_of_the_package_has_one_command(nested: Nested):
    files = [entry["file"] for entry in json.loads(_write(nested).read_text())]
    names = ("one", "one_test", "three", "two", "two_test")
    assert files == [f"torch_xla_lite/{name}.cc" for name in names]


def test_a_command_compiles_its_file_in_the_folder_that_it_names(nested: Nested):
    for entry in json.loads(_write(nested).read_text()):
        # The folders of outputs are made when Bazel runs the command.
        words = entry["arguments"][: entry["arguments"].index("-o")]
        words = [word for word in words if word not in ("-MD", "-MF") and ".pic.d" not in word]
        process = nested.run(*words, "-fsyntax-only")
        assert entry["directory"] == str(nested.root)
        assert process.returncode == 0, process.stderr


def test_the_file_is_written_only_when_its_content_changes(nested: Nested):
    before = _write(nested).stat()
    assert _write(nested).stat() == before


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("clangd") is None, reason="only scripts/test.sh installs clangd")
def test_clangd_finds_every_header(nested: Nested):
    for entry in json.loads(_write(nested).read_text()):
        process = nested.run("clangd", f"--check={entry['file']}", check=True)
        assert "All checks completed, 0 errors" in process.stderr
