"""torch.compile with backend "torch_xla_lite", and pure modules: one op for each call."""

import copy
from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
import torch
from torch import nn

import torch_xla_lite
from torch_xla_lite import call_jax, debug, pure
from torch_xla_lite.interop.compile_backend import backend


def by_backend(module: nn.Module) -> Callable:
    return torch.compile(module, backend=backend)


WRAPPERS = pytest.mark.parametrize("wrap", [by_backend, pure], ids=["backend", "pure"])
DEVICES = pytest.mark.parametrize("device", ["cpu", "jax"])


def classifier() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))


def losses(module: nn.Module, wrap: Callable, device: str) -> list[float]:
    module = copy.deepcopy(module).to(device)
    model, optimizer = wrap(module), torch.optim.SGD(module.parameters(), 0.1)
    x = torch.linspace(-1, 1, 24).reshape(4, 6).to(device)
    y = torch.tensor([0, 1, 2, 0]).to(device)
    found = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.few_daily(1)
@WRAPPERS
@DEVICES
def test_training_agrees_with_torch(wrap: Callable, device: str):
    module = classifier()
    expected = losses(module, lambda m: m, "cpu")
    assert losses(module, wrap, device) == pytest.approx(expected, abs=1e-5)


@pytest.mark.nightly
@WRAPPERS
def test_a_call_is_few_ops_in_the_graph_of_its_neighbours(wrap: Callable):
    model = wrap(classifier().to("jax"))
    x = torch.ones(4, 6).to("jax")
    model(x).sum().backward()
    torch_xla_lite.sync()
    debug.reset_metrics()
    model(x).sum().backward()
    assert debug.metrics()["recorded_ops"] < 20
    torch_xla_lite.sync()
    assert debug.metrics()["cache_hits"] + debug.metrics()["compiles"] <= 2


@pytest.mark.few_daily(1)
@WRAPPERS
def test_buffers_are_updated_and_random_numbers_drawn(wrap: Callable):
    module = nn.Sequential(nn.BatchNorm1d(6), nn.Dropout(0.5)).to("jax")
    model = wrap(module)
    x = torch.linspace(-1, 1, 60).reshape(10, 6).to("jax")
    first, second = model(x).tolist(), model(x).tolist()
    assert first != second
    expected = nn.BatchNorm1d(6)
    expected(x.cpu()), expected(x.cpu())
    assert module[0].num_batches_tracked.item() == 2
    torch.testing.assert_close(module[0].running_var.cpu(), expected.running_var)


@pytest.mark.nightly
@WRAPPERS
def test_a_module_with_buffers_has_gradients(wrap: Callable):
    module = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)).to("jax")
    x = torch.linspace(-1, 1, 60).reshape(10, 6)
    expected = copy.deepcopy(module).cpu()
    expected(x).pow(3).sum().backward()
    wrap(module)(x.to("jax")).pow(3).sum().backward()
    torch.testing.assert_close(module[1].weight.grad.cpu(), expected[1].weight.grad)


@pytest.mark.nightly
def test_a_seed_gives_the_same_numbers():
    model = pure(nn.Dropout(0.5))
    x = torch.ones(50, device="jax")
    found = []
    for _ in range(2):
        torch.jax.manual_seed(3)
        found.append(model(x).tolist())
    assert found[0] == found[1]


def test_new_sizes_compile_no_new_graph_of_torch():
    compiled = []

    def noting(module: torch.fx.GraphModule, inputs: list) -> Callable:
        compiled.append(module)
        return backend(module, inputs)

    class Doubled(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x * 2).reshape(x.shape[0] * 2, -1)

    model = torch.compile(Doubled(), backend=noting, dynamic=True)
    for size in (2, 3, 5, 3):
        assert model(torch.ones(size, 4, device="jax")).tolist() == [[2, 2]] * (2 * size)
    assert len(compiled) == 1


@pytest.mark.nightly
def test_strides_may_vary():
    pad = torch.compile(lambda x: nn.functional.pad(x, (1, 2), "circular"), backend=backend)
    for size in (4, 5, 6):
        x = torch.arange(2.0 * size).reshape(1, 2, size)
        expected = nn.functional.pad(x, (1, 2), "circular")
        assert torch.equal(pad(x.to("jax")).cpu(), expected)


VIEWS = {
    "narrow": lambda x, n: x.narrow(1, n, 2),
    "select": lambda x, n: x.select(1, n),
    "expand": lambda x, n: x[:, :1].expand(-1, n),
    "split": lambda x, n: x.split(n, 1),
    "of what is computed": lambda x, n: (x * 2).t()[n:],
    "both": lambda x, n: (lambda y: (y, y[n:], x[n]))(x + 1),
    "of what is written": lambda x, n: x.mul_(2)[:, n],
}
NUMBERS = {
    "var": lambda x, n: x.var(correction=n),
    "interpolate": lambda x, n: nn.functional.interpolate(x[None], scale_factor=1.5),
    "group_norm": lambda x, n: nn.functional.group_norm(x[None], 1),
    "max": lambda x, n: x.max(),
    "median": lambda x, n: x.median(),
    "cov": lambda x, n: x.cov(),
}


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("name", [*VIEWS, *NUMBERS])
@pytest.mark.parametrize("needs_gradient", [False, True])
def test_sizes_vary(name: str, needs_gradient: bool):
    function = {**VIEWS, **NUMBERS}[name]
    compiled = torch.compile(function, backend=backend, dynamic=True)
    for size in (4, 5, 4):
        x = torch.linspace(-1, 1, size * (size + 1)).reshape(size, size + 1)
        inputs = [x.clone().requires_grad_(needs_gradient), x.to("jax")]
        inputs[1].requires_grad_(needs_gradient)
        found = []
        for call, tensor in zip((function, compiled), inputs, strict=True):
            operand = tensor * 1  # It may be written to.
            results = call(operand, size - 2)
            results = list(results) if isinstance(results, tuple) else [results]
            if needs_gradient:
                loss = sum(result.square().sum() for result in results)
                results += torch.autograd.grad(loss, tensor)
            found.append([result.detach().cpu() for result in (*results, operand)])
        torch.testing.assert_close(found[1], found[0])


@pytest.mark.nightly
def test_an_op_that_checks_values_checks_them():
    inverse = torch.compile(torch.linalg.inv, backend=backend)
    x = torch.tensor([[2.0, 1], [1, 3]])
    on_jax = x.to("jax").requires_grad_()
    found = inverse(on_jax)
    torch.testing.assert_close(found.cpu(), torch.linalg.inv(x))
    found[0, 0].backward()
    assert on_jax.grad is not None
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        inverse(torch.zeros(2, 2, device="jax")).cpu()


def test_a_dtype_that_the_device_lacks_is_refused_as_without_it():
    with pytest.raises(TypeError, match="XLA has no element type ComplexHalf"):
        torch.compile(lambda x: x.chalf(), backend=backend)(torch.ones(2, device="jax"))


def test_an_option_is_refused():
    with pytest.raises(TypeError, match="has no options, got depth"):
        backend(torch.fx.symbolic_trace(nn.ReLU()), [], depth=1)


@pytest.mark.nightly
@WRAPPERS
def test_the_mode_of_a_module_may_change(wrap: Callable):
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).to("jax")
    model, x = wrap(module), torch.tensor([[1.0, 2.0], [5.0, 7.0]], device="jax")
    model(x)
    for mode in (False, True):
        model.train(mode)
        expected = copy.deepcopy(module)(x)
        torch.testing.assert_close(model(x).cpu(), expected.cpu())


def test_a_copy_of_a_pure_module_is_one_of_its_own():
    model = pure(nn.BatchNorm1d(2).to("jax"))
    x = torch.tensor([[1.0, 2.0], [5.0, 7.0]], device="jax")
    model(x)
    copied = copy.deepcopy(model).eval()
    assert copied(x).tolist() == copied.module(x).tolist() != model(x).tolist()
    assert copied.module.num_batches_tracked.item() == 1


class Counting(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum() * 0 + torch.ones(2, device="jax")


@WRAPPERS
def test_autocast_may_begin_and_end(wrap: Callable):
    model, x = wrap(nn.Linear(6, 3).to("jax")), torch.ones(4, 6, device="jax")
    found = [model(x).dtype]
    with torch.autocast("jax", torch.bfloat16):
        found.append(model(x).dtype)
    assert [*found, model(x).dtype] == [torch.float32, torch.bfloat16, torch.float32]


@WRAPPERS
def test_the_default_dtype_may_change(wrap: Callable):
    model, x = wrap(Counting()), torch.ones(1, device="jax")
    assert model(x).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert model(x).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


class OfJax(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return call_jax(lambda x: jnp.arange(3) + x, x)


def test_functions_of_jax_in_a_pure_module_see_the_user_s_setting():
    model, x = pure(OfJax()), torch.arange(3, device="jax")
    assert model(x).dtype == torch.int32
    with jax.enable_x64(True):
        assert model(x).dtype == torch.int64
