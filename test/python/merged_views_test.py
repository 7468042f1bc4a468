"""A view of a view is one step where one op can make it, and means what it means on the CPU."""

from collections.abc import Callable

import pytest
import torch

from test.python import tiers
from test.python.random_steps import layout
from torch_xla_lite import debug

UNMERGED = 8  # steps of a chain that stay as the program made them

View = Callable[[torch.Tensor], torch.Tensor]


def arange(*shape: int, device: str = "cpu") -> torch.Tensor:
    return torch.arange(float(torch.Size(shape).numel()), device=device).view(shape)


def ops_of(view: torch.Tensor) -> list[str]:
    """The ops of the graph that gives the view."""
    torch.jax.synchronize()
    result = view.neg()
    ops = [step.op for step in debug.graph().steps if step.op]
    del result
    return ops[:-1]


# Each gives a view of the same shape, but those that shrink.
ROUNDS: dict[str, View] = {
    "transposes": lambda x: x.t().t(),
    "a transpose and its inverse": lambda x: x.transpose(0, 1).permute(1, 0),
    "reshapes": lambda x: x.view(-1).view(4, 30).view(10, 12),
    "reshapes by other ops": lambda x: (
        x.unsqueeze(1).flatten(0, 1).unflatten(0, (2, 5)).view(10, 12)
    ),
    "a dimension and its only row": lambda x: x[None][0],
    "reshapes of transposes": lambda x: x.t().view(12, 2, 5).view(12, 10).t(),
    "all of it": lambda x: x[:, 0:].expand(10, 12).view(10, 12),
    "one element at a time": lambda x: x[1:],
    "from both ends": lambda x: x[:, 1:] if x.shape[1] % 2 else x[:, :-1],
    "every other": lambda x: x[::2],
    "bits": lambda x: x.view(torch.int32).view(torch.float32),
}


@pytest.mark.parametrize("name", ROUNDS)
def test_a_loop_of_views_is_read_in_few_steps(name: str):
    x, on_cpu = arange(10, 12).to("jax"), arange(10, 12)
    for _ in range(10):
        x, on_cpu = ROUNDS[name](x), ROUNDS[name](on_cpu)
    assert len(ops_of(x)) <= UNMERGED + 1
    assert torch.equal(x.cpu(), on_cpu)
    assert layout(x) == layout(on_cpu)


def test_conjugates_and_complex_numbers_are_undone():
    x = torch.view_as_complex(arange(6, 2).to("jax"))
    for _ in range(5):
        x = torch.view_as_complex(torch.view_as_real(x)).conj().conj()
    assert len(ops_of(x)) <= UNMERGED + 1
    assert not x.is_conj()


def test_the_start_of_a_merged_slice_makes_no_new_graph():
    x = arange(100).to("jax")
    torch.jax.synchronize()
    values = []
    debug.reset_metrics()
    for start in (1, 2, 7):
        y = x
        for _ in range(UNMERGED):
            y = y[0:100]
        values.append(y[start:][start : start + 5].sum().item())
    assert values == [20, 30, 80]
    assert debug.metrics()["compiles"] <= 1


def test_a_chain_that_does_not_merge_is_read_and_written():
    x, on_cpu = arange(3).to("jax"), arange(3)
    y, view = x, on_cpu
    for _ in range(500):
        y, view = y[None].expand(2, 3)[1], view[None].expand(2, 3)[1]
    assert len(ops_of(y)) == 1500
    with tiers.as_by_default():
        y[1:].add_(1)
        view[1:].add_(1)
        assert x.tolist() == on_cpu.tolist()


def test_a_chain_of_a_hundred_thousand_views_ends():
    x = arange(2, 3).to("jax")
    y = x
    for _ in range(100_000):
        y = y.t()
    y.add_(1)
    with tiers.as_by_default():
        assert x.tolist() == [[1, 2, 3], [4, 5, 6]]
