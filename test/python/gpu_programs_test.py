"""Graphs are compiled for a GPU, too, by XLA's compiler for it; nothing runs there.

It finds what that compiler refuses, and what ends its process.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import pytest

from scripts import op_coverage, op_results
from scripts.bench import gpu_compiler
from torch_xla_lite.compiler import tracing
from torch_xla_lite.lowering.base import target

# Each part of the database of ops is a test: what ends the process ends one of them.
PARTS = 16

# A GPU on paper has no kernels, neither CUDA's nor those of this project, and calls no Python.
_ABSENT = re.compile("No FFI handler registered|Unknown backend")


class _JaxForGpu:
    """`jax`, but that functions are for a GPU."""

    def __init__(self) -> None:
        self._place = jax.sharding.SingleDeviceSharding(gpu_compiler.devices()[0])

    def __getattr__(self, name: str) -> Any:
        return getattr(jax, name)

    def jit(self, function: Callable, **keywords: Any) -> Any:
        return jax.jit(function, in_shardings=self._place, out_shardings=self._place, **keywords)


@pytest.fixture(scope="module")
def jax_for_gpu() -> _JaxForGpu:
    return _JaxForGpu()


@pytest.fixture
def compilations(jax_for_gpu: _JaxForGpu) -> Iterator[list[str]]:
    """Compiles each graph for a GPU before it is compiled for the CPU, and lists what came of it:
    nothing or an error."""
    lower_graph, found = tracing.lower_graph, []

    def lower_twice(*arguments: Any) -> tracing.LoweredGraph:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(target, "platform", lambda: "any" if target.is_portable() else "gpu")
            patch.setattr(tracing, "jax", jax_for_gpu)
            try:
                for part in lower_graph(*arguments).parts:
                    part.compile()
                found.append("")
            except Exception as error:
                found.append("" if _ABSENT.search(str(error)) else str(error))
        return lower_graph(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracing, "lower_graph", lower_twice)
        yield found


def test_without_the_compiler_the_error_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(gpu_compiler, "_FILE", tmp_path / "absent.so")
    with pytest.raises(RuntimeError, match=r"pip install .*gpu_compiler jax-cuda13-pjrt==\d"):
        gpu_compiler.devices()


@pytest.mark.nightly
@pytest.mark.skipif(not gpu_compiler.is_installed(), reason=f"see {gpu_compiler.__file__}")
@pytest.mark.parametrize("part", range(PARTS))
def test_the_ops_of_the_database(part: int, compilations: list[str]):
    database = op_coverage._database()
    refused = {}
    names = list(database)[part::PARTS]
    for name in names:
        before = len(compilations)
        mode = "backward" if database[name].supports_autograd else "forward"
        op_coverage._run(database[name], op_results.Job(name, mode, "float32"), 2)
        if errors := [error for error in compilations[before:] if error]:
            refused[name] = errors[0]
    assert refused == {}
    assert len(compilations) > len(names) / 2
