"""Adaptive pooling, in two and three dimensions (torch maps one to two).

If all windows have one size it is pooling by that window (pool.py). Otherwise the average is a
product with a sparse matrix for each dimension, and the maximum reads windows of the longest size.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base.promotion import convert, index_dtype, is_float, opmath
from torch_xla_lite.lowering.base.registry import lower
from torch_xla_lite.lowering.pool import (
    Window,
    divided,
    max_with_position,
    repeated,
    scatter_to_positions,
    window_sum,
)
from torch_xla_lite.lowering.sparse_matrix import SparseMatrix, banded


def _bounds(index: Any, size: int, count: int) -> tuple[Any, Any]:
    """Where the windows of these numbers, an array of numpy or jax, begin and end."""
    return index * size // count, ((index + 1) * size + count - 1) // count


def _even_window(sizes: Sequence[int], counts: Sequence[int]) -> Window | None:
    if any(count == 0 or size % count for size, count in zip(sizes, counts, strict=True)):
        return None
    kernel = tuple(size // count for size, count in zip(sizes, counts, strict=True))
    zeros, ones = (0,) * len(kernel), (1,) * len(kernel)
    return Window(kernel, kernel, zeros, ones, tuple(sizes), tuple(counts))


def _averaging(size: int, count: int) -> SparseMatrix:
    """[count, size]: the matrix that averages each window of one dimension."""
    start, stop = _bounds(np.arange(count), size, count)
    each = np.broadcast_to(1 / (stop - start)[:, None], (count, size))
    return banded(start, stop, each)


def _adaptive_average(x: jax.Array, counts: Sequence[int]) -> jax.Array:
    rank = len(counts)
    window = _even_window(x.shape[-rank:], counts)
    if window is not None:
        if all(count == 1 for count in counts):
            dims = tuple(range(x.ndim - rank, x.ndim))
            total = lax.expand_dims(lax.reduce_sum(x, dims), dims)
        else:
            total = window_sum(x, window)
        return divided(total, math.prod(window.kernel))
    for i, count in enumerate(counts):
        dim = x.ndim - rank + i
        x = _averaging(x.shape[dim], count).times(x, dim)
    return x


@lower("aten::_adaptive_avg_pool2d", refuses="biuc", elements="self", channels_last=True)
@lower("aten::_adaptive_avg_pool3d", refuses="biuc", elements="self")
def adaptive_avg_pool(self: jax.Array, output_size: list[int]) -> jax.Array:
    return _adaptive_average(opmath(self), output_size)


@lower("aten::_adaptive_avg_pool2d_backward", elements="grad_output", channels_last=True)
def adaptive_avg_pool2d_backward(grad_output: jax.Array, self: jax.Array) -> jax.Array:
    return _adaptive_average_backward(grad_output, self, 2)


@lower("aten::_adaptive_avg_pool3d_backward", elements="grad_output")
def adaptive_avg_pool3d_backward(grad_output: jax.Array, self: jax.Array) -> jax.Array:
    return _adaptive_average_backward(grad_output, self, 3)


def _adaptive_average_backward(grad_output: jax.Array, self: jax.Array, rank: int) -> jax.Array:
    grad = opmath(grad_output)
    counts = grad.shape[-rank:]
    window = _even_window(self.shape[-rank:], counts)
    if window is not None:
        return repeated(divided(grad, math.prod(window.kernel)), window.kernel)
    for dim in range(grad.ndim - rank, grad.ndim):
        grad = _averaging(self.shape[dim], grad.shape[dim]).transposed().times(grad, dim)
    return grad


def _adaptive_max(x: jax.Array, counts: Sequence[int]) -> tuple[jax.Array, jax.Array]:
    rank = len(counts)
    sizes = x.shape[-rank:]
    if 0 in counts:
        empty = (*x.shape[:-rank], *counts)
        return lax.full(empty, 0, x.dtype), lax.full(empty, 0, np.int32)
    window = _even_window(sizes, counts)
    if window is not None:
        return max_with_position(x, window)
    # Windows of different sizes: all are read with the length of the longest; the surplus repeats
    # the last place.
    position = jnp.zeros((), np.int32)
    for i, (size, count) in enumerate(zip(sizes, counts, strict=True)):
        start, stop = _bounds(np.arange(count), size, count)
        longest = int((stop - start).max())
        # Unsigned, because XLA divides these by one instruction.
        unsigned = np.dtype(f"u{index_dtype((count + 1) * (size + 1))}")
        bounds = _bounds(lax.iota(unsigned, count), size, count)
        start, stop = (bound.astype(np.int32) for bound in bounds)
        places = jnp.minimum(start[:, None] + lax.iota(np.int32, longest), (stop - 1)[:, None])
        x = jnp.take(x, places.reshape(-1), axis=x.ndim - rank + i, mode="clip")
        position = position[..., None, None] * size + places
    lead = x.shape[:-rank]
    shape = list(lead)
    for count, size in zip(counts, x.shape[len(lead) :], strict=True):
        shape += [count, size // count]
    order = [*range(len(lead))]
    order += [len(lead) + 2 * i for i in range(rank)]
    order += [len(lead) + 2 * i + 1 for i in range(rank)]
    grouped = lax.transpose(lax.reshape(x, shape), order)
    flat = lax.reshape(grouped, (*lead, *counts, math.prod(grouped.shape[-rank:])))
    # position: [c0, k0, c1, k1, ...] -> [c0, c1, ..., k0·k1·...]
    arranged = position.transpose([2 * i for i in range(rank)] + [2 * i + 1 for i in range(rank)])
    arranged = arranged.reshape(*counts, -1)
    best = flat[..., 0]
    where = jnp.broadcast_to(arranged[..., 0], best.shape)
    for k in range(1, flat.shape[-1]):
        candidate = flat[..., k]
        wins = lax.gt(candidate, best)
        if is_float(x.dtype):
            wins = lax.bitwise_or(wins, lax.ne(candidate, candidate))
        where = lax.select(wins, jnp.broadcast_to(arranged[..., k], best.shape), where)
        best = lax.max(best, candidate)
    return best, where


@lower("aten::adaptive_max_pool2d", "aten::adaptive_max_pool3d", refuses="biuc")
def adaptive_max_pool(self: jax.Array, output_size: list[int]) -> tuple[jax.Array, jax.Array]:
    value, position = _adaptive_max(self, output_size)
    return value, convert(position, np.dtype(np.int64))


@lower("aten::adaptive_max_pool2d_backward")
def adaptive_max_pool2d_backward(
    grad_output: jax.Array, self: jax.Array, indices: jax.Array
) -> jax.Array:
    return scatter_to_positions(grad_output, indices, self.shape, 2, False)


@lower("aten::adaptive_max_pool3d_backward")
def adaptive_max_pool3d_backward(
    grad_output: jax.Array, self: jax.Array, indices: jax.Array
) -> jax.Array:
    return scatter_to_positions(grad_output, indices, self.shape, 3, False)
