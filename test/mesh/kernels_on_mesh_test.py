"""Kernels that XLA cannot divide run on each device's part, or are counted."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

import torch_xla_lite as txl
from test.mesh import devices  # noqa: F401  before jax starts
from test.python import programs
from torch_xla_lite import debug
from torch_xla_lite.ops import softmax_cross_entropy

import jax  # isort: skip


@pytest.fixture(autouse=True)
def _mesh() -> Iterator[None]:
    txl.set_mesh(jax.make_mesh((8,), ("data",)), batch="data")
    debug.reset_metrics()
    yield
    txl.set_mesh(None)


def _loss_and_gradients(model: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    loss = model(x).square().mean()
    loss.backward()
    return [loss, *(parameter.grad for parameter in model.parameters())]


def _kinds() -> set[str]:
    return {kind for _, kinds in debug.collectives()[-1:] for kind in kinds}


@pytest.mark.nightly
@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_runs_on_the_images_of_a_device(stride: int):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.ConvTranspose2d(8, 4, 2, stride=2),
        nn.Conv2d(4, 4, 3, groups=4),
    )
    x = torch.randn(16, 3, 16, 16)
    expected = _loss_and_gradients(model, x)
    model.zero_grad()
    txl.shard_module(model)
    results = _loss_and_gradients(model, x.to("jax"))
    txl.sync()
    for result, value in zip(results, expected, strict=True):
        torch.testing.assert_close(result.cpu(), value, rtol=1e-4, atol=1e-5)
    assert _kinds() == {"all-reduce"}
    assert debug.metrics()["gathered"] == {}


# The results of Tanh are stored (stored_values.py), which is divided like a convolution.
DIVIDED_KERNELS = """
import jax, torch, torch_xla_lite as txl
from torch import nn

jax.config.update("jax_num_cpu_devices", 8)

torch.manual_seed(0)
txl.set_mesh(jax.make_mesh((8,), ("data",)), batch="data")
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Tanh(), nn.Conv2d(8, 8, 3), nn.Tanh())
txl.shard_module(model)
loss = model(torch.randn(16, 3, 16, 16).to("jax")).square().mean()
loss.backward()
print(loss.item(), model[0].weight.grad.sum().item())
print(txl.debug.metrics()["compiles"], txl.debug.metrics()["loads"])
"""


@pytest.mark.nightly
def test_programs_with_divided_kernels_are_loaded(tmp_path: Path):
    variables = {
        "TORCH_XLA_LITE_COMPILATION_CACHE": "1",
        "XDG_CACHE_HOME": str(tmp_path),
        "JAX_COMPILATION_CACHE_DIR": "",  # What jax loads is not stored.
    }
    first, second = (programs.run(DIVIDED_KERNELS, **variables) for _ in range(2))
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    (numbers, compiled), (same, loaded) = (x.stdout.splitlines() for x in (first, second))
    assert (compiled.split()[1], loaded.split()[0]) == ("0", "0")
    assert numbers == same


def test_cross_entropy_runs_on_the_rows_of_a_device():
    torch.manual_seed(0)
    logits, labels = torch.randn(16, 50), torch.arange(16)
    at_home = logits.clone().requires_grad_()
    softmax_cross_entropy(at_home, labels).sum().backward()
    spread = logits.to("jax").requires_grad_()
    losses = softmax_cross_entropy(spread, labels.to("jax"))
    losses.sum().backward()
    txl.sync()
    torch.testing.assert_close(spread.grad.cpu(), at_home.grad)
    assert _kinds() == set()
    assert txl.sharding.spec_of(spread.grad) == "P('data')"


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("options", [{"enable_gqa": True}, {"dropout_p": 0.5}])
def test_attention_runs_on_the_heads_of_a_device(options: dict):
    txl.set_mesh(jax.make_mesh((2, 4), ("data", "model")))
    torch.manual_seed(0)
    # Rows and heads are divided, and torch's matmul makes one dimension of both.
    heads = 4 if "enable_gqa" in options else 8
    tensors = [torch.randn(4, count, 6, 5) for count in (8, heads, heads)]
    attend = nn.functional.scaled_dot_product_attention
    results = []
    for place in (lambda x: x.to("jax"), lambda x: txl.shard(x, "data", "model")):
        spread = [place(x).requires_grad_() for x in tensors]
        torch.manual_seed(1)
        # Multiplied, so that nothing that is kept is a view of a merged product.
        y = attend(*(x * 2 for x in spread), is_causal=True, **options) * 2
        y.square().sum().backward()
        txl.sync()
        results.append([y.detach().cpu(), *(x.grad.cpu() for x in spread)])
    for expected, result in zip(*results, strict=True):
        torch.testing.assert_close(result, expected)
    assert _kinds() <= {"all-reduce"}
    assert txl.sharding.spec_of(y) == "P('data', 'model')"


@torch.library.custom_op("mesh_test::ranks", mutates_args=(), device_types="cpu")
def _ranks(x: torch.Tensor) -> torch.Tensor:
    return x.argsort(0).argsort(0)


_ranks.register_fake(lambda x: torch.empty_like(x, dtype=torch.int64))


def _sliced(h: torch.Tensor) -> torch.Tensor:
    h = h * 1
    h[:, 2:4] *= 2
    h[:, 0] = h[:, 1]
    h[..., ::3] = 0
    return h


# Rows by themselves: what they give, and the gradient, needs no row of another device.
OF_ROWS = {
    "max": lambda h, i: h.max(1).values,
    "sort": lambda h, i: h.sort(-1).values,
    "median": lambda h, i: h.median(-1).values,
    "cummax": lambda h, i: h.cummax(-1).values,
    "gather": lambda h, i: h.gather(2, i),
    "scatter": lambda h, i: h.scatter(2, i, 0.0),
    "scatter_add": lambda h, i: h.scatter_add(2, i, h),
    "slices": lambda h, i: _sliced(h),
}


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("name", OF_ROWS)
def test_rows_by_themselves_need_no_other_device(name: str):
    torch.manual_seed(0)
    model = nn.Linear(4, 6)
    x, i = torch.randn(16, 5, 4), torch.randint(6, (16, 5, 6))

    def gradients(model: nn.Module, x: torch.Tensor, i: torch.Tensor) -> list[torch.Tensor]:
        OF_ROWS[name](model(x), i).square().mean().backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    expected = gradients(model, x, i)
    model.zero_grad()
    txl.shard_module(model)
    results = gradients(model, x.to("jax"), i.to("jax"))
    txl.sync()
    for result, value in zip(results, expected, strict=True):
        torch.testing.assert_close(result.cpu(), value, rtol=1e-4, atol=1e-5)
    # The gradients are summed; an index that is out of range is told to all.
    assert _kinds() == {"all-reduce"}


def test_code_of_others_is_counted():
    import numpy as np

    def negative(x: jax.Array) -> jax.Array:
        return jax.pure_callback(np.negative, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    y = txl.call_jax(negative, torch.ones(16, 8).to("jax"))
    assert y.sum().item() == -128
    assert debug.metrics()["gathered"] == {"torch_xla_lite::call_jax": 1}


def test_an_op_that_must_gather_is_counted():
    x = torch.arange(16.0).flip(0).to("jax")
    for _ in range(2):
        assert (_ranks(x) + 1).tolist() == list(range(16, 0, -1))
    assert debug.metrics()["gathered"] == {"mesh_test::ranks": 2}
    assert "all-gather" in _kinds()
