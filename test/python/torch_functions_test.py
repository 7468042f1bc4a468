"""to_jax, call_torch: torch functions as pure jax functions."""

import copy
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

import torch_xla_lite
from torch_xla_lite import (
    GraphBreak,
    call_jax,
    call_torch,
    debug,
    jax_view,
    pure,
    to_jax,
    torch_view,
)


def images() -> nn.Module:
    head = (nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5))
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), *head)


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


X = torch.randn(6, 3, 8, 8)


def array(x: torch.Tensor) -> jax.Array:
    return jnp.asarray(x.detach().numpy())


def assert_close(found: jax.Array, expected: torch.Tensor) -> None:
    np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_outputs_and_new_buffers_agree_and_the_module_stays():
    module = images()
    fn, state = to_jax(module)
    outputs, buffers = jax.jit(fn)(state["params"], state["buffers"], array(X))
    assert module[1].num_batches_tracked.item() == 0
    assert_close(outputs, module(X))
    for name, value in module.named_buffers():
        assert_close(buffers[name], value)


def test_the_gradient_is_the_one_that_torch_records():
    module = images()
    fn, state = to_jax(module)

    def loss(params: dict) -> jax.Array:
        return (fn(params, state["buffers"], array(X))[0] ** 2).sum()

    found = jax.jit(jax.grad(loss))(state["params"])
    (module(X) ** 2).sum().backward()
    for name, parameter in module.named_parameters():
        np.testing.assert_allclose(found[name], parameter.grad.numpy(), rtol=1e-3, atol=1e-3)


TRANSFORMS = {
    "vmap": lambda f, x: jax.vmap(f)(jnp.stack([x, 2 * x])),
    "scan": lambda f, x: jax.lax.scan(lambda c, v: (c, f(v)), 0, jnp.stack([x, 2 * x]))[1],
    "checkpoint": lambda f, x: jax.grad(lambda v: jax.checkpoint(f)(v).sum())(x),
    "vmap of grad": lambda f, x: jax.vmap(jax.grad(lambda v: f(v).sum()))(jnp.stack([x, 2 * x])),
}


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("gradient", ["torch", "jax"])
def test_a_transform_of_jax(name: str, gradient: str):
    module = perceptron()
    fn, state = to_jax(module, gradient=gradient)
    w = {name: array(value) for name, value in module.named_parameters()}

    def expected(x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ w["0.weight"].T + w["0.bias"]) @ w["2.weight"].T + w["2.bias"]

    def found(x: jax.Array) -> jax.Array:
        return fn(state["params"], state["buffers"], x)[0]

    x, transform = jnp.linspace(-1, 1, 8).reshape(2, 4), TRANSFORMS[name]
    np.testing.assert_allclose(transform(found, x), transform(expected, x), rtol=1e-4, atol=1e-5)


@pytest.mark.nightly
def test_with_the_gradient_of_jax_there_are_second_derivatives():
    fn, state = to_jax(perceptron(), gradient="jax")
    gradient = jax.grad(lambda x: fn(state["params"], {}, x)[0].sum())
    _, product = jax.jvp(gradient, (jnp.ones(4),), (jnp.ones(4),))
    (hessian,) = jnp.asarray(jax.hessian(lambda x: fn(state["params"], {}, x)[0])(jnp.ones(4)))
    np.testing.assert_allclose(product, hessian.sum(-1), rtol=1e-4, atol=1e-6)


def test_a_weight_that_is_shared_is_there_once():
    module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    module[1].weight = module[0].weight
    fn, state = to_jax(module)
    assert list(state["params"]) == ["0.weight", "0.bias", "1.bias"]
    found = jax.grad(lambda p: fn(p, {}, jnp.ones((2, 3)))[0].sum())(state["params"])
    module(torch.ones(2, 3)).sum().backward()
    assert_close(found["0.weight"], module[0].weight.grad)


def test_random_numbers_are_of_the_key():
    fn, _ = to_jax(nn.Dropout(0.5))
    first, same, other = (fn({}, {}, jnp.ones(50), rng=jax.random.key(k))[0] for k in (0, 0, 1))
    assert (first == same).all()
    assert (first != other).any()
    with pytest.raises(ValueError, match=r"Dropout draws random numbers.\nPass a key"):
        fn({}, {}, jnp.ones(50))


def test_a_function_whose_gradient_does_not_exist_runs_all_the_same():
    def halves(x: jax.Array) -> jax.Array:
        return call_torch(lambda x: x // 2, x)

    assert jax.jit(halves)(jnp.arange(4.0)).tolist() == [0, 0, 1, 1]
    with pytest.raises(RuntimeError, match=r"derivative for aten::floor_divide is not implemented"):
        jax.grad(lambda x: halves(x).sum())(jnp.arange(4.0))


def test_a_gradient_that_needs_a_value_is_a_graph_break_where_it_is_wanted():
    class Total(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.sum()

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return torch.full((5,), grad.item())

    def total(x: jax.Array) -> jax.Array:
        return call_torch(Total.apply, x)

    assert total(jnp.arange(5.0)) == 10
    with pytest.raises(GraphBreak, match="a value is read"):
        jax.grad(total)(jnp.arange(5.0))


def test_a_capture_looks_like_compiling_to_libraries():
    def checked(x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_compiling() and x.isnan().any():
            raise ValueError("NaN")
        return x * 2

    assert call_torch(checked, jnp.ones(2)).tolist() == [2, 2]
    assert not torch.compiler.is_compiling()


def test_an_argument_whose_values_are_not_used_has_the_gradient_zero():
    def loss(x: jax.Array, like: jax.Array) -> jax.Array:
        return (call_torch(torch.Tensor.view_as, x, like) ** 2).sum()

    found = jax.grad(loss, (0, 1))(jnp.ones(4), jnp.ones((2, 2)))
    assert [x.tolist() for x in found] == [[2, 2, 2, 2], [[0, 0], [0, 0]]]


def test_a_tensor_that_a_module_keeps_fails_when_it_is_read_and_no_other_graph():
    class Keeper(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.kept = x + 1
            return self.kept * 2

    module = Keeper()
    fn, _ = to_jax(module)
    assert fn({}, {}, jnp.ones(2))[0].tolist() == [4, 4]
    torch_xla_lite.sync()
    with pytest.raises(RuntimeError, match=r"function that was captured is used outside"):
        module.kept.tolist()


def test_a_capture_leaves_the_generator_and_what_is_recorded_as_they_were():
    torch.jax.manual_seed(0)
    expected = torch.rand(3, device="jax").tolist()
    torch.jax.manual_seed(0)
    x = torch.ones(3, device="jax") + 1
    to_jax(nn.Dropout(0.5))[0]({}, {}, jnp.ones(3), rng=jax.random.key(0))
    assert torch_xla_lite._XLAC.is_pending(x)
    assert torch.rand(3, device="jax").tolist() == expected


class Summing(nn.Module):
    """Writes to a tensor that is no buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.total = torch.zeros(2, device="jax")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x.sum(0))
        return x * 2


def test_what_a_capture_overwrites_has_its_old_value():
    norm, summing = nn.BatchNorm1d(2).to("jax"), Summing()
    pending = torch.ones(2, device="jax") + 3
    x = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    calls = [
        lambda: call_torch(norm, x),
        lambda: pure(summing)(torch.ones(2, 2, device="jax")),
        lambda: call_torch(lambda x: x + pending.mul_(2), x),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"(writes to|uses) a tensor"):
            call()
    values = [norm.running_mean, norm.num_batches_tracked, summing.total, pending]
    assert [value.tolist() for value in values] == [[0, 0], 0, [0, 0], [4, 4]]


def test_a_module_that_writes_to_its_argument_is_refused():
    class Adding(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.add_(1)

    with pytest.raises(ValueError, match="Adding writes to its argument"):
        pure(Adding())(torch.ones(2, device="jax"))


def test_a_wrong_shape_has_the_error_of_torch():
    fn, state = to_jax(nn.Linear(3, 2))
    with pytest.raises(RuntimeError, match=r"\[1, 4\] X \[3, 2\]"):
        fn(state["params"], {}, jnp.ones((1, 4)))


def test_buffers_that_are_replaced_are_returned():
    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count = self.count + 1
            return x

    fn, state = to_jax(Counted())
    assert fn({}, state["buffers"], jnp.ones(3))[1]["count"].tolist() == [1, 1]


class Peeking(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x


def test_a_module_that_needs_a_value_is_refused_with_its_line():
    with pytest.raises(
        GraphBreak, match=r"Peeking .* a value is read, at .*: return x if x.sum\(\)"
    ):
        to_jax(Peeking())[0]({}, {}, jnp.ones(3))
    assert (torch.ones(2, device="jax") + 1).tolist() == [2, 2]


def test_call_torch_has_gradients_and_is_captured_once():
    calls = []

    def silu(x: torch.Tensor, scale: float) -> torch.Tensor:
        calls.append(scale)
        return torch.nn.functional.silu(x * scale)

    for _ in range(2):
        found = jax.grad(lambda x: call_torch(silu, x, 2.0).sum())(jnp.ones(3))
    expected = jax.grad(lambda x: jax.nn.silu(2 * x).sum())(jnp.ones(3))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert calls == [2.0]


def test_views_of_each_other():
    x = torch.arange(3)
    assert jax_view(x).dtype == jnp.int32
    assert torch_view(jnp.arange(3)).tolist() == [0, 1, 2]


def test_torch_and_jax_in_each_other():
    module = perceptron()
    fn, _ = to_jax(module)
    on_jax = copy.deepcopy(module).to("jax")
    params, x = dict(on_jax.named_parameters()), torch.randn(2, 4)
    debug.reset_metrics()
    found, _ = call_jax(fn, params, {}, x.to("jax"))
    found.sum().backward()
    module(x).sum().backward()
    torch.testing.assert_close(on_jax[0].weight.grad.cpu(), module[0].weight.grad)
    assert not debug.metrics()["fallbacks"]


# --- settings of the thread -----------------------------------------------------------------------


def with_range(x: torch.Tensor) -> torch.Tensor:
    return x + torch.arange(3)


def test_the_default_device_is_that_of_the_call():
    with torch.device("jax"):
        assert call_torch(with_range, jnp.ones(3)).tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError, match="expected all tensors on one device"):
        call_torch(with_range, jnp.ones(3))


class SinesAreDoubled(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.sin else result


def test_function_modes_are_those_of_the_call():
    found = [call_torch(torch.sin, jnp.ones(1)).item()]
    with SinesAreDoubled():
        found.append(call_torch(torch.sin, jnp.ones(1)).item())
    found.append(call_torch(torch.sin, jnp.ones(1)).item())
    assert found == pytest.approx(np.sin(1) * np.array([1, 2, 1]))


def test_a_function_mode_is_no_part_of_derivatives_that_are_kept():
    class Sine(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sin(x)

    fn, _ = to_jax(Sine(), gradient="jax")
    with SinesAreDoubled():
        assert jax.grad(lambda x: fn({}, {}, x)[0])(0.0) == 2
    assert jax.grad(lambda x: fn({}, {}, x)[0])(0.0) == 1


class Product(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return call_jax(lambda x: (x @ x, jnp.arange(3)), x)


def test_the_options_of_jax_are_those_of_the_call():
    def lowered() -> str:
        return jax.jit(lambda x: fn({}, {}, x)[0]).lower(jnp.ones((2, 2))).as_text()

    fn, _ = to_jax(Product())
    assert "HIGHEST" not in lowered()
    with jax.default_matmul_precision("highest"):
        assert "HIGHEST" in lowered()
    with jax.enable_x64(True):
        assert fn({}, {}, jnp.ones((2, 2)))[0][1].dtype == jnp.int64


# --- values and modes that change -----------------------------------------------------------------


def scale_of_the_module() -> nn.Module:
    return nn.Linear(2, 1, bias=False).to("jax")


FACTOR = torch.ones(2).to("jax")


def times_a_global(x: torch.Tensor) -> torch.Tensor:
    return x * FACTOR


def times_a_captured_tensor() -> Any:
    factor = torch.ones(2).to("jax") + 1
    return lambda x: x * factor[:1]


@pytest.mark.parametrize(
    "make", [scale_of_the_module, times_a_captured_tensor, lambda: times_a_global]
)
def test_a_tensor_that_is_no_argument_is_refused(make: Any):
    with pytest.raises(ValueError, match=r"uses a tensor on jax .*\nPass it as an argument: "):
        call_torch(make(), jnp.ones((1, 2)))


def test_a_tensor_of_a_module_that_is_not_in_its_state_is_refused():
    module = nn.Identity()
    module.forward = lambda x: x * FACTOR
    with pytest.raises(ValueError, match=r"torch.float32 \[2\].*\nMake it a part of the state: "):
        to_jax(module)[0]({}, {}, jnp.ones(2))


def test_tensors_that_the_function_makes_are_constants():
    factor = jnp.full(2, 3.0)

    def function(x: torch.Tensor) -> torch.Tensor:
        return x * torch_view(factor) + torch.tensor([1.0, 2.0], device="jax")

    assert call_torch(function, jnp.ones(2)).tolist() == [4, 5]


class Caching(nn.Module):
    cache: Any = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.cache is None:
            self.cache = torch.arange(2.0, device="jax")
        return call_jax(lambda x: x + jnp.arange(2.0), x * self.cache)


def test_a_module_may_keep_what_it_made_in_an_earlier_capture():
    fn, _ = to_jax(Caching())
    assert fn({}, {}, jnp.ones(2))[0].tolist() == [0, 2]
    assert fn({}, {}, jnp.ones((1, 2)))[0].tolist() == [[0, 2]]


def test_a_tensor_that_another_thread_makes_during_a_capture_is_none_of_it():
    with ThreadPoolExecutor(1) as other:

        def function(x: torch.Tensor) -> torch.Tensor:
            made.append(other.submit(torch.full, (2,), 3.0, device="jax").result())
            return x + 1

        made: list[torch.Tensor] = []
        assert call_torch(function, jnp.ones(2)).tolist() == [2, 2]
    with pytest.raises(ValueError, match="uses a tensor on jax"):
        call_torch(lambda x: x * made[0], jnp.ones(2))


def test_what_a_capture_that_has_not_ended_makes_is_refused_in_another_one():
    def outer(x: torch.Tensor) -> torch.Tensor:
        own = torch.arange(2.0, device="jax")
        return call_jax(lambda a: call_torch(lambda y: y * own, a), x)

    with pytest.raises(ValueError, match="uses a tensor on jax"):
        call_torch(outer, jnp.ones(2))


def test_an_array_that_a_function_of_jax_captures_is_a_constant():
    factor = jnp.full(2, 3.0)

    def triple(x: torch.Tensor) -> torch.Tensor:
        return call_jax(of_jax, x)

    def of_jax(x: jax.Array) -> jax.Array:
        return x * factor

    assert triple(torch.ones(2, device="jax")).tolist() == [3, 3]
    assert call_torch(triple, jnp.ones(2)).tolist() == [3, 3]


def functional(module: nn.Module, weights: Any, x: jax.Array) -> jax.Array:
    return call_torch(torch.func.functional_call, module, weights, x)


def method(module: nn.Module, weights: Any, x: jax.Array) -> jax.Array:
    return call_torch(module.forward, x)


def captured(module: nn.Module, weights: Any, x: jax.Array) -> jax.Array:
    return call_torch(lambda w, x: torch.func.functional_call(module, w, x), weights, x)


def by_call_jax(module: nn.Module, weights: Any, x: jax.Array) -> jax.Array:
    fn = module.__dict__.setdefault("fn", to_jax(module)[0])
    return jax_view(call_jax(fn, {}, {}, torch_view(x))[0])


@pytest.mark.parametrize("call", [functional, method, captured, by_call_jax])
def test_modes_of_a_module_are_those_at_the_call_of_the_function(call: Any):
    class Mode(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.training

    module = Mode()
    assert call(module, {}, jnp.zeros(1)).item() == 1
    module.eval()
    assert call(module, {}, jnp.zeros(1)).item() == 0


def test_tensors_are_arrays_for_the_function():
    fn, _ = to_jax(nn.Linear(2, 1, bias=False))
    w, x = torch.ones(1, 2, device="jax"), torch.ones(2, device="jax")
    assert fn({"weight": w}, {}, x)[0].item() == 2
    w.fill_(3)
    x.fill_(2)
    assert fn({"weight": w}, {}, x)[0].item() == 12
    with pytest.raises(BufferError, match="Detach it first"):
        fn({"weight": w.requires_grad_()}, {}, x)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["weight"], "of Linear lack bias.\nPass those"),
        (["weight", "bais"], "lack bias and have the unknown bais"),
        (["weight", "bias", "scale"], "of Linear have the unknown scale"),
    ],
)
def test_names_that_are_not_those_of_the_module_are_refused(names: list[str], text: str):
    fn, _ = to_jax(nn.Linear(2, 1).to("jax"))
    with pytest.raises(ValueError, match=text):
        fn(dict.fromkeys(names, jnp.ones((1, 2))), {}, jnp.ones(2))


def test_what_is_known_of_a_function_does_not_keep_it():
    class Owner:
        def apply(self, x: torch.Tensor) -> torch.Tensor:
            return x // 2  # It has no gradient, so an error is kept.

    def call() -> list[weakref.ref]:
        owner, module = Owner(), nn.Linear(2, 1)
        function, weights = lambda x: owner.apply(x), jax_view(module.state_dict())
        call_torch(owner.apply, jnp.ones(2))
        call_torch(function, jnp.ones(2))
        call_torch(torch.func.functional_call, module, weights, jnp.ones(2))
        return [weakref.ref(x) for x in (owner, function, module)]

    references = call()
    gc.collect()
    assert [reference() for reference in references] == [None] * 3


def test_values_that_are_told_apart_are_captured_apart():
    def signed(x: torch.Tensor, value: complex) -> torch.Tensor:
        return torch.copysign(x, torch.tensor(value.real))

    found = [call_torch(signed, jnp.ones(1), value).item() for value in (0.0, -0.0, 0j, -0j)]
    assert found == [1, -1, 1, -1]
