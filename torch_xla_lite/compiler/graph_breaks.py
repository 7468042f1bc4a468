"""compile: a function whose operations are one graph, or an error that says where they are not.

    step = torch_xla_lite.compile(step)      # forward, backward, optimizer
    step(x, y)                               # GraphBreak: step reads a value at train.py:7: ...

A graph ends where a value is needed: by `.item()`, `print`, an `if`, an op whose result has a shape
that depends on data. The runtime refuses that in a thread that is inside of such a function.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from .. import _XLAC
from ..startup import program_lines

_P = ParamSpec("_P")
_R = TypeVar("_R")

# How the runtime's error begins (csrc/runtime/runtime.h).
_MARK = "graph break: "


class GraphBreak(RuntimeError):
    """A value was needed inside a function that is one graph.

    Attributes:
      cause: "a value is read", or which op needs one.
      file, line: where; empty and 0 if that is not known.
    """

    def __init__(self, name: str, cause: str, file: str, line: int) -> None:
        self.cause, self.file, self.line = cause, file, line
        source = linecache.getline(file, line).strip()
        where = f", at {file}:{line}: {source}" if file else ""
        super().__init__(
            f"{name} is no single graph: {cause}{where}\n"
            "Read it after the call, or compute with all values:  torch.where(condition, a, b)"
        )


class _Depth(threading.local):
    value = 0


_depth = _Depth()


def is_one_graph() -> bool:
    """Whether this thread is inside a function that must stay one graph."""
    return _depth.value > 0


@contextlib.contextmanager
def refused(name: str) -> Iterator[None]:
    """Raises GraphBreak where the body needs a value that is not computed yet.

    Args:
      name: of the function, for the message.
    """
    if is_one_graph():
        yield
        return
    _XLAC.refuse_reads(True)
    _depth.value = 1
    was_refused = False
    try:
        yield
    except Exception as error:
        if (graph_break := _graph_break(name, error)) is not None:
            raise graph_break from None
        raise
    finally:
        _depth.value = 0
        was_refused = _XLAC.refuse_reads(False)
    if was_refused:
        raise GraphBreak(name, "a value is read, whose error the function catches", "", 0)


def compile(fn: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function, each call of which is one graph from its first op to its end.

        @torch_xla_lite.compile
        def step(x, y):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

    What was recorded before a call is run before. The call does not wait for the results.

    Raises:
      GraphBreak: when it is called and needs a value before its end.
    """

    @functools.wraps(fn)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if is_one_graph():
            return fn(*args, **kwargs)
        _XLAC.sync()
        with refused(getattr(fn, "__qualname__", type(fn).__qualname__)):
            result = fn(*args, **kwargs)
        _XLAC.sync()
        return result

    return run


def _graph_break(name: str, error: BaseException) -> GraphBreak | None:
    """The error as a GraphBreak, with the line of the program that is nearest to it."""
    cause: Any = error
    while cause is not None and _MARK not in str(cause):
        cause = cause.__cause__
    if cause is None:
        return None
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not program_lines.is_library(frame.filename)
    ]
    file, line = (frames[-1].filename, frames[-1].lineno or 0) if frames else ("", 0)
    return GraphBreak(name, str(cause).partition(_MARK)[2].splitlines()[0], file, line)
