"""Divides torch's headers into layers, by following #include lines from a few roots.

    python layers.py .../torch/include layers.bzl words.txt

A layer holds the headers that its roots reach, except those of the layers below. Conditions of the
preprocessor are ignored, except for one macro. So a layer may hold a few headers too many (648
instead of 643 for torch/library.h) but never too few.

The second file has all words of the headers: no other names can be used (third_party/interface.py).
"""

import functools
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

# A repository rule runs this file without the root of the tree on sys.path.
sys.path.insert(0, str(Path(__file__).absolute().parents[2]))

from third_party.torch import meta_functions

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.MULTILINE)
# torch's sources and ours are compiled with this macro. Without it, these blocks include the
# headers of all operators.
_ALL_OPERATORS = re.compile(
    rb"^#ifndef AT_PER_OPERATOR_HEADERS$.*?^#(?:else|endif)", re.MULTILINE | re.DOTALL
)


class Layer(NamedTuple):
    name: str
    below: tuple[str, ...]
    roots: tuple[str, ...]


_STRUCTURED = """
    _log_softmax _log_softmax_backward_data _softmax _softmax_backward_data add addcdiv addcmul
    addmm amax amin argmax argmin atan2 bitwise_and bitwise_or bmm ceil clamp clamp_max
    clamp_min cos div elu elu_backward eq erf erfc exp exp2 expm1 floor ge gelu gelu_backward gt
    le leaky_relu leaky_relu_backward lerp log log10 log1p log2 lt maximum mean minimum mm mul
    ne neg pow reciprocal round rsqrt sigmoid sigmoid_backward silu silu_backward sin softplus
    softplus_backward sqrt sub sum tan tanh tanh_backward threshold_backward trunc"""

LAYERS = (
    Layer(
        "C10",
        (),
        (
            "c10/core/GeneratorImpl.h",
            "c10/core/ScalarTypeToTypeMeta.h",
            "c10/core/TensorImpl.h",
            "c10/core/impl/DeviceGuardImplInterface.h",
            "c10/util/Logging.h",
            "c10/util/SmallVector.h",
        ),
    ),
    Layer("TENSOR_BASE", ("C10",), ("ATen/core/TensorBase.h",)),
    Layer(
        "STABLE",
        (),
        (
            "torch/csrc/stable/library.h",
            "torch/csrc/stable/ops.h",
            "torch/csrc/stable/tensor.h",
        ),
    ),
    Layer(
        "CORE",
        ("C10", "TENSOR_BASE"),
        (
            "ATen/CPUGeneratorImpl.h",
            "ATen/EmptyTensor.h",
            "ATen/Parallel.h",
            "ATen/ScalarOps.h",
            "ATen/Tensor.h",
            "ATen/core/PhiloxRNGEngine.h",
            "ATen/core/Generator.h",
            "ATen/core/Tensor.h",
            "ATen/core/dispatch/Dispatcher.h",
            "ATen/core/function_schema.h",
            "ATen/core/ivalue.h",
            "ATen/core/jit_type.h",
            "ATen/core/op_registration/adaption.h",
            "ATen/core/stack.h",
            "ATen/detail/PrivateUse1HooksInterface.h",
            "ATen/native/CPUFallback.h",
            "torch/library.h",
        ),
    ),
    # Operators that our code calls by name, so that nothing needs ATen/ATen.h. All of them would be
    # 900 headers more, and each build asks for the time of each header.
    Layer(
        "OPERATORS",
        ("C10", "TENSOR_BASE", "CORE"),
        (
            "ATen/TensorOperators.h",
            "ATen/native/TypeProperties.h",
            "ATen/ops/_local_scalar_dense_native.h",
            "ATen/ops/cat.h",
            "ATen/ops/full.h",
            "ATen/ops/linear.h",
            "ATen/ops/stack.h",
            "ATen/ops/where.h",
        ),
    ),
    # torch's meta functions in C++ (meta_functions.py), all of which main() adds.
    Layer("META", ("C10", "TENSOR_BASE", "CORE"), ()),
    # torch's structured kernels (csrc/interpreter/kept_kernel.cc).
    Layer(
        "KERNELS",
        ("C10", "TENSOR_BASE", "CORE"),
        (
            "ATen/TensorIterator.h",
            "ATen/native/ReduceOps.h",
            "ATen/native/TensorCompare.h",
            *(f"ATen/ops/{op}_native.h" for op in _STRUCTURED.split()),
        ),
    ),
    # Allocators of pinned memory.
    Layer("HOST_MEMORY", ("C10", "TENSOR_BASE", "CORE"), ("ATen/core/CachingHostAllocator.h",)),
    # Selection of the attention kernel of a device.
    Layer(
        "ATTENTION",
        ("C10", "TENSOR_BASE", "CORE"),
        ("ATen/SDPBackend.h", "ATen/native/transformers/attention.h"),
    ),
    # Functions with a derivative, called by torch's autograd.
    Layer(
        "AUTOGRAD",
        ("C10", "TENSOR_BASE", "CORE"),
        ("torch/csrc/autograd/custom_function.h",),
    ),
    Layer(
        "PYTHON",
        ("C10", "TENSOR_BASE", "CORE"),
        (
            "torch/csrc/Exceptions.h",
            "torch/csrc/autograd/node.h",
            "torch/csrc/utils/pybind.h",
        ),
    ),
)

# csrc/device/autocast.cc declares two functions of this header, which includes ATen/ATen.h.
_WITHOUT_LAYER = ("ATen/autocast_mode.h",)


def highest(headers: Iterable[str]) -> list[str]:
    """The targets of torch.BUILD.tpl that have the headers, without those below another of them.

    A header that is no root of a layer is c10's by its path, and otherwise CORE's.
    """
    roots = {root: layer for layer in LAYERS for root in layer.roots}
    named = {layer.name: layer for layer in LAYERS}
    found = {
        roots.get(header, named["C10" if header.startswith("c10/") else "CORE"])
        for header in headers
        if header.startswith(("ATen/", "c10/", "torch/"))
    }
    below = {name for layer in found for name in layer.below}
    return sorted(layer.name.lower() for layer in found if layer.name not in below)


def closure(include: Path, roots: set[str]) -> set[str]:
    """The roots and every header under `include` that they reach."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        header = waiting.pop()
        if header in found:
            continue
        found.add(header)
        waiting += _included(include, header)
    return found


@functools.cache
def _included(include: Path, header: str) -> list[str]:
    """The headers that one includes. Cached, because several layers reach the same ones."""
    with open(f"{include}/{header}", "rb") as file:
        text = _ALL_OPERATORS.sub(b"", file.read())
    present, folder, names = _present(include), header.rpartition("/")[0], []
    for match in _INCLUDE.findall(text):
        name = match.decode()
        # pybind11 is a separate dependency.
        for candidate in (name, os.path.normpath(os.path.join(folder, name))):
            if candidate in present and not candidate.startswith("pybind11/"):
                names.append(candidate)
                break
    return names


@functools.cache
def _present(include: Path) -> set[str]:
    """All files in a folder, by their relative paths. Asking for each one takes longer."""
    start = len(f"{include}/")
    walk = os.walk(include, followlinks=True)
    return {f"{folder}/{name}"[start:] for folder, _, names in walk for name in names}


def words(include: Path, headers: Iterable[str]) -> set[str]:
    """The identifiers, keywords and numbers in the headers, and the words of their comments."""
    found: set[bytes] = set()
    for header in headers:
        found.update(re.findall(rb"\w+", (include / header).read_bytes()))
    return {word.decode(errors="replace") for word in found}


def missing(include: Path) -> list[str]:
    """The roots that a torch does not have; bazel/pybuild asks before a build."""
    roots = [root for layer in LAYERS for root in layer.roots]
    return [root for root in (*roots, *_WITHOUT_LAYER) if not (include / root).is_file()]


def main(include: Path, layers: Path, words_file: Path) -> None:
    # All headers of these small folders; our code may include any of them.
    wanted = {layer.name: set(layer.roots) for layer in LAYERS}
    for folder in ("c10/core", "c10/core/impl", "c10/util"):
        wanted["C10"] |= {
            path.relative_to(include).as_posix() for path in (include / folder).glob("*.h")
        }
    wanted["META"] |= {
        header.relative_to(include).as_posix() for header in meta_functions.headers(include)
    }
    if lacking := missing(include):
        raise SystemExit(f"torch has no header {lacking[0]}: adapt {__file__}")

    headers_of: dict[str, set[str]] = {}
    lines = ['"""Headers of each layer. Generated by //third_party/torch:layers.py."""', ""]
    for layer in LAYERS:
        below = set().union(*(headers_of[name] for name in layer.below))
        headers_of[layer.name] = closure(include, wanted[layer.name]) - below
        headers = (f'    "include/{header}",' for header in sorted(headers_of[layer.name]))
        lines += [f"{layer.name} = [", *headers, "]", ""]
    layers.write_text("\n".join(lines))
    found = words(include, set().union(_WITHOUT_LAYER, *headers_of.values()))
    words_file.write_text("\n".join(sorted(found)) + "\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
