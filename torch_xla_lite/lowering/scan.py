"""Cumulative operations along one dimension."""

from collections.abc import Callable

import jax
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base import target
from torch_xla_lite.lowering.base.promotion import (
    canonical_dim,
    convert,
    index_dtype,
    is_complex,
    is_float,
    opmath_dtype,
)
from torch_xla_lite.lowering.base.registry import Unsupported, lower


def _wide(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """`x` converted to `dtype`, in the dtype to accumulate in: float64 for floats on CPUs, as in
    torch's kernels. XLA also adds what no result has in it, which must not overflow."""
    x = convert(x, opmath_dtype(dtype))
    is_on_cpu = target.platform() == "cpu"
    return convert(x, np.dtype(np.float64)) if is_on_cpu and is_float(dtype) else x


@lower("aten::cumsum", refuses_results="b", shares="self=same")
def cumsum(self: jax.Array, dim: int, *, dtype=None, outs) -> jax.Array:
    x = _wide(self, outs[0].dtype)
    return lax.cumsum(x, canonical_dim(dim, x.ndim)) if x.ndim else x


@lower("aten::cumprod", refuses_results="b", shares="self=same")
def cumprod(self: jax.Array, dim: int, *, dtype=None, outs) -> jax.Array:
    x = _wide(self, outs[0].dtype)
    return lax.cumprod(x, canonical_dim(dim, x.ndim)) if x.ndim else x


@lower("aten::logcumsumexp", refuses="biu", shares="self=same")
@lower("aten::_logcumsumexp")
def logcumsumexp(self: jax.Array, dim: int) -> jax.Array:
    if is_complex(self.dtype):
        raise Unsupported("logcumsumexp of complex numbers")
    # Its gradient subtracts large results: with sums in float32 it was off by 0.4 %.
    x = convert(
        self, np.dtype(np.float64 if self.dtype == np.float32 else opmath_dtype(self.dtype))
    )
    return lax.cumlogsumexp(x, canonical_dim(dim, x.ndim)) if x.ndim else x


def _running(x: jax.Array, dim: int, beats: Callable) -> tuple[jax.Array, jax.Array]:
    """Running extreme and the position of its last occurrence; NaN is kept after its first one."""
    if x.ndim == 0:
        return x, lax.full((), 0, np.int64)
    dim = canonical_dim(dim, x.ndim)
    positions = lax.broadcasted_iota(index_dtype(x.shape[dim]), x.shape, dim)

    def later(a, b):
        (a_value, a_index), (b_value, b_index) = a, b
        b_wins = beats(b_value, a_value)
        if is_float(x.dtype):
            b_wins = lax.bitwise_or(b_wins, lax.ne(b_value, b_value))
        return lax.select(b_wins, b_value, a_value), lax.select(b_wins, b_index, a_index)

    values, positions = lax.associative_scan(later, (x, positions), axis=dim)
    return values, convert(positions, np.dtype(np.int64))


@lower("aten::cummax", refuses="c")
def cummax(self: jax.Array, dim: int) -> tuple[jax.Array, jax.Array]:
    return _running(self, dim, lax.ge)


@lower("aten::cummin", refuses="c")
def cummin(self: jax.Array, dim: int) -> tuple[jax.Array, jax.Array]:
    return _running(self, dim, lax.le)
