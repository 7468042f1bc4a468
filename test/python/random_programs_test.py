"""Random programs of views, writes, mixed dtypes, indexing, reductions and gradients.

A program is a loop: tensors that stay, steps that come back, numbers that vary, and reads between
them. Steps that the CPU refuses are left out of it. What the tensors hold is what they hold on the
CPU: bit by bit in a loop whose first turns are interpreted and whose others are run by plans, and
nearly in one that is compiled. hypothesis makes programs, and the smallest one that fails.
"""

import dataclasses
import os
from collections.abc import Sequence

import pytest
import torch
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import torch_xla_lite
from test.python import random_steps, tiers
from test.python.random_steps import DTYPES, OF_ONE, OF_TWO, REFUSALS, VIEWS, WRITES, Start, apply
from torch_xla_lite import _XLAC

Tensor = torch.Tensor

Tensor = torch.Tensor
# A number of a step, in a turn.
NUMBERS = {
    "constant": lambda first, turn: first,
    "next": lambda first, turn: first + turn,
    "alternating": lambda first, turn: (first + turn % 2) % 6,
    "every third": lambda first, turn: turn // 3,
}
WRITES_OF_TWO = {name for name in OF_TWO if name.endswith("_") or name.startswith("write")}
WRITES_OF_TWO |= {"add into", "copy_ from the CPU", "set_ to a part"}


def gradient_step(x: Tensor, y: Tensor) -> None:
    weight = x.detach().clone().requires_grad_()
    ((weight * weight).sum() + (weight * y.detach()).sum()).backward()
    assert weight.grad is not None
    x.detach().sub_(weight.grad, alpha=0.5)


def overlaps(x: Tensor) -> bool:
    """Whether two elements are one in memory."""
    places = torch.zeros(1, dtype=torch.int64)
    for size, stride in zip(x.shape, x.stride(), strict=True):
        places = (places[:, None] + torch.arange(size) * stride).flatten()
    return len(places.unique()) < len(places)


def check_defined(name: str, x: Tensor, y: Tensor) -> None:
    """Refuses what the CPU does in an order, or a layout, that its kernels choose."""
    if name in WRITES or name in WRITES_OF_TWO or name == "gradient step":
        if overlaps(x):
            raise ValueError("it writes twice to the same element")
        of_x, of_y = ((t.storage_offset(), t.shape, t.stride()) for t in (x, y))
        shared = x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
        if shared and of_x != of_y and name not in WRITES:
            raise ValueError("it writes to what it reads")
        if shared and name in ("index_add_", "index_copy_", "scatter_", "masked_scatter_"):
            raise ValueError("it reads what it has written")
    if name == "bits" and x.dtype == torch.bool:
        raise ValueError("a bool may be more than 0 and 1 afterwards")
    if name in ("as_strided", "bits", "resize_") and not (x.is_contiguous() and x.numel()):
        raise ValueError("how results lie, and where what is empty begins, differs")


@dataclasses.dataclass(frozen=True)
class Step:
    """tensors[to] = name(tensors[x], tensors[y], a, b), or a write to tensors[x]."""

    name: str
    x: int
    y: int
    to: int
    numbers: tuple[tuple[str, int], tuple[str, int]] = (("constant", 0), ("constant", 0))

    def run(self, tensors: list[Tensor], turn: int) -> None:
        x, y = (tensors[place % len(tensors)] for place in (self.x, self.y))
        if x.is_cpu:
            check_defined(self.name, x, y)
        if self.name == "gradient step":
            gradient_step(x, y)
            return
        a, b = (NUMBERS[kind](first, turn) for kind, first in self.numbers)
        result = apply(self.name, x, y, a, b)
        if result is not None:
            tensors[self.to % len(tensors)] = result
            if result.numel() > 4000:
                raise ValueError("it grows")


@dataclasses.dataclass(frozen=True)
class Loop:
    first: Sequence[Start]
    steps: Sequence[Step]
    reads: str = "none"  # What it reads in a turn: one, all, none.
    is_compiled: bool = False

    def tensors(self, device: str, found: list[Tensor]) -> list[Tensor]:
        """Those at the end; what was read is added to `found`."""
        tensors = [start.on(device) for start in self.first]
        for turn in range(2 if self.is_compiled else 8):
            for step in self.steps:
                step.run(tensors, turn)
            if self.reads == "one":
                found.append(tensors[turn % len(tensors)].detach().cpu().clone())
            elif self.reads == "all" and turn % 3 == 2:
                found += [x.detach().cpu().clone() for x in tensors]
            elif self.reads == "none" and device == "jax":
                torch_xla_lite.sync()
        return tensors

    def run(self, device: str) -> tuple[list[Tensor], list[list[int]], list[Tensor | None]]:
        """What was read, and all tensors; how these lie; gradients of leaves, if there are some."""
        found: list[Tensor] = []
        tensors = self.tensors(device, found)
        found += [x.detach().cpu() for x in tensors]
        layouts = [layout(x) for x in tensors]
        leaves = [x for x in tensors if x.requires_grad and x.is_leaf]
        losses = [x.double().sum() for x in tensors if x.requires_grad and not x.is_leaf]
        try:
            if losses:
                torch.stack(losses).sum().backward()
        except RuntimeError:  # A saved value was overwritten.
            return found, layouts, []
        return found, layouts, [None if x.grad is None else x.grad.cpu() for x in leaves]


def layout(x: Tensor) -> list[int]:
    """Of a view of a row-major tensor."""
    is_known = x._base is not None and x._base.is_contiguous() and x.numel()
    return random_steps.layout(x) if is_known else []


def without_refused(loop: Loop) -> Loop:
    """Leaves out the steps that the CPU refuses in some turn."""
    steps: list[Step] = []
    for step in loop.steps:
        try:
            dataclasses.replace(loop, steps=[*steps, step]).tensors("cpu", [])
            steps.append(step)
        except REFUSALS:
            pass
    return dataclasses.replace(loop, steps=steps)


def check(loop: Loop) -> None:
    loop = without_refused(loop)
    note(str(loop))
    wanted, layouts, gradients = loop.run("cpu")
    _XLAC.set_compile_when("first" if loop.is_compiled else "repeated")
    try:
        got, got_layouts, got_gradients = loop.run("jax")
    except RuntimeError as error:
        # The CPU writes to some of them, and says that it will not.
        assert "single memory location" in str(error)
        return
    precision = {} if loop.is_compiled else {"rtol": 0, "atol": 0}
    torch.testing.assert_close(got, wanted, equal_nan=True, **precision)
    for mine, cpus in zip(got_layouts, layouts, strict=True):
        assert mine == cpus or not (mine and cpus)
    for mine, cpus in zip(got_gradients, gradients, strict=True):
        torch.testing.assert_close(mine, cpus, equal_nan=True, **precision)


_interprets = tiers.autouse(tiers.interpreting)


starts = st.builds(
    Start,
    st.sampled_from([*DTYPES, torch.float32, torch.float32]),
    st.one_of(
        st.sampled_from([(4,), (3, 4), (4, 4), (1,), (), (5, 3), (2, 3, 4), (8, 2)]),
        st.lists(st.integers(0, 5), max_size=3).map(tuple),
    ),
)
places = st.integers(0, 3)
number = st.tuples(st.sampled_from([*NUMBERS]), st.integers(0, 5))
numbers = st.tuples(number, number)
names = st.one_of(
    st.sampled_from([*WRITES, *sorted(WRITES_OF_TWO), "gradient step"]),
    st.sampled_from([*VIEWS]),
    st.sampled_from([*OF_ONE, *OF_TWO]),
)
loops = st.builds(
    Loop,
    st.lists(starts, min_size=1, max_size=4),
    st.lists(st.builds(Step, names, places, places, places, numbers), min_size=1, max_size=12),
    st.sampled_from(["one", "all", "none"]),
    st.sampled_from([False] * 5 + [True]),
)


def searching(count: int) -> settings:
    return settings(
        max_examples=count,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


# Views of views, of which those that come after eight steps are merged (merged_views_test.py).
of_the_last = st.builds(
    Step, st.sampled_from([*VIEWS]), st.just(1), st.just(1), st.just(1), numbers
)
chains = st.lists(of_the_last, min_size=9, max_size=24)


@searching(4)
@given(st.builds(Start, st.just(torch.float32), st.just((4, 6, 5))), chains, st.booleans())
def test_a_write_and_a_gradient_pass_a_chain_of_views(
    start: Start, chain: list[Step], is_compiled: bool
):
    view, add = Step("detach", 0, 0, 1), Step("add_ number", 1, 1, 1, (("constant", 5),) * 2)
    leaf, clone = Step("leaf", 0, 0, 0), Step("clone", 0, 0, 1)
    for steps in ([view, *chain, add], [leaf, clone, *chain]):
        check(Loop([start, start], steps, is_compiled=is_compiled))


OUT = "ignore:An output with one or more elements was resized"


@pytest.mark.filterwarnings(OUT)
@searching(60)
@given(loops)
def test_a_program_computes_what_it_does_on_the_cpu(loop: Loop):
    check(loop)


@pytest.mark.nightly
@pytest.mark.filterwarnings(OUT)
@searching(int(os.environ.get("RANDOM_PROGRAMS", "5000")))
@given(loop=loops)
def test_many_programs_compute_what_they_do_on_the_cpu(pytestconfig: pytest.Config, loop: Loop):
    note(f"again: --hypothesis-seed={pytestconfig.option.hypothesis_seed}")
    check(loop)
