"""Checks which headers each layer of the C++ code includes, and the include guards."""

import re
from pathlib import Path

import pytest

from test.lint.source_tree import ROOT, files

_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
_PACKAGE = "torch_xla_lite/csrc/"

# Layer -> other layers whose headers it may include.
_BELOW = {
    "ir": set(),
    "runtime": {"ir"},
    "tensor": {"ir", "runtime"},
    "device": {"ir", "runtime", "tensor"},
    "dispatch": {"device", "ir", "runtime", "tensor"},
    "interpreter": {"dispatch", "ir", "tensor"},
    "ffi": {"dispatch", "tensor"},
    "kernels": set(),
    "python": {"device", "dispatch", "interpreter", "ir", "runtime", "tensor"},
}

# Prefix of an include -> layers that may use it.
_OUTSIDE = {
    "ATen/": {"device", "dispatch", "ffi", "interpreter", "python", "tensor"},
    "Python.h": {"python"},
    "c10/": {"device", "dispatch", "ffi", "interpreter", "python", "tensor"},
    "pybind11/": {"python"},
    "torch/": {"device", "dispatch", "ffi", "python", "tensor"},
    "torch/csrc/": {"python"},
    "xla/": {"ffi", "kernels"},
}

# Each costs seconds of compiler time; smaller headers declare the same.
_BANNED = {"ATen/ATen.h", "torch/all.h", "torch/extension.h", "torch/torch.h"}


def _sources() -> list[Path]:
    found = files(".cc", ".cu", ".cuh", ".h")
    return [file for file in found if file.parts[0] in ("torch_xla_lite", "test")]


def _layer(file: Path) -> str:
    return file.relative_to(_PACKAGE).parts[0]


def _includes(file: Path) -> list[str]:
    return _INCLUDE.findall((ROOT / file).read_text(encoding="utf-8"))


_CSRC = [file for file in _sources() if file.as_posix().startswith(_PACKAGE)]


@pytest.mark.parametrize("file", _sources(), ids=str)
def test_no_banned_header_is_included(file: Path):
    assert not _BANNED & set(_includes(file))


@pytest.mark.parametrize("file", _CSRC, ids=str)
def test_a_layer_includes_only_its_own_headers_and_those_of_lower_layers(file: Path):
    allowed = _BELOW[_layer(file)] | {_layer(file)}
    used = {_layer(Path(name)) for name in _includes(file) if name.startswith(_PACKAGE)}
    assert used <= allowed


@pytest.mark.parametrize("file", _CSRC, ids=str)
def test_a_layer_includes_only_external_headers_that_it_may_use(file: Path):
    for name in _includes(file):
        for prefix, layers in _OUTSIDE.items():
            if name.startswith(prefix):
                assert _layer(file) in layers, f"{file} includes {name}"


@pytest.mark.parametrize("file", [f for f in _CSRC if f.suffix in (".cuh", ".h")], ids=str)
def test_the_include_guard_is_the_path(file: Path):
    guard = re.sub(r"[^A-Za-z0-9]", "_", file.as_posix()).upper() + "_"
    assert f"#ifndef {guard}\n#define {guard}\n" in (ROOT / file).read_text(encoding="utf-8")
