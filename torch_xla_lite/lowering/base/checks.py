"""Registers checks of values, mostly of indices, that a graph reports when it has run.

A graph of XLA cannot raise. A lowering registers conditions that must not hold, such as an index
out of range:

    index_in_range(indices, size=10)     # while jax traces
    check(jnp.any(x < 0), "x is negative", RuntimeError)

The graph then has one more result: whether each check failed. compiler/index_errors.py reads it
when a value leaves the device. Until then an index out of range reads the nearest element, and a
write through one is left out.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from contextvars import ContextVar

import numpy as np

from torch_xla_lite.lowering.base.promotion import is_integral
from torch_xla_lite.startup.late_jax import jax, lax


@dataclasses.dataclass(frozen=True)
class Check:
    """One check of a graph.

    failed: `[]` bool.
    message: what is wrong if it failed.
    error: the class of the exception.
    """

    failed: jax.Array
    message: str
    error: type[Exception] = IndexError


_collected: ContextVar[list[Check] | None] = ContextVar("_collected", default=None)


@contextlib.contextmanager
def collect(enabled: bool = True) -> Iterator[list[Check]]:
    """Gives the checks of what is lowered inside. Elsewhere they are not computed."""
    found: list[Check] = []
    token = _collected.set(found if enabled else None)
    try:
        yield found
    finally:
        _collected.reset(token)


def check(failed: jax.Array, message: str, error: type[Exception] = IndexError) -> None:
    """Notes a check: `error` is raised if `failed`, `[]` bool, is true when the graph runs."""
    if (collected := _collected.get()) is not None:
        collected.append(Check(failed, message, error))


def index_in_range(
    index: jax.Array, size: int, *, wraps: bool = False, ignored: int | None = None
) -> None:
    """Notes a check that `0 <= index < size`.

    Args:
      wraps: negative indices count from the end.
      ignored: this index may be there, too.
    """
    if _collected.get() is None or index.size == 0 or not is_integral(index.dtype):
        return
    if index.dtype.kind == "u":
        # As int64, which holds `size` whatever the indices are.
        index = lax.convert_element_type(index, np.dtype(np.int64))
    low = -size if wraps else 0
    limit = np.iinfo(index.dtype).max
    bad = lax.lt(index, lax.full_like(index, max(low, np.iinfo(index.dtype).min)))
    if size <= limit:
        bad = lax.bitwise_or(bad, lax.ge(index, lax.full_like(index, size)))
    if ignored is not None:
        bad = lax.bitwise_and(bad, lax.ne(index, lax.full_like(index, ignored)))
    failed = lax.reduce_or(bad, tuple(range(bad.ndim)))
    check(failed, f"an index is out of range: it must be in [{low}, {size})")


def not_zero(divisor: jax.Array) -> None:
    """Notes a check that integers are not divided by zero."""
    zero = lax.eq(divisor, lax.full_like(divisor, 0))
    message = "ZeroDivisionError: an integer was divided by zero"
    check(lax.reduce_or(zero, tuple(range(zero.ndim))), message, RuntimeError)
