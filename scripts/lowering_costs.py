#!/usr/bin/env python3
"""Compares lowerings with PyTorch's decompositions of the same ops: docs/lowering_costs.md.

    python scripts/lowering_costs.py                   # writes the table; four minutes
    python scripts/lowering_costs.py --op avg_pool     # prints these rows, writes nothing

An op without a lowering is decomposed by PyTorch (lowering/decomposition.py). For each op that has
both, on the first sample of PyTorch's op database that calls it:

    trace          milliseconds until jax has the program: the fastest of 7 times
    instructions   of the program that XLA has optimised for the CPU
    reason         for which the op has a lowering; docs/lowering_costs.md explains them

The database needs one more package:  pip install expecttest
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import re
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from torch_xla_lite.lowering import decomposition, dtypes, registry

DOCUMENT = Path(__file__).absolute().parents[1] / "docs" / "lowering_costs.md"
_TRACES = 7
# Times that differ less are equal.
_SAME = 1.3
# Elements of their results have any value: memory that is not initialised, a buffer of the CPU's.
_UNDEFINED = {
    *("aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::new_empty_strided"),
    "aten::log_sigmoid_forward",
}
# The recorder keeps a number in the graph if it is a default of its schema, all of which are here.
_CONSTANT_NUMBERS = (0, 1, -1, 2, 0.5)


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of an op with tensors on the CPU."""

    op: torch._ops.OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Cost:
    """`trace` in milliseconds; `agrees`: the results are those of the CPU."""

    trace: float
    instructions: int
    agrees: bool


def ops() -> list[str]:
    """The ops that have a lowering, a decomposition and results that can be compared."""
    return [name for name in sorted(registry.DECLARED) if _is_decomposed(name)]


def _is_decomposed(name: str) -> bool:
    op = decomposition.overload(name)
    is_random = torch.Tag.nondeterministic_seeded in op.tags or name in _UNDEFINED
    is_known = op in decomposition._table() or decomposition._is_composite(op)
    return is_known and not is_random


class _Calls(TorchDispatchMode):
    """Keeps the first call of each op."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, Call] = {}

    def __torch_dispatch__(
        self, op: torch._ops.OpOverload, types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name, tensors = op.name(), _tensors((args, kwargs))
        if name not in self.found and name in registry.DECLARED and _are_plain(tensors):
            copies = tree_map(_copy, (args, kwargs))
            self.found[name] = Call(op, *copies)
        return op(*args, **kwargs)


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_flatten(values)[0] if isinstance(leaf, torch.Tensor)]


def _are_plain(tensors: list[torch.Tensor]) -> bool:
    """Empty and 0-d tensors say little about the cost of an op."""
    sizes = [tensor.numel() for tensor in tensors if tensor.layout == torch.strided]
    return len(sizes) == len(tensors) and (not sizes or (min(sizes) > 0 and max(sizes) > 1))


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _sampled_calls() -> dict[str, Call]:
    from torch.testing._internal.common_methods_invocations import foreach_unary_op_db, op_db

    with _Calls() as calls, contextlib.suppress(ImportError):
        for op in (*op_db, *foreach_unary_op_db):
            for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64):
                if dtype in op.dtypes:
                    _call_samples(op, dtype)
                    break
    return calls.found


def _call_samples(op: Any, dtype: torch.dtype) -> None:
    """Runs some samples of an op of the database, and their gradients."""
    grad = op.supports_autograd and dtype.is_floating_point
    with contextlib.suppress(Exception):
        for sample in list(op.sample_inputs("cpu", dtype, requires_grad=grad))[:8]:
            with contextlib.suppress(Exception):
                result = op(sample.input, *sample.args, **sample.kwargs)
                outputs = [x for x in _tensors(sample.output_process_fn_grad(result)) if grad]
                torch.autograd.backward([x.sum() for x in outputs if x.requires_grad])


@contextlib.contextmanager
def _without(name: str) -> Iterator[None]:
    """Removes the op's lowering temporarily, because its decomposition may call the op."""
    registry.find(name)
    entry, declared = registry.LOWERINGS.pop(name), registry.DECLARED.pop(name)
    try:
        yield
    finally:
        registry.LOWERINGS[name], registry.DECLARED[name] = entry, declared


def _by_hand(name: str, arguments: list[Any], outs: list[Any]) -> Any:
    return registry.call(name, arguments, outs)


def _decomposed(name: str, arguments: list[Any], outs: list[Any]) -> Any:
    with _without(name):
        return decomposition.decompose(name, arguments, outs)


def _cost(call: Call, lower: Callable[[str, list[Any], list[Any]], Any]) -> Cost | None:
    """None if it cannot be lowered in this way."""
    wanted = registry.flatten(call.op(*call.args, **call.kwargs))
    outs = [decomposition._struct(x) for x in wanted]
    numbers = _runtime_numbers(call)
    tensors = _tensors((call.args, call.kwargs))
    values = [np.asarray(decomposition._as_array(x)) for x in tensors]
    values += [np.asarray(number) for number in numbers.values()]

    def traced() -> Any:
        # A new function each time, which jax has not traced yet.
        def program(values: list[Any]) -> Any:
            arrays = iter(values)
            positional, keywords = tree_map(
                lambda x: decomposition._Array(next(arrays)) if torch.is_tensor(x) else x,
                (call.args, call.kwargs),
            )
            arguments = decomposition._in_order(call.op, positional, keywords)
            for i in numbers:
                arguments[i] = next(arrays)
            results = lower(call.op.name(), arguments, outs)
            if results is None:
                raise registry.Unsupported
            return results

        return jax.jit(program).trace(values)

    try:
        compiled = traced().lower().compile()
        got = compiled(values)
    except Exception:
        return None
    times = []
    for _ in range(_TRACES):
        begin = time.perf_counter()
        traced()
        times.append(time.perf_counter() - begin)
    instructions = len(re.findall(r"^ +(?:ROOT )?%?[\w.-]+ = ", compiled.as_text(), re.M))
    return Cost(1000 * min(times), instructions, _agree(got, wanted))


def _runtime_numbers(call: Call) -> dict[int, Any]:
    """The scalars that arrive at run time, by their positions."""
    if registry.DECLARED[call.op.name()].constants:
        return {}
    found = {}
    for i, argument in enumerate(call.op._schema.arguments):
        value = call.args[i] if i < len(call.args) else call.kwargs.get(argument.name)
        is_scalar = str(argument.real_type) in ("number", "Optional[number]")
        if is_scalar and value is not None and value not in _CONSTANT_NUMBERS:
            found[i] = value
    return found


def _agree(got: list[Any], wanted: list[Any]) -> bool:
    pairs = [
        (np.asarray(a), np.asarray(decomposition._as_array(b)))
        for a, b in zip(got, wanted, strict=True)
        if b is not None
    ]
    return all(np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True) for a, b in pairs)


def row(name: str, call: Call) -> str | None:
    """A line of the table; None if the op cannot be decomposed in a graph."""
    with jax.enable_x64(True), torch.no_grad():
        made = _cost(call, _decomposed)
        if made is None:
            return None
        hand = _cost(call, _by_hand)
    costs = (hand, made)
    cells = [f"`{name}`", registry.DECLARED[name].module]
    cells += [f"{cost.trace:.1f}" if cost else "" for cost in costs]
    cells += [str(cost.instructions) if cost else "" for cost in costs]
    return _line([*cells, _reason(call, hand, made)])


def _reason(call: Call, hand: Cost | None, made: Cost) -> str:
    """Why the op has a lowering."""
    name = call.op.name()
    if hand is None or not hand.agrees:
        return "**the lowering fails**"
    if not made.agrees:
        return "results"
    if made.instructions > hand.instructions:
        return "instructions"
    if made.trace > _SAME * hand.trace:
        return "trace"
    if any(dtypes.refused(name)):
        return "dtypes"
    fn = registry.LOWERINGS[name].fn
    is_shared = sum(entry.fn is fn for entry in registry.LOWERINGS.values()) > 1
    return "shared" if is_shared else "**none**"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


_HEAD = [
    _line(["op", "module", "trace", "decomposed", "instructions", "decomposed", "reason"]),
    "|---|---|---:|---:|---:|---:|---|",
]


def tables(parts: list[str] | None) -> list[str]:
    """The lines of the document below its introduction."""
    calls = _sampled_calls()
    rows, without_call, without_graph = [], [], []
    for name in ops():
        if parts and not any(part in name for part in parts):
            continue
        if name not in calls:
            without_call.append(f"`{name}`")
        elif line := row(name, calls[name]):
            rows.append(line)
        else:
            without_graph.append(f"`{name}`")
    wrap = functools.partial(textwrap.fill, width=120, break_on_hyphens=False)
    return [
        *_HEAD,
        *rows,
        "\nThe decompositions of these end in the op itself, write to a tensor or need a value:\n",
        wrap(", ".join(without_graph)),
        "\nNo sample of the database calls these:\n",
        wrap(", ".join(without_call)),
    ]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--op", action="append", help="print the rows of ops with this in the name")
    return parser.parse_args()


def main() -> int:
    parts = _parse().op
    warnings.simplefilter("ignore")
    text = "\n".join(tables(parts)) + "\n"
    if parts:
        print(text, end="")
    else:
        DOCUMENT.write_text(DOCUMENT.read_text().partition(_HEAD[0])[0] + text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
