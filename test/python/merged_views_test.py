"""A view of a view is one step where one op can make it, and means what it means on the CPU."""

import random
from collections.abc import Callable

import pytest
import torch

from torch_xla_lite import _XLAC, debug

UNMERGED = 8  # steps of a chain that stay as the program made them

View = Callable[[torch.Tensor], torch.Tensor]


def arange(*shape: int, device: str = "cpu") -> torch.Tensor:
    return torch.arange(float(torch.Size(shape).numel()), device=device).view(shape)


def layout(x: torch.Tensor) -> list[int]:
    """The strides of dimensions that have several elements, and the offset."""
    strides = [step for size, step in zip(x.shape, x.stride(), strict=True) if size > 1]
    return [*strides, x.storage_offset()]


def ops_of(view: torch.Tensor) -> list[str]:
    """The ops of the graph that gives the view."""
    torch.jax.synchronize()
    result = view.neg()
    ops = [step[0] for step in debug.graph().steps if isinstance(step[0], str)]
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
    with _interpreting():
        y[1:].add_(1)
        view[1:].add_(1)
        assert x.tolist() == on_cpu.tolist()


def test_a_chain_of_a_hundred_thousand_views_ends():
    x = arange(2, 3).to("jax")
    y = x
    for _ in range(100_000):
        y = y.t()
    y.add_(1)
    with _interpreting():
        assert x.tolist() == [[1, 2, 3], [4, 5, 6]]


class _interpreting:
    def __enter__(self) -> None:
        self.before = _XLAC.set_compile_when("repeated")

    def __exit__(self, *error: object) -> None:
        _XLAC.set_compile_when(self.before)


def _random_view(x: torch.Tensor, random_: random.Random) -> View:
    """A view of a tensor of this shape."""
    dim = random_.randrange(x.dim()) if x.dim() else None
    kinds = ["unsqueeze", "squeeze", "view", "permute", "expand"]
    if dim is not None and x.dim() > 1:
        kinds += ["transpose", "transpose"]
    if dim is not None and x.shape[dim]:
        kinds += ["slice", "slice", "select"]
    kind = random_.choice(kinds)
    if kind == "unsqueeze" and x.dim() < 5:
        place = random_.randrange(x.dim() + 1)
        return lambda x: x.unsqueeze(place)
    if kind == "view" and x.is_contiguous():
        size = x.numel()
        part = random_.choice([n for n in range(1, size + 1) if size % n == 0] or [1])
        return lambda x: x.view(part, -1) if x.numel() else x.view(x.shape)
    if kind == "permute":
        order = random_.sample(range(x.dim()), x.dim())
        return lambda x: x.permute(order)
    if kind == "expand":
        return lambda x: x.expand(x.shape)
    if kind == "transpose":
        other = random_.randrange(x.dim())
        return lambda x: x.transpose(dim, other)
    if kind == "slice":
        start = random_.randrange(-1, x.shape[dim])
        step = random_.choice([1, 1, 2, 3])
        return lambda x: x[(slice(None),) * dim + (slice(start, None, step),)]
    if kind == "select":
        index = random_.randrange(x.shape[dim])
        return lambda x: x.select(dim, index)
    return lambda x: x.squeeze()


def _chain(seed: int) -> list[View]:
    random_, x, views = random.Random(seed), arange(4, 6, 5), []
    for _ in range(24):
        views.append(_random_view(x, random_))
        x = views[-1](x)
    return views


def _outcome(views: list[View], device: str) -> list[torch.Tensor]:
    """The value of the last view, what a write through it leaves in the base, and a gradient."""
    base = arange(4, 6, 5).to(device)
    view = base
    for make in views:
        view = make(view)
    value = view.clone()
    view.add_(100)
    leaf = arange(4, 6, 5).to(device).requires_grad_()
    last = leaf * 1
    for make in views:
        last = make(last)
    weight = torch.arange(float(last.numel())).view(last.shape).to(device)
    (last * weight).sum().backward()
    return [x.cpu() for x in (value, view, base, leaf.grad, torch.tensor(layout(view)))]


def _check(seed: int, when: str) -> None:
    views = _chain(seed)
    before = _XLAC.set_compile_when(when)
    torch.jax.synchronize()
    debug.reset_metrics()
    try:
        got = _outcome(views, "jax")
    finally:
        _XLAC.set_compile_when(before)
    for ours, wanted in zip(got, _outcome(views, "cpu"), strict=True):
        assert torch.equal(ours, wanted)
    # The kernels of torch run what steps became.
    assert when == "first" or debug.metrics()["compiles"] == 0


@pytest.mark.parametrize("seed", range(30))
def test_views_writes_and_gradients_of_random_chains_are_those_of_the_cpu(seed: int):
    _check(seed, "repeated")


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(30, 100))
def test_random_chains_are_those_of_the_cpu_when_compiled(seed: int):
    _check(seed, "first")
