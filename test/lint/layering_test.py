"""What a part of the C++ code may include: less is faster to compile, and easier to understand."""

import re
from pathlib import Path

import pytest

from test.lint.source_tree import ROOT, files

_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
_PACKAGE = "torch_xla_lite/csrc/"

# Part -> parts whose headers it may include beside its own.
_BELOW = {
    "ir": set(),
    "runtime": {"ir"},
    "tensor": {"ir", "runtime"},
    "device": {"ir", "runtime", "tensor"},
    "dispatch": {"device", "ir", "runtime", "tensor"},
    "ffi": {"dispatch"},
    "kernels": set(),
    "python": {"device", "dispatch", "ir", "runtime", "tensor"},
}

# Start of an include -> parts that may have it.
_OUTSIDE = {
    "ATen/": {"device", "dispatch", "ffi", "python", "tensor"},
    "Python.h": {"python"},
    "c10/": {"device", "dispatch", "ffi", "python", "tensor"},
    "pybind11/": {"python"},
    "torch/": {"device", "dispatch", "ffi", "python", "tensor"},
    "torch/csrc/": {"python"},
    "xla/": {"ffi", "kernels"},
}

# Seconds of compiler time each, for what smaller headers offer too.
_BANNED = {"ATen/ATen.h", "torch/all.h", "torch/extension.h", "torch/torch.h"}


def _sources() -> list[Path]:
    found = files(".cc", ".cu", ".cuh", ".h")
    return [file for file in found if file.parts[0] in ("torch_xla_lite", "test")]


def _part(file: Path) -> str:
    return file.relative_to(_PACKAGE).parts[0]


def _includes(file: Path) -> list[str]:
    return _INCLUDE.findall((ROOT / file).read_text(encoding="utf-8"))


_CSRC = [file for file in _sources() if file.as_posix().startswith(_PACKAGE)]


@pytest.mark.parametrize("file", _sources(), ids=str)
def test_no_header_is_included_that_costs_seconds(file: Path):
    assert not _BANNED & set(_includes(file))


@pytest.mark.parametrize("file", _CSRC, ids=str)
def test_a_part_includes_its_own_headers_and_those_of_parts_below(file: Path):
    allowed = _BELOW[_part(file)] | {_part(file)}
    used = {_part(Path(name)) for name in _includes(file) if name.startswith(_PACKAGE)}
    assert used <= allowed


@pytest.mark.parametrize("file", _CSRC, ids=str)
def test_a_part_includes_of_the_outside_what_it_is_allowed_to(file: Path):
    for name in _includes(file):
        for start, parts in _OUTSIDE.items():
            if name.startswith(start):
                assert _part(file) in parts, f"{file} includes {name}"


@pytest.mark.parametrize("file", [f for f in _CSRC if f.suffix in (".cuh", ".h")], ids=str)
def test_the_guard_of_a_header_is_its_path(file: Path):
    guard = re.sub(r"[^A-Za-z0-9]", "_", file.as_posix()).upper() + "_"
    assert f"#ifndef {guard}\n#define {guard}\n" in (ROOT / file).read_text(encoding="utf-8")
