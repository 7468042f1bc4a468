"""Random programs of views, in-place operations and copies do the same on jax as on the CPU.

Hypothesis makes the programs and shrinks those that fail; one that failed is printed as the list of
its steps.

    bazel test --runs_per_test=20 --test_env=TEST_PROGRAMS=1000 //test/python:programs_test

tries others than the few of every day, and more.
"""

from __future__ import annotations

import contextlib
import os
import warnings

import torch
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import torch_xla_lite

# Not the small integers: what becomes of a float that does not fit into one is undefined in C++.
DTYPES = (torch.float32, torch.float64, torch.int64, torch.int32, torch.bool)
MOST_ELEMENTS = 64

indices = st.integers(min_value=0, max_value=1000)  # taken modulo what there is to choose from


def strides(tensor: torch.Tensor) -> list[int]:
    """Of the dimensions that are longer than 1: strides of the others are arbitrary."""
    return [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1]


def overlaps(tensor: torch.Tensor) -> bool:
    """Whether elements share memory: what a write then does, torch leaves open, or refuses."""
    if tensor.numel() == 0:
        return False
    span = sum(s * (n - 1) for s, n in zip(tensor.stride(), tensor.shape, strict=True)) + 1
    places = torch.arange(span).as_strided(tensor.shape, tensor.stride())
    return places.unique().numel() < tensor.numel()


@contextlib.contextmanager
def new_memory_is_zero(tensor: torch.Tensor):
    """What resizing adds to the memory of a CPU tensor is undefined; on jax it is zero."""
    storage = tensor.untyped_storage()
    before = storage.nbytes()
    yield
    if tensor.is_cpu:
        torch.empty(0, dtype=torch.uint8).set_(storage)[before:] = 0


class Programs(RuleBasedStateMachine):
    """Pairs of equal tensors on the CPU and on jax. Each rule does the same to both."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[tuple[torch.Tensor, torch.Tensor]] = []

    # --- helpers ---

    def pick(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.pairs[index % len(self.pairs)]

    def write(self, what: str, work, *indices: int) -> None:
        """As `both`, for work that writes to its first operand."""
        if not overlaps(self.pick(indices[0])[0]):
            self.both(what, work, *indices)

    def both(self, what: str, work, *indices: int) -> None:
        """Does `work` on both devices: equal results, or an error of the same type on both."""
        note(f"{what} of {[index % len(self.pairs) for index in indices]}")
        picked = [self.pick(index) for index in indices]
        outcomes = []
        for side in (0, 1):
            try:
                outcomes.append(work(*(pair[side] for pair in picked)))
            except (RuntimeError, IndexError, TypeError, ValueError) as error:
                outcomes.append(error)
        on_cpu, on_jax = outcomes
        if isinstance(on_cpu, Exception) or isinstance(on_jax, Exception):
            assert type(on_cpu) is type(on_jax), (what, on_cpu, on_jax)
            return
        if on_cpu is not None and 0 < on_cpu.numel() <= MOST_ELEMENTS and len(self.pairs) < 12:
            assert on_cpu.shape == on_jax.shape, what
            assert on_cpu.dtype == on_jax.dtype, what
            self.pairs.append((on_cpu, on_jax))

    # --- tensors ---

    @initialize(
        shape=st.lists(st.integers(1, 4), min_size=1, max_size=3), dtype=st.sampled_from(DTYPES)
    )
    def start(self, shape, dtype):
        self.make(shape, dtype)

    @precondition(lambda self: len(self.pairs) < 6)
    @rule(shape=st.lists(st.integers(1, 4), max_size=3), dtype=st.sampled_from(DTYPES))
    def make(self, shape, dtype):
        note(f"make {shape} {dtype}")
        count = torch.Size(shape).numel()
        values = (torch.arange(count) % 7).view(shape).to(dtype)
        self.pairs.append((values, values.to("jax")))

    @precondition(lambda self: len(self.pairs) > 3)
    @rule(a=indices)
    def drop(self, a):
        note(f"drop {a % len(self.pairs)}")
        del self.pairs[a % len(self.pairs)]

    # --- views ---

    @rule(a=indices, dim=st.integers(-3, 3), at=st.integers(-4, 4))
    def select(self, a, dim, at):
        self.both(f"select({dim}, {at})", lambda t: t.select(dim, at), a)

    @rule(
        a=indices,
        dim=st.integers(0, 2),
        start=st.integers(-4, 4),
        length=st.integers(1, 4),
        step=st.integers(1, 3),
    )
    def slice(self, a, dim, start, length, step):
        def work(t):
            place = [slice(None)] * t.dim()
            if dim < t.dim():
                place[dim] = slice(start, start + length if start + length != 0 else None, step)
            return t[tuple(place)]

        self.both(f"slice(dim={dim}, {start}:{start + length}:{step})", work, a)

    @rule(a=indices, first=st.integers(-3, 2), second=st.integers(-3, 2))
    def transpose(self, a, first, second):
        self.both(f"transpose({first}, {second})", lambda t: t.transpose(first, second), a)

    @rule(a=indices, order=st.permutations(range(3)))
    def permute(self, a, order):
        def work(t):
            return t.permute([dim for dim in order if dim < t.dim()])

        self.both(f"permute({order})", work, a)

    @rule(a=indices, divisor=st.sampled_from([1, 2, 3, 4]))
    def view(self, a, divisor):
        def work(t):
            return t.view(divisor, -1) if t.numel() % divisor == 0 else t.view(-1)

        self.both(f"view({divisor}, -1)", work, a)

    @rule(a=indices, divisor=st.sampled_from([1, 2, 3, 4]))
    def reshape(self, a, divisor):
        def work(t):
            return t.reshape(-1, divisor) if t.numel() % divisor == 0 else t.reshape(-1)

        self.both(f"reshape(-1, {divisor})", work, a)

    @rule(a=indices, dim=st.integers(0, 3))
    def unsqueeze(self, a, dim):
        self.both(f"unsqueeze({dim})", lambda t: t.unsqueeze(dim), a)

    @rule(a=indices)
    def squeeze(self, a):
        self.both("squeeze()", lambda t: t.squeeze(), a)

    @rule(a=indices, count=st.integers(1, 3))
    def expand(self, a, count):
        self.both(f"expand({count}, ...)", lambda t: t.expand(count, *t.shape), a)

    @rule(a=indices, offset=st.integers(-2, 2))
    def diagonal(self, a, offset):
        self.both(f"diagonal({offset})", lambda t: t.diagonal(offset), a)

    @rule(a=indices, part=st.integers(0, 1))
    def chunk(self, a, part):
        self.both(f"chunk(2)[{part}]", lambda t: t.chunk(2)[part], a)

    @rule(a=indices, part=st.integers(0, 1))
    def unbind(self, a, part):
        self.both(f"unbind()[{part}]", lambda t: t.unbind()[part], a)

    @rule(a=indices, size=st.integers(1, 3), step=st.integers(1, 2))
    def unfold(self, a, size, step):
        self.both(f"unfold(0, {size}, {step})", lambda t: t.unfold(0, size, step), a)

    @rule(a=indices)
    def detach(self, a):
        self.both("detach()", lambda t: t.detach(), a)

    @rule(a=indices, size=st.integers(1, 3), stride=st.integers(0, 3), offset=st.integers(0, 3))
    def as_strided(self, a, size, stride, offset):
        self.both(
            f"as_strided({size}, {stride}, {offset})",
            lambda t: t.as_strided((size,), (stride,), offset),
            a,
        )

    # --- changes of shape in place ---

    @rule(a=indices, first=st.integers(-2, 1), second=st.integers(-2, 1))
    def transpose_in_place(self, a, first, second):
        def work(t):
            t.transpose_(first, second)

        self.both(f"transpose_({first}, {second})", work, a)

    @rule(a=indices)
    def squeeze_in_place(self, a):
        def work(t):
            t.squeeze_()

        self.both("squeeze_()", work, a)

    # --- changes of what memory a tensor has ---

    @rule(a=indices, shape=st.lists(st.integers(0, 4), max_size=3))
    def resize(self, a, shape):
        def work(t):
            with new_memory_is_zero(t):
                t.resize_(shape)

        self.both(f"resize_({shape})", work, a)

    @rule(a=indices, b=indices)
    def resizing_out(self, a, b):
        def work(t, other):
            if t.dtype == other.dtype:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # that resizing out= is deprecated
                    # As for new tensors: torch arranges a result like its operands.
                    copy = other.clone(memory_format=torch.contiguous_format)
                    torch.add(copy, copy, out=t)

        self.write("add(out=) of any shape", work, a, b)

    @rule(a=indices, b=indices)
    def set_to_tensor(self, a, b):
        def work(t, other):
            if t.dtype == other.dtype:
                t.set_(other)

        self.both("set_()", work, a, b)

    @rule(a=indices, b=indices, offset=st.integers(0, 3), size=st.integers(0, 9))
    def set_to_storage(self, a, b, offset, size):
        def work(t, other):
            # torch does not let the storage grow for a tensor that has the size already.
            if t.dtype == other.dtype and t.shape != (size,):
                with new_memory_is_zero(other):
                    t.set_(other.untyped_storage(), offset, (size,), (1,))

        self.both(f"set_(storage, {offset}, {size})", work, a, b)

    @rule(a=indices, b=indices)
    def set_data(self, a, b):
        def work(t, other):
            if t.dtype == other.dtype:
                t.data = other

        self.both(".data =", work, a, b)

    # --- in-place ---

    @rule(a=indices, value=st.integers(-3, 3))
    def add_number(self, a, value):
        self.write(f"add_({value})", lambda t: t.add_(value), a)

    @rule(a=indices, value=st.integers(-2, 2))
    def mul_number(self, a, value):
        def work(t):
            # torch's meta kernel takes bool *= int, which its CPU kernel refuses.
            return t if t.dtype == torch.bool else t.mul_(value)

        self.write(f"mul_({value})", work, a)

    @rule(a=indices, value=st.integers(0, 5))
    def fill(self, a, value):
        self.write(f"fill_({value})", lambda t: t.fill_(value), a)

    @rule(a=indices, b=indices)
    def add_tensor(self, a, b):
        # torch's result is not defined where the operands overlap in memory without being equal.
        self.write("add_(clone)", lambda t, other: t.add_(other.clone()), a, b)

    @rule(a=indices, b=indices)
    def copy(self, a, b):
        self.write("copy_(clone)", lambda t, other: t.copy_(other.clone()), a, b)

    @rule(a=indices, low=st.integers(-2, 2))
    def clamp(self, a, low):
        self.write(f"clamp_(min={low})", lambda t: t.clamp_(min=low), a)

    @rule(a=indices)
    def zero(self, a):
        self.write("zero_()", lambda t: t.zero_(), a)

    @rule(a=indices, b=indices)
    def out(self, a, b):
        def work(t, other):
            if t.shape == other.shape and t.dtype == other.dtype:
                torch.add(other.clone(), other.clone(), out=t)

        self.write("add(out=)", work, a, b)

    # --- indexing ---

    @rule(a=indices, places=st.lists(st.integers(-2, 3), min_size=1, max_size=3))
    def gather(self, a, places):
        def work(t):
            inside = [place % t.shape[0] for place in places if t.shape[0]]
            return t[torch.tensor(inside, dtype=torch.int64, device=t.device)].contiguous()

        self.both(f"[{places}]", work, a)

    @rule(
        a=indices,
        places=st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True),
        value=st.integers(0, 9),
    )
    def put(self, a, places, value):
        def work(t):
            # The CPU checks the range and XLA clamps: that is another test's matter.
            inside = [place for place in places if place < t.shape[0]]
            t[torch.tensor(inside, dtype=torch.int64)] = value
            return t

        self.write(f"[{places}] = {value}", work, a)

    @rule(a=indices, threshold=st.integers(-2, 5), value=st.integers(0, 9))
    def put_where(self, a, threshold, value):
        def work(t):
            t[t > threshold] = value
            return t

        self.write(f"[> {threshold}] = {value}", work, a)

    @rule(a=indices, start=st.integers(-3, 3), value=st.integers(0, 9))
    def put_slice(self, a, start, value):
        def work(t):
            t[start:] = value
            return t

        self.write(f"[{start}:] = {value}", work, a)

    # --- new tensors ---
    # Made contiguous, because torch arranges results like their operands, and XLA row by row.

    @rule(a=indices, dtype=st.sampled_from(DTYPES))
    def convert(self, a, dtype):
        self.both(f"to({dtype})", lambda t: t.to(dtype).contiguous(), a)

    @rule(a=indices, b=indices)
    def add(self, a, b):
        self.both("+", lambda t, other: (t + other).contiguous(), a, b)

    @rule(a=indices, dim=st.integers(-2, 1))
    def flip(self, a, dim):
        self.both(f"flip({dim})", lambda t: t.flip(dim).contiguous(), a)

    @rule(a=indices)
    def nonzero(self, a):
        self.both("nonzero()", lambda t: t.nonzero().contiguous(), a)

    @rule(a=indices)
    def contiguous(self, a):
        self.both("contiguous()", lambda t: t.contiguous(), a)

    # --- between devices ---

    @rule(a=indices, b=indices)
    def copy_from_the_other_device(self, a, b):
        note(f"copy_ crosswise of {a % len(self.pairs), b % len(self.pairs)}")
        (target_cpu, target_jax), (source_cpu, source_jax) = self.pick(a), self.pick(b)
        if overlaps(target_cpu):
            return
        values = source_cpu.clone()
        try:
            target_cpu.copy_(source_jax)
        except RuntimeError:
            try:
                target_jax.copy_(values)
            except RuntimeError:
                return
            raise AssertionError("copy_ raised on the CPU only") from None
        target_jax.copy_(values)

    @rule()
    def sync(self):
        note("sync")
        torch_xla_lite.sync()

    # --- what always holds ---

    @invariant()
    def strides_agree(self):
        for on_cpu, on_jax in self.pairs:
            assert on_cpu.shape == on_jax.shape
            assert strides(on_cpu) == strides(on_jax)
            assert on_cpu.storage_offset() == on_jax.storage_offset()

    def teardown(self) -> None:
        for index, (on_cpu, on_jax) in enumerate(self.pairs):
            assert on_cpu.tolist() == on_jax.tolist(), (index, on_cpu, on_jax)


TestPrograms = Programs.TestCase
TestPrograms.settings = settings(
    max_examples=int(os.environ.get("TEST_PROGRAMS", "15")),
    stateful_step_count=20,
    deadline=None,  # a step may include a compilation
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
