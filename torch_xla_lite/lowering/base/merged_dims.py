"""Matrices whose leading dimensions the program has merged, as torch's matmul does.

    [batch, heads, rows, columns]  --view-->  [batch · heads, rows, columns]  --bmm-->  ...

Where devices share both the batch and the heads, none has a block of the merged dimension, and XLA
would gather the heads. So while a graph for a mesh is traced, a merged array is known with the one
that it was made of, and products are computed of that. Other graphs are traced as recorded.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import TypeAlias

from torch_xla_lite.startup.late_jax import jax, lax

# By the identity of a merged array: that array, and the same one before it was merged.
_Known: TypeAlias = "dict[int, tuple[jax.Array, jax.Array]]"

_known: ContextVar[_Known | None] = ContextVar("_known", default=None)


@contextlib.contextmanager
def remembered(is_on: bool) -> Iterator[None]:
    """Says whether the body, which traces a graph, remembers what was merged."""
    before = _known.set({} if is_on else None)
    try:
        yield
    finally:
        _known.reset(before)


def reshape(x: jax.Array, shape: Sequence[int]) -> jax.Array:
    """`lax.reshape`, by which dimensions are merged and come apart again."""
    apart = of(x)
    if apart is not None and apart.shape == tuple(shape):
        return apart
    merged = lax.reshape(x, shape)
    is_merged = len(shape) == 3 < x.ndim and x.shape[-2:] == tuple(shape[1:])
    return note(merged, x) if is_merged else merged


def note(merged: jax.Array, apart: jax.Array) -> jax.Array:
    """Remembers that two arrays `[n, rows, columns]` and `[..., rows, columns]` have the same
    elements; returns the first."""
    known = _known.get()
    if known is not None:
        known[id(merged)] = merged, apart
    return merged


def of(merged: jax.Array) -> jax.Array | None:
    """What an array was before it was merged; None if it was not."""
    known = _known.get()
    return known[id(merged)][1] if known and id(merged) in known else None


def all_of(arrays: Sequence[jax.Array]) -> list[jax.Array] | None:
    """Arrays `[n, ...]` with the leading dimensions that one of them had before; None if none is
    merged, or not all alike."""
    apart = [of(array) for array in arrays]
    leading = {array.shape[:-2] for array in apart if array is not None}
    if len(leading) != 1:
        return None
    dims = leading.pop()
    return [
        lax.reshape(array, (*dims, *array.shape[1:])) if before is None else before
        for array, before in zip(arrays, apart, strict=True)
    ]


def merge(apart: jax.Array) -> jax.Array:
    """`[..., rows, columns]` as `[n, rows, columns]`."""
    rows, columns = apart.shape[-2:]
    shape = (math.prod(apart.shape[:-2]), rows, columns)
    return note(lax.reshape(apart, shape), apart)
