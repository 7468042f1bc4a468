"""Finds the first operation whose results differ from those of the CPU, for debug.compare().

    print(compare(step, batch))
    # aten::gelu at net.py:9 in forward: 12 of 64 elements differ, most at [0, 3]: 0.5 here, 0.25
    # on the CPU

The function runs on the device, compiled, while a mode of torch keeps what each operation took and
gave. Then the CPU's kernel computes each from the same operands, so that an error is not carried
from one operation to the next.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from .. import _XLAC
from ..startup import program_lines

# So many operations are compiled as one graph, and their operands kept meanwhile.
_AT_ONCE = 200

# Relative to the largest element; integers are equal.
_TOLERANCES = {
    torch.float64: 1e-8,
    torch.complex128: 1e-8,
    torch.float32: 1e-4,
    torch.complex64: 1e-4,
    torch.float16: 4e-3,
    torch.bfloat16: 3e-2,
}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What `compare` has found.

    Attributes:
      op: the first operation whose results differ, such as "aten::gelu"; "" if there is none.
      line: of the program, which called it.
      difference: of its results.
      num_compared: how many operations gave the CPU's results before.
      not_compared: those that have no kernel for the CPU.
    """

    op: str = ""
    line: str = ""
    difference: str = ""
    num_compared: int = 0
    not_compared: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"{self.op} at {self.line}: {self.difference}"
        if not self.op:
            text = f"no difference: {self.num_compared} operations give the CPU's results"
        return text + "".join(f"; not compared: {op}" for op in self.not_compared)

    __repr__ = __str__


def compare(function: Callable[..., Any], *args: Any) -> Comparison:
    """Calls a function with its tensors on the device, and compares each operation with the CPU's.

    Raises:
      Exception: what the function raises, if all operations before gave the CPU's results.
    """
    args = tree_map(_moved, args)
    calls = _Calls()
    with _compiled():
        torch.jax.synchronize()
        try:
            with calls:
                function(*args)
            calls.check()
        except _Found:
            pass
        except Exception:
            with contextlib.suppress(_Found):
                calls.check()
            if not calls.found.op:
                raise
    return calls.found


def _moved(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().to("jax", copy=True).requires_grad_(value.requires_grad)


@contextlib.contextmanager
def _compiled() -> Iterator[None]:
    """Compiles each graph at once: interpreted ones would run torch's kernels."""
    before = _XLAC.set_compile_when("first")
    try:
        yield
    finally:
        _XLAC.set_compile_when(before)


class _Found(BaseException):
    """A difference was found; the function need not go on."""


@dataclasses.dataclass(frozen=True)
class _Call:
    """An operation: its arguments before the call, results, and what it has written to."""

    op: torch._ops.OpOverload
    args: tuple
    kwargs: dict[str, Any]
    results: list[torch.Tensor]
    line: str


class _Calls(TorchDispatchMode):
    """Keeps the operations on the device that the program calls, and compares them."""

    def __init__(self) -> None:
        super().__init__()
        self.found = Comparison()
        self._calls: list[_Call] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        taken = tree_map(_kept, (args, kwargs))
        results = func(*args, **kwargs)
        given = _results(func, args, kwargs, results)
        if any(x.device.type == "jax" for x in given) and _is_defined(func):
            line = str(program_lines.place()._replace(reader=""))
            self._calls.append(_Call(func, *taken, [_kept(x) for x in given], line))
            if len(self._calls) == _AT_ONCE:
                self.check()
        return results

    def check(self) -> None:
        """Compares the operations that are kept, and forgets them.

        Raises:
          _Found: one differs.
        """
        calls, self._calls = self._calls, []
        for call in calls:
            name = call.op.name()
            try:
                args, kwargs = tree_map(_on_cpu, (call.args, call.kwargs))
                wanted = _results(call.op, args, kwargs, call.op(*args, **kwargs))
            except (RuntimeError, NotImplementedError):
                skipped = {*self.found.not_compared, name}
                self.found = dataclasses.replace(self.found, not_compared=tuple(sorted(skipped)))
                continue
            for got, want in zip(call.results, wanted, strict=True):
                if difference := _difference(got.cpu(), want):
                    self.found = dataclasses.replace(
                        self.found, op=name, line=call.line, difference=difference
                    )
                    raise _Found
            count = self.found.num_compared + 1
            self.found = dataclasses.replace(self.found, num_compared=count)


def _is_defined(op: torch._ops.OpOverload) -> bool:
    """Whether the results of an operation are those of its arguments: neither random nor memory
    without values."""
    return torch.Tag.nondeterministic_seeded not in op.tags and "empty" not in op.name()


def _results(op: Any, args: tuple, kwargs: dict[str, Any], results: Any) -> list[torch.Tensor]:
    written = (args, kwargs) if op._schema.is_mutable else ()
    return [x for x in tree_leaves((results, written)) if isinstance(x, torch.Tensor)]


def _kept(value: Any) -> Any:
    """A value as it is now: the program may write to a tensor later."""
    is_here = isinstance(value, torch.Tensor) and value.device.type == "jax"
    return value.detach().clone() if is_here else value


def _on_cpu(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.cpu()
    is_device = isinstance(value, torch.device) and value.type == "jax"
    return torch.device("cpu") if is_device else value


def _difference(got: torch.Tensor, wanted: torch.Tensor) -> str:
    """How two results differ; "" if they do not."""
    if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
        return f"{_type(got)} here, {_type(wanted)} on the CPU"
    tolerance = _TOLERANCES.get(wanted.dtype)
    if tolerance is None:
        differ = got != wanted
    else:
        finite = wanted[wanted.isfinite()]
        largest = float(finite.abs().max()) if finite.numel() else 0.0
        close = torch.isclose(got, wanted, rtol=0, atol=tolerance * largest, equal_nan=True)
        differ = ~close
    if not differ.any():
        return ""
    wide = torch.complex128 if wanted.is_complex() else torch.float64
    distance = (got.to(wide) - wanted.to(wide)).abs().nan_to_num(nan=torch.inf)
    index = int(torch.where(differ, distance, -1).argmax())
    place = [int(i) for i in torch.unravel_index(torch.tensor(index), wanted.shape)]
    values = f"{got.flatten()[index].item()} here, {wanted.flatten()[index].item()} on the CPU"
    return f"{int(differ.sum())} of {differ.numel()} elements differ, most at {place}: {values}"


def _type(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{[*tensor.shape]}"
