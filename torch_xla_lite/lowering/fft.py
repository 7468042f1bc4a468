"""Discrete Fourier transforms.

`normalization`: 0 none, 1 by the square root of the length, 2 by the length.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base.promotion import opmath
from torch_xla_lite.lowering.base.registry import lower

_COMPLEX = {np.dtype(np.float32): np.complex64, np.dtype(np.float64): np.complex128}


def _scaled(x: jax.Array, count: int, normalization: int) -> jax.Array:
    factor = {0: 1.0, 1: 1 / math.sqrt(count), 2: 1 / count}[normalization]
    return x if factor == 1 else _times(x, factor)


def _times(x: jax.Array, factor: float) -> jax.Array:
    """A product with a real number. With a complex one, infinity would become NaN."""
    if x.dtype.kind != "c":
        return lax.mul(x, lax.full_like(x, factor))
    return lax.complex(_times(lax.real(x), factor), _times(lax.imag(x), factor))


def _transform(x: jax.Array, dims: list[int], forward: bool) -> jax.Array:
    """Unnormalised transform, one dimension at a time: XLA transforms only the last dimension."""
    kind = lax.FftType.FFT if forward else lax.FftType.IFFT
    for dim in dims:
        moved = jnp.moveaxis(x, dim, -1)
        length = moved.shape[-1]
        moved = lax.fft(moved, kind, (length,))
        moved = moved if forward else _times(moved, length)
        x = jnp.moveaxis(moved, -1, dim)
    return x


def _length(x: jax.Array, dims: list[int]) -> int:
    return math.prod(x.shape[dim] for dim in dims)


@lower("aten::_fft_c2c")
def fft_c2c(self: jax.Array, dim: list[int], normalization: int, forward: bool) -> jax.Array:
    return _scaled(_transform(self, dim, forward), _length(self, dim), normalization)


@lower("aten::_fft_r2c")
def fft_r2c(self: jax.Array, dim: list[int], normalization: int, onesided: bool) -> jax.Array:
    count = _length(self, dim)
    self = opmath(self)
    if not onesided:
        x = lax.convert_element_type(self, _COMPLEX[self.dtype])
        return _scaled(_transform(x, dim, True), count, normalization)
    *others, last = dim
    moved = jnp.moveaxis(self, last, -1)
    half = lax.fft(moved, lax.FftType.RFFT, (moved.shape[-1],))
    x = jnp.moveaxis(half, -1, last)
    return _scaled(_transform(x, others, True), count, normalization)


@lower("aten::_fft_c2r")
def fft_c2r(self: jax.Array, dim: list[int], normalization: int, last_dim_size: int) -> jax.Array:
    *others, last = dim
    x = _transform(self, others, False)
    moved = lax.fft(jnp.moveaxis(x, last, -1), lax.FftType.IRFFT, (last_dim_size,))
    moved = _times(moved, last_dim_size)
    count = _length(self, others) * last_dim_size
    return _scaled(jnp.moveaxis(moved, -1, last), count, normalization)
