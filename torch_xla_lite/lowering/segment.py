"""Reductions over consecutive groups of rows."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering import kernels
from torch_xla_lite.lowering.registry import Unsupported, lower

_ELEMENTS = ("float32", "float64", "bfloat16", "float16")


@lower("aten::segment_reduce", constants=True)
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
    bounds = _offsets(data, reduce, lengths, offsets, axis)
    reduced = kernels.segment_reduce(
        _matrix(data),
        bounds,
        reduce=reduce,
        initial=initial,
        empty=math.nan if reduce == "mean" and initial is None else initial,
        whole=offsets is None and not unsafe,
        op="aten::segment_reduce",
    )
    return lax.reshape(reduced, (bounds.shape[0] - 1, *data.shape[1:]))


@lower("aten::_segment_reduce_backward", constants=True)
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
    grad_data = kernels.segment_reduce_backward(
        _matrix(grad),
        _matrix(output),
        _matrix(data),
        _offsets(data, reduce, lengths, offsets, axis),
        reduce=reduce,
        op="aten::_segment_reduce_backward",
    )
    return lax.reshape(grad_data, data.shape)


def _offsets(
    data: jax.Array,
    reduce: str,
    lengths: jax.Array | None,
    offsets: jax.Array | None,
    axis: int,
) -> jax.Array:
    """The offsets of the segments, `[segments + 1]`. Raises Unsupported for other cases."""
    given = lengths if offsets is None else offsets
    if reduce == "prod" or axis != 0 or given is None or given.ndim != 1 or data.ndim == 0:
        raise Unsupported
    if data.dtype.name not in _ELEMENTS or given.dtype.name not in ("int32", "int64"):
        raise Unsupported
    if offsets is not None:
        return offsets
    return jnp.concatenate([np.zeros(1, lengths.dtype), jnp.cumsum(lengths, dtype=lengths.dtype)])


def _matrix(x: jax.Array) -> jax.Array:
    return lax.reshape(x, (x.shape[0], math.prod(x.shape[1:])))
