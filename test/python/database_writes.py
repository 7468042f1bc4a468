"""What an op writes in place and to `out=`: to tensors that are expanded, have gaps, other sizes or
dtypes, or share memory with an operand. Each is written, or refused by an error of one type.
"""

import functools
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch

from scripts import op_coverage


def with_gaps(x: torch.Tensor) -> torch.Tensor:
    """A view of every second element of a larger memory."""
    memory = x.detach().new_zeros(2 * x.numel() + 1)
    memory[1::2] = x.detach().reshape(-1)
    return memory[1::2].view(x.shape)


# `out=`, made of a result of the call.
_OUT: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "of its shape": torch.zeros_like,
    "empty": lambda x: x.new_zeros(0),
    "larger": lambda x: x.new_zeros((2, *x.shape)),
    "with gaps": lambda x: with_gaps(torch.zeros_like(x)),
    "expanded": lambda x: x.new_zeros(()).expand(x.shape),
    **{
        f"of {dtype}": lambda x, dtype=dtype: torch.zeros_like(x, dtype=dtype)
        for dtype in (torch.uint8, torch.int64, torch.float16, torch.complex64)
    },
}


def out(op: Any, sample: Any, _wanted: Any) -> list[Any]:
    # The CPU's kernel of narrow_copy writes what it has, whatever `out` is.
    if not op.supports_out or "pool" in op.name or op.name == "narrow_copy":
        raise op_coverage._Inapplicable
    x, call = sample.input, lambda y, *args: op(*args, **sample.kwargs, out=y)
    results = op(x, *sample.args, **sample.kwargs)
    is_one = isinstance(results, torch.Tensor)
    # Kernels of several results, and of pooling, write beyond an `out` of another dtype.
    makers = _OUT if is_one else {kind: y for kind, y in _OUT.items() if "torch" not in kind}
    calls: dict[str, tuple[Any, ...]] = {}
    for kind, make in makers.items():
        calls[kind] = call, make(results) if is_one else (*map(make, results),), x, *sample.args
    for kind, (operand, y) in _sharing(x, results).items():
        calls[kind] = call, y, operand, *sample.args
    return _outcomes(calls)


def in_place(op: Any, sample: Any, _wanted: Any) -> list[Any]:
    if op.inplace_variant is None or not isinstance(sample.input, torch.Tensor):
        raise op_coverage._Inapplicable
    x, args = sample.input.detach(), sample.args
    call = functools.partial(op.inplace_variant, **sample.kwargs)
    calls = {"a copy": (call, x.clone(), *args), "with gaps": (call, with_gaps(x), *args)}
    if x.numel() > 1:
        calls["expanded"] = call, x.reshape(-1)[0].clone().expand(x.shape), *args
    for i, other in enumerate(args):
        for kind, (operand, y) in _sharing(other, x).items():
            calls[f"{kind}, {i}"] = call, y, *args[:i], operand, *args[i + 1 :]
    return _outcomes(calls)


def _sharing(x: Any, like: Any) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """An operand and what is written, in one memory, if these are tensors of one dtype."""
    if not isinstance(x, torch.Tensor) or not isinstance(like, torch.Tensor):
        return {}
    sizes, found = (x.numel(), like.numel()), {}
    if x.dtype != like.dtype or min(sizes) < 2:
        return {}
    for offset in (0, 1):
        memory = x.new_zeros(max(sizes) + 1)
        memory[: sizes[0]] = x.detach().reshape(-1)
        written = memory[offset : offset + sizes[1]].view(like.shape)
        found[f"shared, {offset} further"] = memory[: sizes[0]].view(x.shape), written
    return found


def _outcomes(calls: dict[str, tuple[Any, ...]]) -> list[Any]:
    """What each call writes and gives, or the type of its error."""
    found: list[Any] = []
    for kind, (call, written, *args) in calls.items():
        try:
            result = call(written, *args)
        except Exception as error:
            found.append([f"{kind}: {type(error).__name__}", None, None])
            if len(found) == 1:  # It is refused whatever else is wrong.
                break
            continue
        # Elements that are read or written again are not defined.
        is_defined = kind != "expanded" and "shared" not in kind
        # Many of torch's kernels do not look, and some warn that they will.
        may_differ = kind == "expanded" and op_coverage._tensors([written])[0].is_cpu
        values = (written, result) if is_defined else (None, None)
        found.append([mock.ANY if may_differ else kind, *values])
    return found
