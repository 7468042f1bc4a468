"""Values that XLA stores instead of computing them for each use, in chains of elementwise ops, and
numbers that it stores so that equal layers are equal code."""

from pathlib import Path

import pytest
import torch

import torch_xla_lite
from test.python import programs
from torch_xla_lite import debug
from torch_xla_lite.compiler import stored_values
from torch_xla_lite.compiler.recorded_graph import Call, Leaf

_PROGRAM = """
import sys, jax, torch, torch_xla_lite
from torch import nn
# What comes from jax's cache would not be stored.
jax.config.update("jax_enable_compilation_cache", False)

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(8), nn.Linear(8, 8)
    def forward(self, x):
        return self.norm(x + self.linear(x))

torch.manual_seed(0)
model = nn.Sequential(*[Layer() for _ in range(int(sys.argv[1]))]).to("jax")
x = torch.randn(4, 8).to("jax")
torch_xla_lite.sync()
model(x).square().mean().backward()
torch_xla_lite.sync()
print(torch_xla_lite.debug.metrics()["loads"], model[0].norm.weight.grad.tolist())
"""


def _run(layers: int, **variables: str) -> list[str]:
    """How many programs a step of so many layers has loaded, and a gradient."""
    process = programs.run(_PROGRAM, str(layers), check=True, **variables)
    return process.stdout.split(maxsplit=1)


def _compiled_lines(layers: int, folder: Path) -> int:
    """Lines of the largest program that XLA compiled for a step of so many layers."""
    _run(layers, XLA_FLAGS=f"--xla_dump_to={folder}")
    return max(
        len(file.read_text().splitlines()) for file in folder.glob("*.cpu_after_optimizations.txt")
    )


@pytest.mark.needs("cpu")
@pytest.mark.nightly
def test_the_code_of_normalised_layers_grows_linearly(tmp_path: Path):
    few, many = (_compiled_lines(n, tmp_path / str(n)) for n in (4, 12))
    # Three times as many layers; it was 5.3 times as many lines.
    assert many < 3.5 * few


def test_another_process_loads_a_program_that_stores(tmp_path: Path):
    cache = {"XDG_CACHE_HOME": str(tmp_path), "TORCH_XLA_LITE_COMPILATION_CACHE": "1"}
    (first, gradient), again = (_run(2, **cache) for _ in range(2))
    assert (first, again) == ("0", ["1", gradient])


_NUMBERS = """
import sys, jax, torch, torch_xla_lite
jax.config.update("jax_enable_compilation_cache", False)
x, y = torch.ones(8, 8).to("jax"), torch.ones(8, 8)
for _ in range(int(sys.argv[1])):
    x, y = ((z @ z * 0.01 + 0.5).clamp(0.1, 1.5) for z in (x, y))
assert torch.allclose(x.cpu(), y)
"""


@pytest.mark.needs("cpu")
@pytest.mark.nightly
def test_equal_layers_with_numbers_are_compiled_once(tmp_path: Path):
    def kernels(layers: int) -> int:
        folder = tmp_path / str(layers)
        programs.run(_NUMBERS, str(layers), check=True, XLA_FLAGS=f"--xla_dump_to={folder}")
        return len(list(folder.glob("*.o")))

    assert kernels(3) == kernels(6) > 0


def op(name: str, operands: list[int]) -> Call:
    return Call(name, [], [(step, 0) for step in operands], [], 0, "", None)


def _chain(length: int) -> list[Leaf | Call]:
    return [Leaf(6, (), False, 0), *(op("aten::add.Tensor", [i]) for i in range(length))]


@pytest.mark.parametrize(
    ("uses", "is_stored"),
    [
        ([], False),
        (["aten::exp"], False),
        (["aten::exp", "aten::abs"], True),
        (["aten::native_layer_norm"], True),
        (["aten::_softmax"], True),
    ],
)
def test_long_chains_are_stored_where_they_are_used_twice(uses: list[str], is_stored: bool):
    for length, expected in [(12, set()), (13, {13} if is_stored else set())]:
        graph = [*_chain(length), *(op(use, [length]) for use in uses)]
        assert stored_values.find(graph) == expected


def test_a_view_is_not_stored_but_what_it_shows():
    views = [op("aten::expand", [13]), op("aten::permute", [14])]
    graph = [*_chain(13), *views, op("aten::exp", [15]), op("aten::abs", [15])]
    assert stored_values.find(graph) == {13}


def test_what_xla_does_not_fuse_ends_a_chain():
    graph = [*_chain(12), op("aten::mm", [12, 12]), op("aten::add.Tensor", [13, 13])]
    assert stored_values.find(graph) == set()
    # The chain begins again after a stored value.
    double = [*_chain(13), *(op("aten::mul.Tensor", [i, 13]) for i in (13, 14))]
    assert stored_values.find(double) == {13}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.complex64])
@pytest.mark.parametrize("shape", [(), (0,), (5, 3)])
def test_stored_values_are_right(dtype: torch.dtype, shape: tuple[int, ...]):
    start = (torch.arange(15)[: torch.Size(shape).numel()].reshape(shape) - 7).to(dtype)

    def compute(x: torch.Tensor) -> list[torch.Tensor]:
        for _ in range(20):
            x = x + x.neg() * 2
        return [x + 1, x * x, x.transpose(0, -1) if shape else x]

    debug.reset_metrics()
    results = compute(start.to("jax"))
    torch_xla_lite.sync()
    for result, expected in zip(results, compute(start), strict=True):
        assert torch.equal(result.cpu(), expected)
    # Storing is no call of a kernel of ATen, for which the caller would wait.
    assert debug.metrics()["fallbacks"] == {}
