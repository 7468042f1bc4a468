"""scripts/cc_deps.py: C++ targets by the names of files, and what they include, in a small tree."""

from pathlib import Path

import pytest

from scripts import cc_deps

_A, _TEST = "torch_xla_lite/csrc/a", "test/csrc/a"
Deps = dict[str, dict[str, tuple[list[str], list[str]]]]


def _deps(root: Path, files: dict[str, str]) -> Deps:
    """The lists of a tree of these files: path -> the headers that it includes, in words."""
    folders = {Path(path).parent for path in files}
    texts = {"bazel/source_files.bzl": "ROOT_FILES = []\n"}
    texts |= {f"{folder}/BUILD.bazel": "lite_cc_files(CC_DEPS)\n" for folder in folders}
    texts |= {
        path: "".join(f'#include "{header}"\n' for header in headers.split())
        for path, headers in files.items()
    }
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    found: Deps = {}
    for text in cc_deps.texts(root).values():
        names: dict[str, Deps] = {}
        exec(text, names)
        found |= names["CC_DEPS"]
    return found


def test_a_source_and_its_header_are_a_library_that_depends_on_what_both_include(tmp_path: Path):
    files = {
        f"{_A}/x.cc": f"{_A}/x.h {_A}/y.h vector",
        f"{_A}/x.h": "torch_xla_lite/csrc/b/z.h",
        f"{_A}/y.h": "",
        f"{_A}/y.cu": f"{_A}/y.h",
        "torch_xla_lite/csrc/b/z.h": "",
    }
    assert _deps(tmp_path, files) == {
        _A: {
            "x": (["x.cc", "x.h"], [":y", "//torch_xla_lite/csrc/b:z"]),
            "y": (["y.h"], []),
            "y_cuda": (["y.cu"], [":y"]),
        },
        "torch_xla_lite/csrc/b": {"z": (["z.h"], [])},
    }


def test_files_in_a_circle_are_one_library(tmp_path: Path):
    files = {
        f"{_A}/part.cc": f"{_A}/part.h {_A}/whole.h",
        f"{_A}/part.h": "",
        f"{_A}/user.cc": f"{_A}/whole.h",
        f"{_A}/whole.cc": f"{_A}/whole.h {_A}/part.h",
        f"{_A}/whole.h": "",
    }
    assert _deps(tmp_path, files)[_A] == {
        "user": (["user.cc"], [":whole"]),
        "whole": (["part.cc", "part.h", "whole.cc", "whole.h"], []),
    }


def test_the_tests_of_a_folder_are_one_with_what_only_they_include(tmp_path: Path):
    files = {
        f"{_TEST}/base.h": f"{_TEST}/deep.h gtest/gtest.h",
        f"{_TEST}/deep.h": "",
        f"{_TEST}/one_test.cc": f"{_TEST}/base.h {_TEST}/toy.h gtest/gtest.h",
        f"{_TEST}/two_test.cc": f"{_A}/x.h",
        f"{_TEST}/toy.h": "",
        f"{_A}/x.h": "",
        "test/csrc/b/other.cc": f"{_TEST}/toy.h gtest/gtest.h",
    }
    deps = _deps(tmp_path, files)
    own = ["base.h", "deep.h", "one_test.cc", "two_test.cc"]
    assert deps[_TEST] == {"a": (own, [":toy", f"//{_A}:x"]), "toy": (["toy.h"], [])}
    assert deps["test/csrc/b"] == {
        "other": (["other.cc"], [f"//{_TEST}:toy", "@googletest//:gtest"])
    }


@pytest.mark.parametrize(
    ("headers", "labels"),
    [
        ("c10/core/Device.h", ["@torch//:c10"]),
        ("ATen/core/TensorBase.h c10/core/Device.h", ["@torch//:tensor_base"]),
        ("ATen/core/Tensor.h ATen/ops/cat.h", ["@torch//:operators"]),
        (
            "ATen/core/CachingHostAllocator.h ATen/ops/cat.h",
            ["@torch//:host_memory", "@torch//:operators"],
        ),
        (
            "Python.h pybind11/stl.h xla/ffi/api/ffi.h",
            ["@jaxlib//:xla_ffi", "@pybind11", "@python//:headers"],
        ),
    ],
)
def test_others_headers_have_the_highest_layer_of_torch(
    tmp_path: Path, headers: str, labels: list[str]
):
    assert _deps(tmp_path, {f"{_A}/x.cc": headers})[_A] == {"x": (["x.cc"], labels)}
