"""Sorting, and ops that are based on it: top-k, order statistics, search, counting.

All sorts are stable, and NaN counts as the largest value, as in torch.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base import checks, target
from torch_xla_lite.lowering.base.promotion import (
    Number,
    Operand,
    canonical_dim,
    convert,
    index_dtype,
    is_float,
    is_integral,
    opmath,
    result_dtype,
)
from torch_xla_lite.lowering.base.registry import Unsupported, lower
from torch_xla_lite.lowering.reduction import restore_dims

Pair = tuple[jax.Array, jax.Array]


def sorted_with_index(x: jax.Array, dim: int, descending: bool) -> Pair:
    """Sorted values and their positions, int64."""
    if x.ndim == 0:
        return x, lax.full((), 0, np.int64)
    positions = lax.broadcasted_iota(np.int32, x.shape, dim)
    if descending:
        # Reverse before and after sorting, so that equal elements keep their order.
        x, positions = lax.rev(x, (dim,)), lax.rev(positions, (dim,))
    values, indices = lax.sort((x, positions), dimension=dim, num_keys=1, is_stable=True)
    if descending:
        values, indices = lax.rev(values, (dim,)), lax.rev(indices, (dim,))
    return values, convert(indices, np.dtype(np.int64))


@lower("aten::sort", refuses="c", shares="self=same", refused_if="foreign_dim", shape="sort")
def sort(self: jax.Array, dim: int = -1, descending: bool = False) -> Pair:
    return sorted_with_index(self, canonical_dim(dim, self.ndim), descending)


@lower("aten::sort.stable", refuses="c", shares="self=same")
def sort_stable(
    self: jax.Array, *, stable: bool | None, dim: int = -1, descending: bool = False
) -> Pair:
    return sort(self, dim, descending)


@lower("aten::topk", refuses="bc", shares="self=same")
def topk(self: jax.Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Pair:
    if self.ndim == 0:
        return self, lax.full((), 0, np.int64)
    dim = canonical_dim(dim, self.ndim)
    if largest and dim == self.ndim - 1 and self.dtype != np.bool_ and k > 0:
        # top_k takes a NaN with a sign, such as 0 / 0 on x86, for the smallest element.
        x = (
            lax.select(lax.ne(self, self), lax.full_like(self, np.nan), self)
            if is_float(self.dtype)
            else self
        )
        values, indices = lax.top_k(x, k)
        return values, convert(indices, np.dtype(np.int64))
    values, indices = sorted_with_index(self, dim, largest)
    return lax.slice_in_dim(values, 0, k, 1, dim), lax.slice_in_dim(indices, 0, k, 1, dim)


@lower("aten::kthvalue", refuses="bc")
def kthvalue(self: jax.Array, k: int, dim: int = -1, keepdim: bool = False) -> Pair:
    if self.ndim == 0:
        return self, lax.full((), 0, np.int64)
    dim = canonical_dim(dim, self.ndim)
    values, indices = sorted_with_index(self, dim, False)
    value = lax.index_in_dim(values, k - 1, dim, keepdims=False)
    index = lax.index_in_dim(indices, k - 1, dim, keepdims=False)
    return restore_dims(value, (dim,), keepdim), restore_dims(index, (dim,), keepdim)


@lower("aten::median.dim", refuses="bc", elements="self")
def median_dim(self: jax.Array, dim: int, keepdim: bool = False) -> Pair:
    return _median(self, dim, keepdim, ignore_nan=False)


@lower("aten::nanmedian.dim", refuses="bc", elements="self")
def nanmedian_dim(self: jax.Array, dim: int, keepdim: bool = False) -> Pair:
    return _median(self, dim, keepdim, ignore_nan=True)


def _median(self: jax.Array, dim: int, keepdim: bool, ignore_nan: bool) -> Pair:
    """The lower of the two middle values, or NaN if there is a NaN that is not ignored."""
    if self.ndim == 0:
        return self, lax.full((), 0, np.int64)
    dim = canonical_dim(dim, self.ndim)
    values, indices = sorted_with_index(self, dim, False)
    length = self.shape[dim]
    missing = lax.ne(values, values)
    count = jnp.sum(~missing, axis=dim, keepdims=True, dtype=index_dtype(length))
    middle = jnp.maximum(count - 1, 0) // 2
    if not ignore_nan:
        middle = jnp.where(count < length, count, (length - 1) // 2)
    value = jnp.take_along_axis(values, middle, axis=dim)
    index = jnp.take_along_axis(indices, middle, axis=dim)
    return (value, index) if keepdim else (jnp.squeeze(value, dim), jnp.squeeze(index, dim))


@lower("aten::median", refuses="bc")
def median(self: jax.Array) -> jax.Array:
    return _median_of_all(self, ignore_nan=False)


@lower("aten::nanmedian", refuses="bc")
def nanmedian(self: jax.Array) -> jax.Array:
    return _median_of_all(self, ignore_nan=True)


def _median_of_all(x: jax.Array, ignore_nan: bool) -> jax.Array:
    if x.size == 0:
        missing = np.iinfo(x.dtype).min if is_integral(x.dtype) else np.nan
        return lax.full((), missing, x.dtype)
    return _median(lax.reshape(x, (x.size,)), 0, False, ignore_nan)[0]


@lower("aten::mode", refuses="c", elements="self")
def mode(self: jax.Array, dim: int = -1, keepdim: bool = False) -> Pair:
    """The most frequent value, the smallest of several, and the position of its last occurrence."""
    if self.ndim == 0:
        return self, lax.full((), 0, np.int64)
    dim = canonical_dim(dim, self.ndim)
    x = jnp.moveaxis(self, dim, -1)
    values, indices = sorted_with_index(x, x.ndim - 1, False)
    place = lax.broadcasted_iota(index_dtype(x.shape[-1]), x.shape, x.ndim - 1)
    starts = jnp.concatenate(
        [jnp.ones_like(place[..., :1], bool), values[..., 1:] != values[..., :-1]], axis=-1
    )
    run_start = lax.cummax(jnp.where(starts, place, 0), axis=x.ndim - 1)
    best = jnp.argmax(place - run_start, axis=-1)[..., None]
    value = jnp.take_along_axis(values, best, axis=-1)
    index = jnp.take_along_axis(indices, best, axis=-1)
    if keepdim:
        return jnp.moveaxis(value, -1, dim), jnp.moveaxis(index, -1, dim)
    return value[..., 0], index[..., 0]


# Search.


def _searchsorted(boundaries: jax.Array, values: jax.Array, right: bool) -> jax.Array:
    """torch's binary search, step by step: so boundaries may have NaN, and need not be sorted."""
    dtype = result_dtype(boundaries, values)
    boundaries, values = convert(boundaries, dtype), convert(values, dtype)
    length = boundaries.shape[-1]
    start = lax.full(values.shape, 0, index_dtype(2 * length))
    end = lax.full_like(start, length)
    for _ in range(length.bit_length()):
        middle = (start + end) >> 1
        if boundaries.ndim == 1:
            found = boundaries.at[middle].get(mode="clip")
        else:
            found = jnp.take_along_axis(boundaries, middle, axis=-1, mode="clip")
        is_left = (found > values) if right else (found >= values)
        searches = start < end
        start = jnp.where(searches & ~is_left, middle + 1, start)
        end = jnp.where(searches & is_left, middle, end)
    return convert(start, np.dtype(np.int64))


@lower("aten::searchsorted.Tensor", "aten::searchsorted.Scalar", refuses="bc")
def searchsorted(
    sorted_sequence: jax.Array,
    self: Operand,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: jax.Array | None = None,
) -> jax.Array:
    if sorter is not None:
        checks.index_in_range(sorter, sorted_sequence.shape[-1])
        sorted_sequence = jnp.take_along_axis(sorted_sequence, sorter, axis=-1)
    if side not in (None, "left", "right"):
        raise Unsupported(f"the side {side}")  # torch's kernel raises.
    values = self if hasattr(self, "ndim") else convert(self, sorted_sequence.dtype)
    return _searchsorted(sorted_sequence, values, right or side == "right")


@lower(
    "aten::bucketize.Tensor", "aten::bucketize.Scalar", refuses="bc", refused_if="boundary_matrix"
)
def bucketize(
    self: Operand, boundaries: jax.Array, *, out_int32: bool = False, right: bool = False
) -> jax.Array:
    return searchsorted(boundaries, self, right=right)


@lower("aten::isin.Tensor_Tensor", "aten::isin.Tensor_Scalar", "aten::isin.Scalar_Tensor")
def isin(
    elements: Operand,
    test_elements: Operand,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    outs,
) -> jax.Array:
    left, right = jnp.asarray(elements), jnp.asarray(test_elements)
    return lax.reshape(jnp.isin(left, right, invert=invert), outs[0].shape)


# Counting.


@lower("aten::histc", constants=True, refuses="bc")
def histc(self: jax.Array, bins: int = 100, min: Number = 0, max: Number = 0) -> jax.Array:
    x = lax.reshape(opmath(self), (self.size,))
    x = x if is_float(x.dtype) else x.astype(np.int64)  # (x - low) * bins has to fit.
    low, high = (jnp.min(x), jnp.max(x)) if min == max and x.size else (min, max)
    low, high = jnp.asarray(low, x.dtype), jnp.asarray(high, x.dtype)
    finite = jnp.isfinite(low) & jnp.isfinite(high)
    checks.check(~finite, "torch.histc: range of the elements is not finite", RuntimeError)
    flat = low == high
    low, high = jnp.where(flat, low - 1, low), jnp.where(flat, high + 1, high)
    place = target.divide((x - low) * bins, jnp.broadcast_to(high - low, x.shape)).astype(np.int32)
    place = jnp.where(x == high, bins - 1, place)
    inside = (x >= low) & (x <= high)
    place = jnp.where(inside, place, bins)
    return jnp.zeros((bins,), x.dtype).at[place].add(1, mode="drop")
