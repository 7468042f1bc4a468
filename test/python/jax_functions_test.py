"""How call_jax recognises functions, and that what it keeps is bounded."""

import functools
import gc
import types
import warnings
import weakref
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest
import torch

import torch_xla_lite
from torch_xla_lite import call_jax
from torch_xla_lite.compiler import jax_programs
from torch_xla_lite.compiler.new_graphs import RecompilationWarning
from torch_xla_lite.interop import jax_functions

OFFSET = 1.0


def values() -> torch.Tensor:
    return torch.arange(4.0).to("jax")


def num_traces(make_call) -> int:
    """How many programs five calls make."""
    before = next(jax_programs._numbers)
    for i in range(5):
        make_call(i)
    return next(jax_programs._numbers) - before - 1


class Scaled:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, x: jax.Array) -> jax.Array:
        return x * self.factor

    def apply(self, x: jax.Array) -> jax.Array:
        return x * self.factor


class Pair(NamedTuple):
    """No weak reference to it is possible."""

    factor: float

    def apply(self, x: jax.Array) -> jax.Array:
        return x * self.factor


def test_tuples_are_kept_up_to_a_number(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jax_functions, "_MOST_CODES", 4)
    before = len(jax_functions._kept)
    for i in range(10):
        assert call_jax(Pair(i).apply, values()).tolist()[1] == i
    assert len(jax_functions._kept) <= max(before, 4)


def test_methods_of_different_objects_are_different():
    a, b = (call_jax(Scaled(factor).apply, values()).tolist() for factor in (2, 3))
    assert (a, b) == ([0, 2, 4, 6], [0, 3, 6, 9])


def test_a_partial_is_a_call_of_its_function():
    w = torch.ones(4).to("jax")
    partial = functools.partial(functools.partial(jnp.clip, min=0), values())
    assert num_traces(lambda i: call_jax(functools.partial(jnp.multiply, w), values())) == 1
    assert call_jax(partial, max=2).tolist() == [0, 1, 2, 2]


def test_a_lambda_that_captures_another_value_is_another_function():
    def call(factor: float) -> float:
        return call_jax(lambda x: x * factor, values()).tolist()[1]

    found = [call(factor) for factor in (2, 2.0, -0.0, 0.0)]
    assert [str(x) for x in found] == ["2.0", "2.0", "-0.0", "0.0"]


def test_a_lambda_that_reads_another_global_is_another_function(monkeypatch: pytest.MonkeyPatch):
    found = []
    for offset in (1.0, 2.0):
        monkeypatch.setitem(globals(), "OFFSET", offset)
        found.append(call_jax(lambda x: x + OFFSET, values()).tolist()[0])
    assert found == [1.0, 2.0]


def test_an_object_that_may_change_is_not_compared():
    settings = types.SimpleNamespace(factor=0)
    found = []
    for factor in (2, 3):
        settings.factor = factor
        found.append(call_jax(lambda x: x * settings.factor, values()).tolist()[1])
    assert found == [2, 3]


def test_functions_within_the_function_count():
    def call(i: int) -> float:
        parity = i % 2

        def inner(x: jax.Array) -> jax.Array:
            return x * parity

        return call_jax(lambda x: inner(x) + 1, values()).tolist()[1]

    assert [call(i) for i in (0, 1, 0)] == [1, 2, 1]
    assert num_traces(call) == 0


def test_a_line_that_makes_ever_new_functions_gets_one_warning():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(30):
            array = jnp.ones(4)
            call_jax(lambda x: x + array, values())  # noqa: B023
    (warning,) = (w for w in caught if w.category is RecompilationWarning)
    assert "Pass what it captures as arguments" in str(warning.message)
    assert warning.filename == __file__


def test_functions_that_stay_are_worth_no_warning():
    layers = [Scaled(i) for i in range(30)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RecompilationWarning)
        for layer in layers:
            call_jax(layer, values())


def test_a_function_is_not_kept():
    scaled = Scaled(2)
    gone = weakref.ref(scaled)
    call_jax(scaled, values())
    del scaled
    gc.collect()
    assert gone() is None


def test_an_array_that_it_captures_is_not_kept_longer():
    def call() -> weakref.ref:
        array = jnp.ones(4)
        call_jax(lambda x: x + array, values()).tolist()
        return weakref.ref(array)

    gone = call()
    torch_xla_lite.sync()
    gc.collect()
    assert gone() is None


def test_what_is_kept_is_bounded_and_pending_calls_are_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jax_programs, "_MOST", 4)
    results = [call_jax(lambda x, i: x + i, values(), i) for i in range(10)]
    assert len(jax_programs._recent) <= 4
    assert [result.tolist()[0] for result in results] == list(range(10))


def test_what_was_dropped_is_traced_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jax_programs, "_MOST", 2)
    for _ in range(2):
        for i in range(4):
            assert call_jax(jnp.add, values(), i).tolist()[0] == i


def test_the_backward_pass_of_a_dropped_program(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jax_programs, "_MOST", 4)
    x = values().requires_grad_()
    y = call_jax(jnp.sin, x)
    for i in range(10):
        call_jax(jnp.add, values(), i)
    y.sum().backward()
    torch.testing.assert_close(x.grad.cpu(), torch.arange(4.0).cos())


def test_a_name_for_messages():
    assert jax_functions.name_of(Scaled(2)) == "Scaled"
    assert jax_functions.name_of(Scaled(2).apply) == "Scaled.apply"


class Options:
    scale = 1.0


class Further(Options):
    pass


LIBRARY = types.ModuleType("library")
LIBRARY.scale = 1.0


def helper(x: jax.Array) -> jax.Array:
    return x


READ = {
    "class": (Options, lambda: lambda x: x * Options.scale),
    "base class": (Options, lambda: lambda x: x * Further.scale),
    "module": (LIBRARY, lambda: lambda x: x * LIBRARY.scale),
    "function": (helper, lambda: lambda x: helper(x) * helper.scale),
    "text": (Options, lambda: lambda x: x * vars(Options)["scale"]),
    "local function": (Options, lambda: (lambda f: lambda x: f(x))(lambda x: x * Options.scale)),
}


@pytest.mark.parametrize("name", READ)
def test_attributes_that_a_lambda_reads_are_compared(name: str, monkeypatch: pytest.MonkeyPatch):
    owner, make = READ[name]
    found = []
    for scale in (1.0, 2.0, 2.0, 3.0):
        monkeypatch.setattr(owner, "scale", scale, raising=False)
        found.append(call_jax(make(), values()).tolist()[1])
    assert found == [1, 2, 2, 3]
    assert num_traces(lambda i: call_jax(make(), values())) == 0


SCALED, PAIR = Scaled(2), Pair(2.0)


def capturing() -> Callable:
    factor, function = 2.0, jnp.sin
    return lambda x: function(x) * factor


# Each call of these makes a function; all of them are one function.
RECOGNISED = {
    "function of jax": lambda: jnp.sin,
    "object": lambda: SCALED,
    "method": lambda: SCALED.apply,
    "method of a tuple": lambda: PAIR.apply,
    "lambda": lambda: lambda x: x * OFFSET,
    "lambda that captures values": capturing,
    "functions of jax": lambda: lambda x: jnp.sin(x) + jnp.pi,
    "ufunc": lambda: lambda x: jnp.add(x, 1).astype(jnp.float32).reshape(jnp.shape(x)),
    "nested": lambda: lambda x: jax.nn.softmax(jax.numpy.sum(x) + jax.nn.relu(x), axis=0),
    "precision": lambda: lambda x: jnp.dot(x, x, precision=jax.lax.Precision.HIGHEST),
    "random": lambda: lambda x: jax.random.normal(jax.random.key(0), x.shape, x.dtype) + x,
    "linalg": lambda: lambda x: jnp.linalg.norm(x) + jax.lax.fori_loop(0, 2, lambda i, y: y, x),
    "torch": lambda: lambda x: x * torch.finfo(torch.float32).eps,
}


@pytest.mark.parametrize("name", RECOGNISED)
def test_a_function_that_is_made_again_is_recognised(name: str):
    assert num_traces(lambda i: call_jax(RECOGNISED[name](), values())) == 1


def test_a_line_whose_lambdas_read_objects_that_may_change_gets_one_warning(
    monkeypatch: pytest.MonkeyPatch,
):
    found = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(30):
            monkeypatch.setattr(Options, "scale", [i])
            found.append(call_jax(lambda x: x * Options.scale[0], values()).tolist()[1])
    assert found == list(range(30))
    assert sum("Pass what it captures as arguments" in str(w.message) for w in caught) == 1
