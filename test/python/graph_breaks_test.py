"""compile: one graph for each call, or an error with the line that needs a value."""

import math
import threading
from collections.abc import Callable
from math import inf, nan

import jax.numpy as jnp
import pytest
import torch

import torch_xla_lite
from torch_xla_lite import GraphBreak, debug


def values() -> torch.Tensor:
    x = torch.arange(4.0).to("jax")
    torch_xla_lite.sync()
    debug.reset_metrics()
    return x


def num_graphs() -> int:
    metrics = debug.metrics()
    return metrics["executions"] + metrics["interpretations"]


def test_a_training_step_is_one_graph():
    layer = torch.nn.Linear(4, 4).to("jax")
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)

    @torch_xla_lite.compile
    def step(x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):  # Each optimizer.step() would end a graph.
            optimizer.zero_grad()
            loss = layer(x).square().mean()
            loss.backward()
            optimizer.step()
        return loss

    x = values()
    first = step(x)
    assert num_graphs() == 1
    assert step(x).item() < first.item()


@pytest.mark.few_daily(4)
@pytest.mark.parametrize("reduce", [torch.max, torch.min, torch.median, torch.nanmedian])
@pytest.mark.parametrize("values", [[3, 1, 2, 1, 3, 2], [nan, 1, nan], [inf, 1, inf], [-inf, -inf]])
def test_the_gradient_of_a_reduction_reads_no_value(reduce: Callable, values: list[float]):
    @torch_xla_lite.compile
    def gradient(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = x.requires_grad_()
        result = reduce(x)
        return result.detach(), torch.autograd.grad(result, x)[0]

    x = torch.tensor(values, dtype=torch.float)
    result, found = gradient(x.to("jax"))
    expected = reduce(x.requires_grad_())
    torch.testing.assert_close(result.cpu(), expected.detach(), rtol=0, atol=0, equal_nan=True)
    assert found.tolist() == torch.autograd.grad(expected, x)[0].tolist()


@pytest.mark.few_daily(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64])
@pytest.mark.parametrize("shape", [(5,), (3, 4)])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_covariance_reads_no_value(dtype: torch.dtype, shape: tuple, mode: Callable):
    x = torch.arange(math.prod(shape)).square().sub(7).reshape(shape).to(dtype)
    with mode():
        found = torch_xla_lite.compile(torch.cov)(x.to("jax"))
        torch.testing.assert_close(found.cpu(), torch.cov(x))
        if len(shape) == 2:
            found = torch_xla_lite.compile(torch.corrcoef)(x.to("jax"))
            torch.testing.assert_close(found.cpu(), torch.corrcoef(x))


def test_a_covariance_has_gradients():
    @torch_xla_lite.compile
    def gradient(x: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad(torch.cov(x, correction=0).square().sum(), x)[0]

    x = torch.randn(3, 4).requires_grad_()
    expected = torch.autograd.grad(torch.cov(x, correction=0).square().sum(), x)[0]
    torch.testing.assert_close(gradient(x.detach().to("jax").requires_grad_()).cpu(), expected)


def test_what_was_recorded_before_is_another_graph():
    x = values()
    y = x + 1
    torch_xla_lite.compile(lambda: y * 2)()
    assert num_graphs() == 2


READ = "a value is read"
READS = {
    "item": (lambda x: x.sum().item(), READ),
    "if": (lambda x: 1 if x.sum() > 0 else 0, READ),
    "print": (str, READ),
    "numpy": (lambda x: x.numpy(), READ),
    "nonzero": (lambda x: x.nonzero(), "aten::nonzero"),
    "mask": (lambda x: x[x > 1], "aten::index.Tensor"),
    "sync": (lambda x: torch_xla_lite.sync(), "sync"),
    "jax": (lambda x: jnp.asarray(x), READ),
    "repeated": (lambda x: x.repeat_interleave(x.long()), "aten::repeat_interleave.Tensor"),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_is_refused_with_its_line_and_what_needs_the_value(name: str):
    read, reason = READS[name]
    step = torch_xla_lite.compile(lambda x: read(x + 1))
    with pytest.raises(GraphBreak, match=reason) as caught:
        step(values())
    assert caught.value.file == __file__
    assert caught.value.line
    assert str(caught.value).endswith("torch.where(condition, a, b)")


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("name", ["cholesky", "inv", "solve"])
def test_a_check_of_a_factorisation_names_the_function_without(name: str):
    arguments = [torch.eye(3, device="jax")] * (2 if name == "solve" else 1)
    step = torch_xla_lite.compile(lambda: getattr(torch.linalg, name)(*arguments))
    with pytest.raises(GraphBreak, match=rf"{name} reads whether it failed.*linalg.{name}_ex"):
        step()


def test_a_refusal_that_the_function_catches_is_raised_at_its_end():
    @torch_xla_lite.compile
    def step(x: torch.Tensor) -> float:
        try:
            return (x + 1).sum().item()
        except RuntimeError:
            return 0.0

    with pytest.raises(GraphBreak, match="whose error the function catches"):
        step(values())


def test_what_is_computed_already_can_be_read():
    assert torch_xla_lite.compile(lambda x: x.tolist())(values()) == [0, 1, 2, 3]


def test_other_errors_are_what_they_were():
    def fail() -> None:
        raise KeyError("other")

    with pytest.raises(KeyError, match="other"):
        torch_xla_lite.compile(fail)()


def test_other_threads_may_read():
    found = []

    def read() -> None:
        found.append((torch.ones(2, device="jax") + 1).tolist())

    def step() -> None:
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()

    torch_xla_lite.compile(step)()
    assert found == [[2, 2]]


def test_a_compiled_function_calls_another_one():
    inner = torch_xla_lite.compile(lambda x: x + 1)
    x = values()
    assert torch_xla_lite.compile(lambda x: inner(x) * 2)(x).tolist() == [2, 4, 6, 8]
    assert num_graphs() == 1
