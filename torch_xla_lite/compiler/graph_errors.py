"""Finds the op that made a graph fail, and the line that recorded it, for the error message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from . import index_errors


def explained(error: Exception, calls: Sequence[Any], foreign: frozenset[str]) -> Exception:
    """What is raised for an error of code outside XLA: names the op that called it.

    Args:
      error: raised by the program.
      calls: those of the graph, with None for leaves.
      foreign: ops with code outside XLA, which are named if the message names no op.
    """
    if is_lack_of_memory(error):
        return error
    message = str(error)
    if "\nRecorded at " in message:  # A failed check (index_errors.py) has its lines already.
        named = {call.op for call in calls if call is not None and f"(in {call.op})" in message}
        return blaming(*named, error) if len(named) == 1 else error
    named = {call.op for call in calls if call is not None and _names(message, call.op)} or foreign
    kind: type[Exception] = RuntimeError
    for name in named:
        if found := re.search(rf"{re.escape(name)}: (_?\w+Error): ", message):
            # The class of torch's error (csrc/ffi/handler.cc).
            message = message.replace(found[0], f"{name}: ")
            kind = index_errors.exception_class(found[1])
    result = kind(
        with_sources(message, (call.source for call in calls if call and call.op in named))
    )
    return blaming(*named, result) if len(named) == 1 else result


def is_lack_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or what caused it, is lack of memory: no op is to blame."""
    if error is None:
        return False
    if isinstance(error, MemoryError) or str(error).startswith("RESOURCE_EXHAUSTED"):
        return True
    return is_lack_of_memory(error.__cause__)


def blaming(op: str, error: Exception) -> Exception:
    """The error as one of an op: the runtime computes all values that do not need it."""
    error._torch_xla_lite_op = op  # type: ignore[attr-defined]  # Read by csrc/python/executor.cc.
    return error


def with_sources(message: str, sources: Iterable[str]) -> str:
    """A message with the lines that recorded the ops; a source that is not known is empty."""
    known = sorted({source for source in sources if source})
    if known:
        return "\n".join([message, *(f"Recorded at {source}." for source in known)])
    return (
        f"{message}\nTo see which line recorded it, run again with TORCH_XLA_LITE_IR_DEBUG=1 in "
        "the environment."
    )


def _names(message: str, op: str) -> bool:
    """Whether a message names this op, not another one whose name begins with it."""
    return re.search(rf"{re.escape(op)}(?![.\w]*\w)", message) is not None
