"""Walks torch's database of ops: each sample in variants, on the CPU, interpreted and compiled.

    calls = [database.Call(database.ops()[name]) for name in database.part(0, of=8)]
    pairs = [(call, s) for call in calls for x in call.samples(torch.int32, 4) for s in emptied(x)]
    database.differences(pairs)    # [] if all forms agree

A variant makes samples of a sample. A call that the CPU refuses is left out. Tests that walk the
database have the calls of few ops by day, and at night those of all, a part of them in each test.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

import torch_xla_lite
from scripts import op_coverage
from test.python import database_writes, tiers
from torch_xla_lite import _XLAC, debug

# Squares of these floats are finite. None is subnormal: compiled graphs take those for zero. Nor is
# one complex (special_values_test.py).
_FLOATS = (float("inf"), float("nan"), 0.0, 1e19, 3e9, 300.5, 0.5, 1e-30, 1.0, 3.0)
_LARGEST = torch.iinfo(torch.int32).max
VALUES = {
    torch.float32: (*_FLOATS, *(-value for value in _FLOATS)),
    torch.int32: (0, 1, 2, 3, 7, 31, 32, 33, 65536, _LARGEST, -1, -2, -7, -32, ~_LARGEST),
}

# A value says how long their results are, or how many steps torch's kernel takes.
ENDLESS = (
    "bincount repeat_interleave",
    "special_laguerre_polynomial_l special_legendre_polynomial_p",
)
# torch's kernels read beyond tensors whose sizes or values do not fit.
UNCHECKED = (
    "_segment_reduce_lengths _segment_reduce_offsets lu_unpack nn_functional_embedding_bag",
)

MODES = op_coverage._FUNCTIONS | {"inplace": database_writes.in_place, "out": database_writes.out}

# Calls of one graph: more are compiled faster than one by one, and too many more slowly.
_AT_ONCE = 48


@functools.cache
def ops() -> dict[str, Any]:
    return op_coverage._database()


def part(number: int, of: int, without: Iterable[str] = ENDLESS) -> list[str]:
    """The names of each so many-th op. What differs may be named together, by the reason."""
    excluded = {*" ".join(without).split()}
    return [name for name in ops() if name not in excluded][number::of]


def found(names: Iterable[str], check: Callable[[str], Sequence[Any]]) -> dict[str, Any]:
    """The first of what a check finds of each op, of those of which it finds something."""
    return {name: texts[0] for name in names if (texts := check(name))}


def samples(op: Any, dtype: torch.dtype, limit: int, *, mode: str = "forward") -> list[Any]:
    """Samples of the database, without those of sparse tensors."""
    job = op_coverage.Job(op.name, mode, str(dtype).removeprefix("torch."))
    found = op_coverage._samples(op, job, limit) if dtype in op.dtypes else []
    return [x for x in found if all(t.layout == torch.strided for t in tensors(x))]


def refused(op: Any, dtype: str, limit: int = 3) -> Iterator[Any]:
    """Samples that the CPU refuses in this dtype, which the database may not name for the op."""
    job = op_coverage.Job(op.name, "forward", dtype)
    made = outcome(lambda: [*op_coverage._samples(op, job, limit)])
    for sample in () if isinstance(made, Exception) else made:
        if isinstance(outcome(lambda x=sample: Call(op).on_cpu(x)), Exception):
            yield sample


def tensors(sample: Any) -> list[torch.Tensor]:
    return op_coverage._tensors([sample.input, sample.args, sample.kwargs])


# --- variants -------------------------------------------------------------------------------------


def emptied(sample: Any) -> Iterator[Any]:
    """All dimensions of one size are empty, or one dimension of all tensors of one shape."""
    sizes = dict.fromkeys(n for x in tensors(sample) for n in x.shape if n)
    for size in sizes:
        yield _reshaped(sample, lambda shape, size=size: [0 if n == size else n for n in shape])
    if not isinstance(sample.input, torch.Tensor):
        return
    first = sample.input.shape
    for dim in range(len(first)):
        one = [0 if i == dim else n for i, n in enumerate(first)]
        yield _reshaped(sample, lambda shape, one=one: one if shape == first else shape)


def _reshaped(sample: Any, new_shape: Callable[[torch.Size], Sequence[int]]) -> Any:
    """Tensors keep the elements that are within the new shape."""

    def change(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        part = value.detach()
        for dim, size in enumerate(new_shape(value.shape)):
            part = part.narrow(dim, 0, size)
        return part.clone().requires_grad_(value.requires_grad)

    return sample.transform(change)


def tiny(sample: Any, dtype: torch.dtype, values: Iterable[Any]) -> Iterator[Any]:
    """Tensors of one element or none. Each value stands in turn in those of the dtype."""
    forms: tuple[Callable[[int], tuple[int, ...]], ...] = (
        lambda _: (),
        lambda _: (0,),
        lambda _: (1,),
        lambda ndim: (1,) * ndim,
    )
    for shape_of, value in itertools.product(forms, values):

        def change(x: Any, shape_of: Any = shape_of, value: Any = value) -> Any:
            if not isinstance(x, torch.Tensor):
                return x
            filled = value if x.dtype == dtype else 0
            return torch.full(shape_of(x.ndim), filled, dtype=x.dtype)

        yield sample.transform(change)


def paired(sample: Any, dtypes: Sequence[torch.dtype]) -> Iterator[Any]:
    """The first tensor has one dtype, the others of its dtype have another."""
    found = tensors(sample)
    if not found or sum(x.dtype == found[0].dtype for x in found) < 2:
        return
    for first, second in itertools.permutations(dtypes, 2):
        numbers = itertools.count()

        def change(x: Any, numbers: Any = numbers, pair: Any = (first, second)) -> Any:
            if not isinstance(x, torch.Tensor) or x.dtype != found[0].dtype:
                return x
            return x.detach().to(pair[next(numbers) > 0])

        yield sample.transform(change)


def special(sample: Any, dtype: torch.dtype, values: Sequence[Any]) -> Iterator[Any]:
    """Each value in the place of every fifth element, and these values alone."""
    for own, step in (*(((value,), 5) for value in values), (values, 1)):
        numbers = itertools.count()

        def change(x: Any, numbers: Any = numbers, own: Any = own, step: int = step) -> Any:
            if not isinstance(x, torch.Tensor) or x.dtype != dtype:
                return x
            result = x.detach().clone(memory_format=torch.contiguous_format)
            places = result.view(-1)[::step]
            begin = 3 * next(numbers)  # Another one for each operand.
            repeated = itertools.islice(itertools.cycle(own), begin, begin + len(places))
            places.copy_(torch.tensor([*repeated], dtype=dtype))
            return result

        yield sample.transform(change)


def views(sample: Any) -> Iterator[Any]:
    """Tensors whose first dimension is the innermost one in memory, and tensors with gaps."""
    for view in (
        lambda x: x.detach().movedim(0, -1).contiguous().movedim(-1, 0),
        database_writes.with_gaps,
    ):

        def change(x: Any, view: Any = view) -> Any:
            is_tensor = isinstance(x, torch.Tensor) and x.ndim
            return view(x).requires_grad_(x.requires_grad) if is_tensor else x

        yield sample.transform(change)


# Of a tensor that does not fit its call any more.
_CHANGES: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    lambda x: x.unsqueeze(0),
    lambda x: x[0] if x.ndim and len(x) else x.unsqueeze(0),
    lambda x: torch.cat([x, x], -1) if x.ndim else x,
    lambda x: x[..., :0] if x.ndim else x,
    *(
        lambda x, dtype=dtype: x.to(dtype)
        for dtype in (torch.float64, torch.bfloat16, torch.int64, torch.bool)
    ),
)


def misfits(sample: Any) -> Iterator[Any]:
    """The sample, and it with one tensor of another size or dtype."""
    yield sample
    for place, change in itertools.product(range(len(tensors(sample))), _CHANGES):
        numbers = itertools.count()

        def changed(x: Any, place: int = place, change: Any = change, n: Any = numbers) -> Any:
            is_tensor = isinstance(x, torch.Tensor)
            return change(x.detach()) if is_tensor and next(n) == place else x

        yield sample.transform(changed)


# --- forms ----------------------------------------------------------------------------------------


def moved(sample: Any, device: str) -> Any:
    """A copy on the device, whose tensors share memory as those of the sample."""
    storages: dict[int, torch.Tensor] = {}

    def move(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        alone = x.detach().to(device, copy=True).requires_grad_(x.requires_grad)
        if x.layout != torch.strided or not x.numel():
            return alone
        size = x.untyped_storage().nbytes() // x.element_size()
        is_whole = x.is_contiguous() and x.numel() == size
        memory = x.detach().as_strided((size,), (1,), 0)
        base = alone if is_whole else memory.to(device, copy=True)
        base = storages.setdefault(x.untyped_storage().data_ptr(), base)
        if base is alone or base.dtype != x.dtype:
            return alone
        view = base.detach().as_strided(x.shape, x.stride(), x.storage_offset())
        return view.requires_grad_(x.requires_grad)

    copy = sample.transform(move)
    if copy.kwargs.get("device") == "cpu":
        copy.kwargs["device"] = device
    return copy


@dataclasses.dataclass(frozen=True)
class Call:
    """A function of a sample that gives tensors: an op in one of `MODES`."""

    op: Any
    mode: str = "forward"

    def samples(self, dtype: torch.dtype, limit: int) -> list[Any]:
        return samples(self.op, dtype, limit, mode=self.mode)

    def on_cpu(self, sample: Any) -> Any:
        return self.run(moved(sample, "cpu"))

    def record(self, sample: Any) -> Any:
        return self.run(moved(sample, "jax"))

    def run(self, sample: Any) -> Any:
        torch.manual_seed(0)
        return MODES[self.mode](self.op, sample, None)


def outcome(function: Callable[[], Any]) -> Any:
    """The results on the CPU, or the exception."""
    try:
        return op_coverage._to_cpu(function())
    except Exception as error:
        return error


@dataclasses.dataclass(frozen=True)
class Interpreted:
    """The outcome of a call that was not compiled, or that was (such as for its error)."""

    result: Any
    is_interpreted: bool


def interpreted(calls: Sequence[Callable[[], Any]]) -> list[Interpreted]:
    found = []
    _XLAC.set_compile_when("repeated")
    _XLAC.clear_cache()
    try:
        # Nothing is compiled because it comes back.
        with tiers.using(tiers.per_op(interpretation=1, compilation=1e9)):
            for call in calls:
                debug.reset_metrics()
                result = outcome(call)
                metrics = debug.metrics()
                ran = metrics["interpretations"] > 0 and metrics["compiles"] == 0
                found.append(Interpreted(result, ran))
                if metrics["compiles"]:
                    _XLAC.clear_cache()
    finally:
        _XLAC.set_compile_when("first")
    return found


def compiled(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Many in one graph; if one of them fails, each in a graph of its own."""
    _XLAC.set_compile_when("first")
    _XLAC.clear_cache()
    found: list[Any] = []
    for start in range(0, len(calls), _AT_ONCE):
        part = calls[start : start + _AT_ONCE]
        try:
            results = [call() for call in part]
            torch_xla_lite.sync()
            found += [op_coverage._to_cpu(x) for x in results]
        except Exception:
            _drop_errors()
            found += [outcome(call) for call in part]
    return found


def _drop_errors() -> None:
    """Of the checks of the last graph, of which each read raises one."""
    for _ in range(_AT_ONCE):
        if not isinstance(outcome(torch.jax.synchronize), Exception):
            return


# --- comparison -----------------------------------------------------------------------------------


def difference(sample: Any, got: Any, wanted: Any, *, values: bool = True) -> str:
    """What differs between two outcomes. Both may be exceptions, of any text."""
    if isinstance(got, Exception) or isinstance(wanted, Exception):
        if isinstance(got, Exception) and isinstance(wanted, Exception):
            return ""
        return f"{_text(got)}, not {_text(wanted)}"
    try:
        op_coverage._check_defined(sample, got, wanted, values)
    except (op_coverage._Difference, AssertionError, RuntimeError) as error:
        return f"{_text(got)}, not {_text(wanted)}: {error}"
    return ""


def _text(result: Any) -> str:
    return " ".join(f"{result!r}".split())[:200]


def differences(pairs: Sequence[tuple[Call, Any]]) -> list[str]:
    """Where the three forms differ, for the calls that the CPU computes."""
    on_cpu = [(*pair, outcome(lambda pair=pair: pair[0].on_cpu(pair[1]))) for pair in pairs]
    taken = [row for row in on_cpu if not isinstance(row[2], Exception)]
    is_defined: dict[tuple[int, str], bool] = {}
    for call, sample, _ in taken:
        if (id(call.op), call.mode) not in is_defined:
            is_defined[id(call.op), call.mode] = op_coverage._is_deterministic(
                call.op, MODES[call.mode], sample, torch.get_rng_state()
            )
    calls = [lambda call=call, x=x: call.record(x) for call, x, _ in taken]
    different = []
    forms = zip(taken, interpreted(calls), compiled(calls), strict=True)
    for (call, sample, wanted), first, second in forms:
        for form, got, other, exact in (
            ("interpreted, not CPU", first.result, wanted, is_defined[id(call.op), call.mode]),
            ("compiled, not interpreted", second, first.result, True),
        ):
            if text := difference(sample, got, other, values=exact):
                name = call.op.formatted_name
                mode = "" if call.mode == "forward" else f"{call.mode} of "
                text = f"{mode}{name} {op_coverage._short(sample)} {form}: {text}"
                different.append(text)
    return different


# --- memory ---------------------------------------------------------------------------------------


def results_and_arguments(call: Call, sample: Any, device: str) -> tuple[list, list]:
    """The tensors that a call gave, and those that it got."""
    made = moved(sample, device)
    with torch.no_grad():
        return op_coverage._tensors(call.run(made)), tensors(made)


def changed_by_writes(call: Call, sample: Any, device: str) -> list[torch.Tensor]:
    """The arguments, after each element of the results was written."""
    results, arguments = results_and_arguments(call, sample, device)
    for x in results:
        # Some are expanded.
        outcome(lambda x=x: x.fill_(1))
    return [x.detach().cpu() for x in arguments]


def has_other_strides(call: Call, sample: Any) -> bool:
    """Whether a result lies in another order in memory than on the CPU."""
    found = [results_and_arguments(call, sample, device)[0] for device in ("cpu", "jax")]
    return any(_order(x) != _order(y) for x, y in zip(*found, strict=True))


def _order(x: torch.Tensor) -> list[int]:
    """The strides that mean something."""
    pairs = zip(x.shape, x.stride(), strict=True) if x.numel() else ()
    return [stride for size, stride in pairs if size > 1]
