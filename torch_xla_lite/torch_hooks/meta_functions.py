"""Lets torch infer shapes without importing torch._dynamo, which takes a second, or sympy.

    register()
    torch.ones(3, device="jax") + 1     # torch._dynamo is not in sys.modules

The bridge infers the shape of a result by torch's meta function. Those of element-wise ops are
written in Python (torch._refs), with a decorator that keeps torch.compile from tracing them. When
such a function is called first, the decorator imports torch._dynamo. A process that never calls
torch.compile does not need it. Once torch._dynamo is loaded, the decorator works as it always does.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..lowering.base import untraced
from ..startup.patches import Patch

# The attribute of a function in which torch._compile._disable_dynamo keeps what it calls instead.
_MARK = "__dynamo_disable"


def register() -> None:
    """Sets what the decorated functions of torch._refs call instead, where it is not set yet."""
    visited: set[int] = set()
    for module in (torch._refs, torch._refs.special, torch._refs.nn.functional, torch._refs.linalg):
        for value in vars(module).values():
            for function in _decorated(value, visited):
                if not hasattr(function, _MARK):
                    setattr(function, _MARK, _marked_later(function))


def hidden_from_dynamo(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which torch.compile calls between two graphs and does not trace."""
    setattr(function, _MARK, _marked_later(function))
    return torch._compile._disable_dynamo(function)  # type: ignore[attr-defined]


def _decorated(value: Any, visited: set[int]) -> Iterator[types.FunctionType]:
    """The functions that _disable_dynamo decorates, below other decorators: those hold what they
    decorate in their closures."""
    if not isinstance(value, types.FunctionType) or id(value) in visited:
        return
    visited.add(id(value))
    inner = [cell.cell_contents for cell in value.__closure__ or () if _is_set(cell)]
    if value.__code__ is _DECORATOR:
        yield from (function for function in inner if isinstance(function, types.FunctionType))
    for function in inner:
        yield from _decorated(function, visited)


def _is_set(cell: types.CellType) -> bool:
    """Whether a variable of a closure has a value."""
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _marked_later(function: types.FunctionType) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        # While it is imported, it is there and has no attributes.
        disable = getattr(sys.modules.get("torch._dynamo"), "disable", None)
        if disable is None:
            return function(*args, **kwargs)
        marked = disable(function, True, wrapping=False)
        setattr(function, _MARK, marked)
        return marked(*args, **kwargs)

    untraced.skip(run.__code__)
    return run


def _without_symbols(check_with: Callable[..., None]) -> Callable[..., None]:
    def check(error_type: type[Exception], cond: Any, message: Callable[[], str]) -> None:
        if cond is False and callable(message):
            raise error_type(message())
        if cond is not True:
            check_with(error_type, cond, message)

    return check


PATCHES = [
    Patch(
        "torch",
        "_check_with",
        "asks whether True and False are symbols: the import of sympy takes 0.2 s",
        _without_symbols,
    )
]

# The code of all functions that _disable_dynamo has made.
_DECORATOR = torch._compile._disable_dynamo(register).__code__  # type: ignore[attr-defined]
