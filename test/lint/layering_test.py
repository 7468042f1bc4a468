"""Checks which headers each layer of the C++ code includes, the include guards, and that no file
lists ops."""

import re
from pathlib import Path

from test.lint.source_tree import expect_none, files, text

_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
_PACKAGE = "torch_xla_lite/csrc/"

# Layer -> other layers whose headers it may include.
_BELOW = {
    "ir": set(),
    "runtime": {"ir"},
    "tensor": {"ir", "runtime"},
    "device": set(),
    "ops": {"device", "tensor"},
    "aten": {"ops"},
    "infer": {"aten", "ir", "ops", "runtime", "tensor"},
    "record": {"aten", "device", "infer", "ir", "ops", "runtime", "tensor"},
    "kernels_of_torch": {"device", "infer", "ir", "ops", "record", "runtime", "tensor"},
    "interpreter": {"aten", "device", "ir", "kernels", "ops", "tensor"},
    "ffi": {"aten", "ops", "tensor"},
    "kernels": set(),
    "python": {
        "aten",
        "device",
        "interpreter",
        "ir",
        "kernels_of_torch",
        "record",
        "runtime",
        "tensor",
    },
}

_WITH_TORCH = _BELOW.keys() - {"ir", "runtime", "kernels"}

# Prefix of an include -> layers that may use it; the longest decides.
_OUTSIDE = {
    "ATen/": _WITH_TORCH,
    "Python.h": {"python"},
    "c10/": _WITH_TORCH,
    "pybind11/": {"python"},
    "torch/": _WITH_TORCH - {"interpreter"},
    "torch/csrc/": {"python"},
    "torch/csrc/autograd/custom_function.h": {"kernels_of_torch"},
    "xla/": {"ffi", "kernels"},
}

# Each costs seconds of compiler time; smaller headers declare the same.
_BANNED = {"ATen/ATen.h", "torch/all.h", "torch/extension.h", "torch/torch.h"}


_CPP = [f for f in files(".cc", ".cu", ".cuh", ".h") if f.parts[0] in ("torch_xla_lite", "test")]


def _layer(file: str | Path) -> str:
    """The layer of a file of the package; empty for others."""
    return str(file).removeprefix(_PACKAGE).partition("/")[0] if _in_package(file) else ""


def _in_package(file: str | Path) -> bool:
    return str(file).startswith(_PACKAGE)


# Each file with each header that it includes.
_INCLUDES = [(file, header) for file in _CPP for header in _INCLUDE.findall(text(file))]


def test_the_table_in_the_documentation_names_the_same_layers():
    table = text(Path("docs/architecture.md"))
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", table, re.MULTILINE)
    assert {layer: set(re.findall(r"`(\w+)`", names)) for layer, names in rows} == _BELOW


def test_no_banned_header_is_included():
    expect_none(
        f"{file}: include smaller headers in place of {header}"
        for file, header in _INCLUDES
        if header in _BANNED
    )


def test_a_layer_includes_only_its_own_headers_and_those_of_lower_layers():
    expect_none(
        f"{file}: {header} is of layer {_layer(header)}, which {_layer(file)} may not include"
        for file, header in _INCLUDES
        if _in_package(file) and _in_package(header)
        if _layer(header) not in {_layer(file), *_BELOW[_layer(file)]}
    )


def test_a_layer_includes_only_external_headers_that_it_may_use():
    expect_none(
        f"{file}: layer {_layer(file)} may not include {header}"
        for file, header in _INCLUDES
        for prefix in [max(filter(header.startswith, _OUTSIDE), key=len, default=None)]
        if _in_package(file) and prefix and _layer(file) not in _OUTSIDE[prefix]
    )


def test_the_library_of_custom_calls_registers_nothing_that_the_bridge_registers():
    # Both are loaded. A second copy of the device's guard would take the place of the first.
    reached, new = set(), {str(file) for file in _CPP if _layer(file) == "ffi"}
    while new:
        reached |= new
        headers = {str(header) for file, header in _INCLUDES if str(file) in new}
        sources = {header.removesuffix(".h") + ".cc" for header in headers}
        new = (headers | sources) - reached
    expect_none(
        f"{file} registers something, and belongs to the library of custom calls, too"
        for file in sorted(reached & {str(file) for file in _CPP})
        if re.search("^C10_REGISTER|^TORCH_LIBRARY", text(Path(file)), re.MULTILINE)
    )


# Kernels and draws, and torch's that are kept, are found by the names of their ops; the table is
# generated.
_NAMES_OPS = re.compile(r"/kernels_of_torch/|/kept_kernel\.cc$|/op_table\.h$")


def test_the_facts_of_ops_stand_in_the_decorators_of_their_lowerings():
    # A longer list of ops in C++ is a fact that has no name yet.
    literals = {file: re.findall(r'"(?:aten|torch_xla_lite)::', text(file)) for file in _CPP}
    expect_none(
        f"{file}: {len(found)} names of ops; add a fact to torch_xla_lite/lowering/base/facts.py"
        for file, found in literals.items()
        if _in_package(file) and len(found) > 10 and not _NAMES_OPS.search(file.as_posix())
    )


def test_the_facts_of_ops_name_functions_that_there_are():
    table = text(Path(_PACKAGE, "ops/op_table.h"))
    sources = {
        "kernel_needs": "aten/conditions.cc",
        "refused_if": "infer/refused_calls.cc",
        "shape": "infer/shape_rules.cc",
        "own_kernel": "interpreter/cpu_call.cc",
        "completed_by": "interpreter/completion.cc",
        "draw": "interpreter/draw.cc",
    }
    for fact, source in sources.items():
        named = set(re.findall(rf'\.{fact} = "(\w+)"', table))
        known = set(re.findall(r'\{"(\w+)", ', text(Path(_PACKAGE, source))))
        assert named
        expect_none(f"{source} has no function {name}, a fact of an op" for name in named - known)


def test_the_include_guard_is_the_path():
    guards = {
        file: re.sub(r"[^A-Za-z0-9]", "_", file.as_posix()).upper() + "_"
        for file in _CPP
        if _in_package(file) and file.suffix in (".cuh", ".h")
    }
    expect_none(
        f"{file}: name the include guard {guard}"
        for file, guard in guards.items()
        if f"#ifndef {guard}\n#define {guard}\n" not in text(file)
    )
