"""Reductions over consecutive groups of rows."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base.checks import check
from torch_xla_lite.lowering.base.promotion import convert, opmath
from torch_xla_lite.lowering.base.registry import Unsupported, lower

_REDUCTIONS = {
    "sum": jax.ops.segment_sum,
    "mean": jax.ops.segment_sum,
    "max": jax.ops.segment_max,
    "min": jax.ops.segment_min,
}
_COMBINE = {"sum": lax.add, "mean": lax.add, "max": lax.max, "min": lax.min}


@lower(
    "aten::segment_reduce",
    constants=True,
    refuses="biuc",
    kernel_needs="segments",
)
def segment_reduce(
    data: jax.Array,
    reduce: str,
    *,
    lengths: jax.Array | None = None,
    indices: jax.Array | None = None,
    offsets: jax.Array | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> jax.Array:
    bounds = _bounds(data, reduce, lengths, offsets, axis, whole=offsets is None and not unsafe)
    x, count = opmath(data), bounds.shape[0] - 1
    reduced = _REDUCTIONS[reduce](x, _segment_of_rows(bounds, x), count, indices_are_sorted=True)
    if initial is not None:
        reduced = _COMBINE[reduce](reduced, lax.full_like(reduced, initial))
    if reduce != "mean":
        return convert(reduced, data.dtype)
    rows = _rows_in(bounds, reduced)
    empty = lax.full_like(reduced, math.nan if initial is None else initial)
    return convert(jnp.where(rows > 0, reduced / rows, empty), data.dtype)


@lower("aten::_segment_reduce_backward", constants=True, kernel_needs="segments_of_backward")
def segment_reduce_backward(
    grad: jax.Array,
    output: jax.Array,
    data: jax.Array,
    reduce: str,
    *,
    lengths: jax.Array | None = None,
    offsets: jax.Array | None = None,
    axis: int = 0,
    initial: float | None = None,
) -> jax.Array:
    bounds = _bounds(data, reduce, lengths, offsets, axis)
    segments, grad = _segment_of_rows(bounds, data), opmath(grad)

    def of_rows(of_segments: jax.Array) -> jax.Array:
        return of_segments.at[segments].get(mode="fill", fill_value=0)

    if reduce == "mean":
        grad = grad / lax.max(_rows_in(bounds, grad), jnp.ones((), grad.dtype))
    if reduce in ("sum", "mean"):
        return convert(of_rows(grad), data.dtype)
    # Elements that are equal to the largest (smallest) share its gradient.
    equal = convert((data == of_rows(output)) | (data != data), grad.dtype)
    sharing = jax.ops.segment_sum(equal, segments, grad.shape[0], indices_are_sorted=True)
    shared = of_rows(grad / lax.max(sharing, jnp.ones((), grad.dtype)))
    return convert(equal * shared, data.dtype)


def _bounds(
    data: jax.Array,
    reduce: str,
    lengths: jax.Array | None,
    offsets: jax.Array | None,
    axis: int,
    whole: bool = False,
) -> jax.Array:
    """Where segments begin and, last, where the last one ends: `[segments + 1]` int64. Raises
    Unsupported for other cases."""
    given = lengths if offsets is None else offsets
    if reduce == "prod" or axis != 0 or given is None or given.ndim != 1 or data.ndim == 0:
        raise Unsupported
    bounds = convert(given, np.dtype(np.int64))
    if offsets is None:
        bounds = jnp.concatenate([np.zeros(1, np.int64), jnp.cumsum(bounds)])
    decreases = jnp.any(bounds[1:] < bounds[:-1])
    outside = (bounds[:1] < 0).any() | (bounds[-1:] > data.shape[0]).any()
    check(
        decreases | outside,
        f"aten::segment_reduce: segments are not consecutive groups of {data.shape[0]} rows",
        RuntimeError,
    )
    if whole:
        check(
            bounds[-1] != data.shape[0],
            f"aten::segment_reduce: segments do not have {data.shape[0]} rows in total",
            RuntimeError,
        )
    return bounds


def _segment_of_rows(bounds: jax.Array, data: jax.Array) -> jax.Array:
    """The segment of each row, `[rows]`; the number of segments for rows outside of all."""
    count, rows = bounds.shape[0] - 1, lax.iota(np.int64, data.shape[0])
    segments = jnp.searchsorted(bounds[1:], rows, side="right")
    return jnp.where(rows < bounds[0], count, segments)


def _rows_in(bounds: jax.Array, like: jax.Array) -> jax.Array:
    """How many rows each segment has, with as many dimensions as `like`."""
    rows = convert(bounds[1:] - bounds[:-1], like.dtype)
    return lax.expand_dims(rows, range(1, like.ndim))
