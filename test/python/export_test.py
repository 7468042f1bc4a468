"""Exported programs: they agree with torch for all sizes, and need nothing but jax."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import torch_xla_lite
from bazel.pytest_plugin import mostly_nightly
from torch_xla_lite import call_jax
from torch_xla_lite.export import PLATFORMS, Exported, UnsupportedNode, export
from torch_xla_lite.lowering.base import registry, target

BATCH = torch.export.Dim("batch")


class Tokens(nn.Module):
    """Takes integers; gives containers."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.heads = nn.ModuleDict({"a": nn.Linear(8, 4), "b": nn.Linear(8, 2)})

    def forward(self, tokens: torch.Tensor) -> dict:
        x = self.embedding(tokens)
        return {"z": x.mean(1), "a": [self.heads["a"](x), self.heads["b"](x).argmax(-1)]}


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))


def images() -> nn.Module:
    head = (nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 3))
    return nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.MaxPool2d(2), *head)


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)


MODELS = {
    "perceptron": (perceptron, (6,)),
    "images": (images, (3, 12, 12)),
    "encoder": (encoder, (5, 8)),
    "recurrent": (lambda: nn.LSTM(4, 6, batch_first=True), (5, 4)),
    "tokens": (Tokens, (7,)),
}


class Function(nn.Module):
    """Of one tensor."""

    def __init__(self, function: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def example(name: str, size: int) -> torch.Tensor:
    shape = (size, *MODELS[name][1])
    return torch.randint(0, 20, shape) if name == "tokens" else torch.randn(shape)


def exported(module: nn.Module, *args: torch.Tensor, **options) -> Exported:
    return export(torch.export.export(module.eval(), args, **options))


def assert_agrees(found, expected) -> None:
    expected = torch.utils._pytree.tree_map(lambda x: x.detach().numpy(), expected)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-4, 1e-5), found, expected)
    jax.tree.map(lambda a, b: np.testing.assert_equal(a.shape, b.shape), found, expected)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("name", mostly_nightly(MODELS, ["perceptron", "images", "tokens"]))
def test_one_program_serves_all_sizes(name: str):
    module = MODELS[name][0]()
    program = exported(module, example(name, 3), dynamic_shapes=({0: BATCH},))
    for size in (1, 2, 5):
        x = example(name, size)
        assert_agrees(program(x.numpy().astype(np.int32 if name == "tokens" else None)), module(x))


def test_two_sizes_and_what_is_computed_of_them():
    class Pairs(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            joined = torch.cat([x, y], 1)
            half = joined.shape[1] // 2
            return joined[:, :half].sum(1) + joined.mT.reshape(-1).view(-1, joined.shape[0]).mean(0)

    rows, left, right = map(torch.export.Dim, ("rows", "left", "right"))
    sizes = ({0: rows, 1: left}, {0: rows, 1: right})
    inputs = torch.randn(4, 2), torch.randn(4, 5)
    program = exported(Pairs(), *inputs, dynamic_shapes=sizes)
    for count in (2, 6):
        inputs = torch.randn(count, 3), torch.randn(count, 4)
        assert_agrees(program(*(x.numpy() for x in inputs)), Pairs()(*inputs))


def segmented(x: torch.Tensor) -> torch.Tensor:
    """Images that strided convolutions make smaller, pooled and resized, as in segmentation."""
    weight = torch.linspace(-1, 1, 3 * 3 * 9).view(3, 3, 3, 3)
    for _ in range(3):
        x = torch.cat([F.conv2d(x, weight, None, 2, 1), F.max_pool2d(x, 3, 2, 1)], 1)[:, ::2]
    pooled = F.interpolate(F.adaptive_avg_pool2d(x, 1), x.shape[2:], None, "bilinear")
    return F.interpolate(torch.cat([x, pooled, F.avg_pool2d(x, 3, 1, 1)], 1), None, 2.0, "bilinear")


# What is computed with sizes that vary: a function, an example, and which of its sizes vary.
SIZED: dict[str, tuple[Callable[[torch.Tensor], Any], tuple[int, ...], tuple[int, ...]]] = {
    "bilinear": (lambda x: F.interpolate(x, size=(5, 7), mode="bilinear"), (2, 3, 4, 4), (0,)),
    "bilinear, scaled": (lambda x: F.interpolate(x, None, 1.5, "bilinear"), (2, 3, 4, 4), (0,)),
    "nearest": (lambda x: F.interpolate(x, size=(5, 7)), (2, 3, 4, 4), (0,)),
    "nearest, scaled": (lambda x: F.interpolate(x, scale_factor=2.0), (2, 3, 4, 4), (0, 2, 3)),
    "segmentation": (segmented, (2, 3, 18, 24), (0, 2, 3)),
    "bilinear, all sizes": (
        lambda x: F.interpolate(x, x.shape[1:3], None, "bilinear", align_corners=True),
        (2, 3, 4, 4),
        (0, 2, 3),
    ),
    "averages": (
        lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        (2, 3, 9, 8),
        (0, 2, 3),
    ),
    "bicubic": (lambda x: F.interpolate(x, None, 2.0, "bicubic"), (2, 3, 4, 4), (0,)),
    "argmax": (lambda x: (x.argmax(0), x.argmin(-1), x.argmax()), (3, 4), (0, 1)),
    "last token": (lambda x: x[torch.arange(x.shape[0]), (x > 0).int().argmax(-1)], (3, 4), (0, 1)),
    "times a size": (lambda x: x * x.shape[0] + x.shape[1], (3, 4), (0, 1)),
    "by a size": (lambda x: x / x.shape[0] - x.sum() / x.numel(), (3, 4), (0, 1)),
    "by a root": (lambda x: x * x.shape[1] ** -0.5 + x.shape[0] ** 0.5, (3, 4), (0, 1)),
    "half a size": (lambda x: x * (x.shape[1] / 2 + 1), (3, 4), (0, 1)),
    "integers": (lambda x: (x * 10).long() * x.shape[1] + x.shape[0] / 2, (3, 4), (0, 1)),
    "clamped": (lambda x: (x * 9).clamp(-x.shape[1], x.shape[0]), (3, 4), (0, 1)),
    "filled": (lambda x: x.new_full((3,), x.shape[0]) + torch.tensor(x.shape[1]), (3, 4), (0, 1)),
    "quantile": (lambda x: x.quantile(torch.tensor([0.1, 0.5]), 0), (5, 4), (0, 1)),
    "inverse": (lambda x: torch.linalg.inv(x + 9 * torch.eye(3)), (2, 3, 3), (0,)),
    "solved": (lambda x: torch.linalg.solve(x + 9 * torch.eye(3), x), (2, 3, 3), (0,)),
    "cholesky": (lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(3)), (2, 3, 3), (0,)),
    "determinant": (lambda x: (torch.linalg.det(x), torch.logdet(x @ x.mT)), (2, 3, 3), (0,)),
}


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("name", mostly_nightly(SIZED, ["argmax", "inverse"]))
def test_sizes_that_vary_are_computed_with(name: str):
    function, shape, dims = SIZED[name]

    sizes = (dict.fromkeys(dims, torch.export.Dim.DYNAMIC),)
    program = exported(Function(function), torch.randn(shape), dynamic_shapes=sizes)
    for times in (1, 2):
        x = torch.randn([n * times if dim in dims else n for dim, n in enumerate(shape)])
        assert_agrees(program(x.numpy()), function(x))


def test_sizes_that_a_lowering_must_know_are_refused_with_the_line():
    class Patches(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.unfold(x, 3)

    sizes = ({2: torch.export.Dim.DYNAMIC},)
    with pytest.raises(UnsupportedNode, match=r"aten::im2col has no .*\n.*F.unfold"):
        exported(Patches(), torch.randn(1, 3, 6, 6), dynamic_shapes=sizes)


DATA_DEPENDENT = {
    "nonzero": lambda x: torch.nonzero(x),
    "index.Tensor": lambda x: x[x > 0],
    "_unique2": lambda x: torch.unique(x),
    "masked_select": lambda x: torch.masked_select(x, x > 0),
    "repeat_interleave.Tensor": lambda x: torch.repeat_interleave(x, (x > 0).long()),
}


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_an_operation_whose_size_depends_on_values_is_refused_with_its_line(name: str):
    with pytest.raises(
        UnsupportedNode,
        match=rf"^aten::{name}: a size is u0.*\n.*torch.where.*\nIn File .*_test.py",
    ):
        exported(Function(DATA_DEPENDENT[name]), torch.randn(4))


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("name", ["cholesky", "inv", "solve"])
def test_a_factorisation_that_fails_is_not_finite(name: str):
    factor = Function(lambda x: getattr(torch.linalg, name)(*[x] * (2 if name == "solve" else 1)))
    singular = np.array([[-1, -1], [-1, -1]], np.float32)
    assert not np.isfinite(exported(factor, torch.eye(2))(singular)).all()


def test_64_bits_are_32_bits_wide_at_the_boundary():
    program = exported(Tokens(), example("tokens", 2), dynamic_shapes=({0: BATCH},))
    found = [*program.program.in_avals, *program.program.out_avals, *program.weights.values()]
    assert {x.dtype.name for x in found} == {"float32", "int32"}


def test_arguments_keep_their_structure_and_names():
    class Weighted(nn.Module):
        def forward(self, x: dict, *, zeta: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
            return x["v"] * zeta - x["a"] * alpha

    arrays = [torch.randn(2) for _ in range(4)]
    x = {"v": arrays[0], "a": arrays[1]}
    rest = {"zeta": arrays[2], "alpha": arrays[3]}
    program = export(torch.export.export(Weighted(), (x,), rest))
    found = program({k: v.numpy() for k, v in x.items()}, **{k: v.numpy() for k, v in rest.items()})
    assert_agrees(found, Weighted()(x, **rest))


SERVE = """
import sys
sys.modules["torch"] = None
import numpy as np
{load}
serve = load(sys.argv[1])
for size in (1, 4):
    print(np.asarray(serve(np.ones((size, 6), np.float32))).sum())
"""


def test_a_process_without_torch_loads_what_was_saved(tmp_path: Path):
    pytest.importorskip("flatbuffers")
    module = perceptron()
    exported(module, torch.randn(3, 6), dynamic_shapes=({0: BATCH},)).save(tmp_path)
    page = Path("docs/export.md").read_text()
    load = re.search(r"^## Loading\n.*?^```py\n(.*?)^```$", page, re.M | re.S)[1]
    command = [sys.executable, "-P", "-c", SERVE.format(load=load), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = [module(torch.ones(size, 6)).sum().item() for size in (1, 4)]
    assert [float(line) for line in done.stdout.split()] == pytest.approx(expected, abs=1e-4)
    meta = json.loads((tmp_path / "meta.json").read_text())
    assert meta["inputs"][0]["shape"][1] == "6"
    assert meta["platforms"] == list(PLATFORMS)


def test_it_calls_no_code_outside_xla():
    program = exported(images(), example("images", 2), dynamic_shapes=({0: BATCH},))
    assert set(re.findall(r"custom_call @([\w.]+)", program.program.mlir_module())) <= {
        "shape_assertion"
    }


def test_an_input_that_does_not_fit_is_refused_with_the_sizes():
    program = exported(perceptron(), torch.randn(3, 6), dynamic_shapes=({0: BATCH},))
    with pytest.raises(ValueError, match=r"\(s\d+, 6\).*\(2, 5\)"):
        program(np.ones((2, 5), np.float32))


def test_a_jax_function_of_the_model_is_part_of_it():
    sine = Function(lambda x: call_jax(jnp.sin, x + 1) * 2)
    x = torch.randn(3)
    assert_agrees(exported(sine, x)(x.numpy()), (x + 1).sin() * 2)


def test_random_numbers_are_refused():
    with pytest.raises(ValueError, match=r"draws random numbers.*\n.*model.eval\(\)"):
        export(torch.export.export(nn.Dropout(0.5), (torch.randn(3),)))


def test_updates_of_buffers_are_refused_by_name():
    with pytest.raises(ValueError, match=r"updates running_mean, .* would be lost.\n.*model.eval"):
        export(torch.export.export(nn.BatchNorm1d(3), (torch.randn(4, 3),)))


def test_updates_of_inputs_are_refused_by_name():
    fill = Function(lambda x: x.add_(1) * 2)
    with pytest.raises(ValueError, match=r"updates x, .* would be lost.\n.*x = x.clone\(\)"):
        export(torch.export.export(fill, (torch.randn(3),)))


def test_an_op_without_a_form_for_all_platforms_is_refused_with_its_line():
    class Segments(nn.Module):
        def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            return torch.segment_reduce(x, "prod", lengths=lengths)

    with pytest.raises(UnsupportedNode, match=r"aten::segment_reduce has no .*\n.*export_test.py"):
        exported(Segments(), torch.randn(4), torch.tensor([1, 3]))


def test_a_lowering_of_the_user_that_calls_other_code_is_refused():
    @torch.library.custom_op("export_test::foreign", mutates_args=())
    def foreign(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    foreign.register_fake(torch.empty_like)

    @torch_xla_lite.register_lowering("export_test::foreign")
    def _(x: jax.Array) -> jax.Array:
        return jax.ffi.ffi_call("export_test.foreign", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    with pytest.raises(ValueError, match=r"code outside XLA, (.|\n)*export_test.foreign"):
        exported(Function(foreign), torch.randn(3))


def test_portable_lowerings_call_no_kernels():
    x, weight = jnp.ones((1, 2, 5, 5)), jnp.ones((3, 2, 3, 3))
    args = [x, weight, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1]
    outs = [jax.ShapeDtypeStruct((1, 3, 3, 3), x.dtype)]

    def lowered(x: jax.Array, weight: jax.Array) -> list:
        return registry.call("aten::convolution", [x, weight, *args[2:]], outs)

    def portable(x: jax.Array, weight: jax.Array) -> list:
        with target.portable():
            return lowered(x, weight)

    assert "ffi_call" in str(jax.make_jaxpr(lowered)(x, weight))
    assert "ffi_call" not in str(jax.make_jaxpr(portable)(x, weight))
