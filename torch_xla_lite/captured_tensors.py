"""Refuses tensors on jax that a captured function uses and does not take as arguments.

    with refused("the function captures a tensor", stand_ins):
        results = fn(stand_ins)

The values that they have now would be constants of the program, which does not follow when they
change. Their memory is older than that of the stand-ins, and addresses grow (csrc/tensor/alias.cc).
"""

from __future__ import annotations

import collections
import contextlib
import functools
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from . import _XLAC
from .tensor import XLATensor2

# How many ranges are kept.
_MOST = 16384

# The addresses of what captured modules made, such as their caches, and of arrays that functions of
# jax captured.
_made: collections.deque[range] = collections.deque(maxlen=_MOST)
_constants: set[int] = set()


def note_constant(tensor: torch.Tensor) -> None:
    """Notes that a tensor does not change."""
    address = _XLAC.data_ptr(tensor)
    _constants.add(address)
    weakref.finalize(tensor, _constants.discard, address)


@contextlib.contextmanager
def refused(message: str, stand_ins: Sequence[torch.Tensor]) -> Iterator[None]:
    """Raises ValueError where the body uses a tensor that was made before the stand-ins."""
    addresses = [_XLAC.data_ptr(x) for x in stand_ins if x.numel()]
    start = min(addresses, default=_next_address())
    try:
        with _Refusing(message, start):
            yield
    finally:
        _made.append(range(start, _next_address()))


class _Refusing(TorchDispatchMode):
    def __init__(self, message: str, start: int) -> None:
        super().__init__()
        self._message = message
        self._start = start

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        for x in tree_leaves((args, kwargs)):
            if isinstance(x, XLATensor2) and x.numel() and self._is_older(_XLAC.data_ptr(x)):
                raise ValueError(self._message.format(f"{x.dtype} {list(x.shape)}"))
        return func(*args, **(kwargs or {}))

    def _is_older(self, address: int) -> bool:
        if address >= self._start or address in _constants:
            return False
        return not any(address in addresses for addresses in _made)


def _next_address() -> int:
    return _XLAC.data_ptr(_XLAC.from_jax(_a_value()))


@functools.cache
def _a_value() -> jax.Array:
    return jax.device_put(np.zeros(1, np.float32))
