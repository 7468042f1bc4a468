"""Names the step that made a graph fail, and the line that recorded it.

A lowering that raises is known while jax traces (tracing.py), a failed check by its place among
those of the graph (index_errors.py), and a kernel of ATen says its step in its message
(csrc/ffi/handler.cc). Of other errors, such as lack of memory, no step is known.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Sequence
from typing import Any

import torch

# What a kernel says: its step, its op, the class of the error if it is no RuntimeError, a text.
_OF_KERNEL = re.compile(r"step (\d+), ([\w:.]+): (?:(_?\w+Error): )?(.*)", re.DOTALL)

# How many lines a message names.
_MOST_LINES = 8


def explained(error: Exception, graph: Sequence[Any], suspects: Sequence[int]) -> Exception:
    """What is raised for an error of XLA or of code outside XLA, when a graph is compiled or run.

    Args:
      graph: its steps.
      suspects: the steps that may have failed if the error names none: those whose op it names, if
        any. A single one has.
    """
    if is_lack_of_memory(error) or hasattr(error, "_torch_xla_lite_steps"):
        return error
    if found := _OF_KERNEL.search(str(error)):
        call = graph[int(found[1])]
        kind = exception_class(found[3] or "RuntimeError")
        message = with_sources(f"{found[2]}: {found[4]}", [call.source])
        return blaming([int(found[1])], kind(message))
    named = [step for step in suspects if _names(str(error), graph[step].op)]
    steps = named or [*suspects]
    ops = [*dict.fromkeys(graph[step].op for step in steps)]
    if len(ops) > _MOST_LINES:
        ops[_MOST_LINES:] = ["..."]
    sources = [graph[step].source for step in steps]
    result = RuntimeError(with_sources(f"{', '.join(ops)}: {error}", sources))
    return blaming(steps, result) if len(steps) == 1 else result


def is_lack_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or what caused it, is lack of memory: no op is to blame."""
    if error is None:
        return False
    if isinstance(error, MemoryError) or str(error).startswith("RESOURCE_EXHAUSTED"):
        return True
    return is_lack_of_memory(error.__cause__)


def blaming(steps: Iterable[int], error: Exception) -> Exception:
    """The error as one of some steps: the runtime computes all values that do not need them."""
    error._torch_xla_lite_steps = [*steps]  # type: ignore[attr-defined]  # csrc/python/executable.h
    return error


def exception_class(name: str) -> type[Exception]:
    """The class of an exception of Python, or of torch, such as `_LinAlgError`."""
    return getattr(builtins, name, None) or getattr(torch._C, name)


def with_sources(message: str, sources: Iterable[str]) -> str:
    """A message with the lines that recorded the ops; a source that is not known is empty."""
    known = sorted({source for source in sources if source})
    if known:
        return "\n".join([message, *(f"Recorded at {source}." for source in known[:_MOST_LINES])])
    return (
        f"{message}\nTo see which line recorded it, run again with TORCH_XLA_LITE_IR_DEBUG=1 in "
        "the environment."
    )


def _names(message: str, op: str) -> bool:
    """Whether a message names this op, not another one whose name begins with it."""
    return re.search(rf"{re.escape(op)}(?![.\w]*\w)", message) is not None
