"""Refuses tensors on jax that a captured function uses and does not take as arguments.

    with made_here():                                     # in the thread of the capture
        with refused("the function captures a tensor"):
            results = fn(stand_ins)

The values that they have now would be constants of the program, which does not follow when they
change. What a capture makes is a function of its stand-ins, or stays as it is: a module may keep
it, such as a cache, for other captures. So each storage knows the capture that made it.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .. import _XLAC
from ..device.tensor import XLATensor2

# Storages of other threads have number 0. That of constants is of no capture.
_CONSTANT = 1
_numbers = itertools.count(2)

# The captures that have not ended, and the one of this thread.
_running: set[int] = set()
_own: ContextVar[int] = ContextVar("_own")


def note_constant(tensor: torch.Tensor) -> None:
    """Notes that a tensor does not change."""
    _XLAC.set_stamp_of(tensor, _CONSTANT)


@contextlib.contextmanager
def made_here() -> Iterator[None]:
    """What this thread makes in the body belongs to a capture; the thread does nothing else."""
    number = next(_numbers)
    _running.add(number)
    token = _own.set(number)
    _XLAC.stamp_new(number)
    try:
        yield
    finally:
        _XLAC.stamp_new(0)
        _own.reset(token)
        _running.discard(number)


@contextlib.contextmanager
def refused(message: str) -> Iterator[None]:
    """Raises ValueError where the body uses a tensor that no capture has made, or another one that
    has not ended."""
    with _Refusing(message, _own.get()):
        yield


class _Refusing(TorchDispatchMode):
    def __init__(self, message: str, own: int) -> None:
        super().__init__()
        self._message = message
        self._own = own

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        for x in tree_leaves((args, kwargs)):
            if isinstance(x, XLATensor2) and x.numel() and self._is_of_others(_XLAC.stamp_of(x)):
                raise ValueError(self._message.format(f"{x.dtype} {list(x.shape)}"))
        return func(*args, **(kwargs or {}))

    def _is_of_others(self, number: int) -> bool:
        return number == 0 or (number != self._own and number in _running)
