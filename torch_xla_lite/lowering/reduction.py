"""Reductions over dimensions.

As in torch, 16-bit floats are summed in float32, integers and bool in int64. `keepdim` is a reshape
at the end.
"""

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base import target
from torch_xla_lite.lowering.base.promotion import (
    Number,
    canonical_dim,
    canonical_dims,
    convert,
    index_dtype,
    is_complex,
    is_float,
    is_integral,
    operands,
    opmath,
    opmath_dtype,
    real_dtype,
)
from torch_xla_lite.lowering.base.registry import Unsupported, lower
from torch_xla_lite.lowering.binary import to_bool

Dims = int | list[int] | None


def restore_dims(x: jax.Array, dims: tuple[int, ...], keepdim: bool) -> jax.Array:
    """The reduced `x`; with `keepdim`, the reduced dimensions are restored with size 1."""
    return lax.expand_dims(x, dims) if keepdim and dims else x


def sum_over(x: jax.Array, dims: tuple[int, ...], keepdim: bool = False) -> jax.Array:
    return restore_dims(lax.reduce_sum(x, dims) if dims else x, dims, keepdim)


def count_over(x: jax.Array, dims: tuple[int, ...]) -> int:
    """How many elements are reduced to one; a symbol if a size is one, as in exported programs."""
    return math.prod(x.shape[dim] for dim in dims)


def divided_by_count(total: jax.Array, count: int) -> jax.Array:
    """A sum divided by a number of elements, which may be a symbol."""
    divisor = count if isinstance(count, Number) else convert(jnp.asarray(count), total.dtype)
    return target.divide(total, lax.full_like(total, divisor))


@lower("aten::sum.dim_IntList", any_strides=True)
@lower("aten::sum", any_strides=True, shape="sum")
def sum_(
    self: jax.Array, dim: Dims = None, keepdim: bool = False, *, dtype=None, outs
) -> jax.Array:
    x, dims = convert(self, opmath_dtype(outs[0].dtype)), canonical_dims(dim, self.ndim)
    if is_integral(x.dtype) and np.bool_ in (self.dtype, x.dtype):
        return restore_dims(_count_true(to_bool(self), dims), dims, keepdim)
    return sum_over(x, dims, keepdim)


def _count_true(x: jax.Array, dims: tuple[int, ...]) -> jax.Array:
    dtype = index_dtype(count_over(x, dims))
    return convert(sum_over(convert(x, dtype), dims), np.dtype(np.int64))


@lower("aten::nansum", refuses="c")
def nansum(
    self: jax.Array, dim: Dims = None, keepdim: bool = False, *, dtype=None, outs
) -> jax.Array:
    x = convert(self, opmath_dtype(outs[0].dtype))
    x = lax.select(lax.ne(x, x), lax.full_like(x, 0), x)
    return sum_over(x, canonical_dims(dim, x.ndim), keepdim)


@lower("aten::mean.dim", any_strides=True)
@lower("aten::mean", any_strides=True, shape="mean")
def mean(
    self: jax.Array, dim: Dims = None, keepdim: bool = False, *, dtype=None, outs
) -> jax.Array:
    x = convert(self, opmath_dtype(outs[0].dtype))
    return mean_over(x, canonical_dims(dim, x.ndim), keepdim)


def mean_over(x: jax.Array, dims: tuple[int, ...], keepdim: bool = False) -> jax.Array:
    total = sum_over(x, dims, keepdim)
    return divided_by_count(total, count_over(x, dims))


@lower("aten::prod", "aten::prod.dim_int")
def prod(
    self: jax.Array, dim: int | None = None, keepdim: bool = False, *, dtype=None, outs
) -> jax.Array:
    x = convert(self, opmath_dtype(outs[0].dtype))
    dims = canonical_dims(dim, x.ndim)
    return restore_dims(lax.reduce_prod(x, dims) if dims else x, dims, keepdim)


def _extreme(x: jax.Array, dims: tuple[int, ...], keepdim: bool, largest: bool) -> jax.Array:
    reduce = lax.reduce_max if largest else lax.reduce_min
    return restore_dims(reduce(x, dims) if dims else x, dims, keepdim)


@lower("aten::amax", refuses="c")
def amax(self: jax.Array, dim: Dims = None, keepdim: bool = False) -> jax.Array:
    return _extreme(self, canonical_dims(dim, self.ndim), keepdim, True)


@lower("aten::amin", refuses="c")
def amin(self: jax.Array, dim: Dims = None, keepdim: bool = False) -> jax.Array:
    return _extreme(self, canonical_dims(dim, self.ndim), keepdim, False)


@lower("aten::max", refuses="c", elements="self", shape="extreme")
def max_(self: jax.Array) -> jax.Array:
    return amax(self)


@lower("aten::min", refuses="c", elements="self", shape="extreme")
def min_(self: jax.Array) -> jax.Array:
    return amin(self)


@lower("aten::aminmax", refuses="c")
@lower("aten::_aminmax", "aten::_aminmax.dim")
def aminmax(
    self: jax.Array, dim: int | None = None, keepdim: bool = False
) -> tuple[jax.Array, jax.Array]:
    return amin(self, dim, keepdim), amax(self, dim, keepdim)


def extreme_with_index(x: jax.Array, dim: int, largest: bool) -> tuple[jax.Array, jax.Array]:
    """Value and position of the extreme along `dim`; NaN wins over all, then the first of equals.

    This is one variadic reduction; two separate ones would read the input twice.
    """
    if x.shape[dim] == 0:
        raise Unsupported("the extreme of nothing")
    compare = lax.gt if largest else lax.lt
    if x.dtype == np.bool_:
        value, index = extreme_with_index(convert(x, np.dtype(np.int8)), dim, largest)
        return to_bool(value), index
    worst = _worst(x.dtype, largest)
    dtype = index_dtype(x.shape[dim])
    indices = lax.broadcasted_iota(dtype, x.shape, dim)

    def better(a, b):
        (a_value, a_index), (b_value, b_index) = a, b
        a_wins = compare(a_value, b_value)
        equal = lax.eq(a_value, b_value)
        if is_float(x.dtype):
            a_nan, b_nan = lax.ne(a_value, a_value), lax.ne(b_value, b_value)
            a_wins = lax.bitwise_or(a_wins, lax.bitwise_and(a_nan, lax.bitwise_not(b_nan)))
            equal = lax.bitwise_or(equal, lax.bitwise_and(a_nan, b_nan))
        first = lax.bitwise_and(equal, lax.lt(a_index, b_index))
        a_wins = lax.bitwise_or(a_wins, first)
        return lax.select(a_wins, a_value, b_value), lax.select(a_wins, a_index, b_index)

    # The neutral index is the largest one, so that an element equal to `worst` still wins over the
    # neutral pair.
    init = (np.array(worst, x.dtype), np.array(np.iinfo(dtype).max, dtype))
    value, index = lax.reduce((x, indices), init, better, (dim,))
    return value, convert(index, np.dtype(np.int64))


# jax has no derivative of a reduction of values and positions.
@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _differentiable_extreme(x: jax.Array, dim: int, largest: bool) -> tuple[jax.Array, jax.Array]:
    return extreme_with_index(x, dim, largest)


@_differentiable_extreme.defjvp
def _tangent_of_extreme(
    dim: int, largest: bool, primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, np.ndarray]]:
    value, index = _differentiable_extreme(primals[0], dim, largest)
    places = lax.expand_dims(index, (dim,))
    tangent = jnp.take_along_axis(tangents[0], places, axis=dim, mode="clip")
    no_tangent = np.zeros(index.shape, jax.dtypes.float0)
    return (value, index), (lax.squeeze(tangent, (dim,)), no_tangent)


def _worst(dtype: np.dtype, largest: bool) -> float | int:
    if is_integral(dtype):
        return int(np.iinfo(dtype).min if largest else np.iinfo(dtype).max)
    return -np.inf if largest else np.inf


def _indexed(self: jax.Array, dim: int, keepdim: bool, largest: bool):
    if self.ndim == 0:
        return self, lax.full((), 0, np.int64)
    dim = dim % self.ndim
    find = _differentiable_extreme if target.is_portable() else extreme_with_index
    value, index = find(self, dim, largest)
    return restore_dims(value, (dim,), keepdim), restore_dims(index, (dim,), keepdim)


@lower("aten::max.dim", refuses="c")
def max_dim(self: jax.Array, dim: int, keepdim: bool = False) -> tuple[jax.Array, jax.Array]:
    return _indexed(self, dim, keepdim, True)


@lower("aten::min.dim", refuses="c")
def min_dim(self: jax.Array, dim: int, keepdim: bool = False) -> tuple[jax.Array, jax.Array]:
    return _indexed(self, dim, keepdim, False)


def _position(self: jax.Array, dim: int | None, keepdim: bool, largest: bool) -> jax.Array:
    if dim is not None:
        return _indexed(self, dim, keepdim, largest)[1]
    _, index = _indexed(lax.reshape(self, (self.size,)), 0, False, largest)
    return lax.reshape(index, (1,) * self.ndim) if keepdim else index


@lower("aten::argmax", refuses="bc")
def argmax(self: jax.Array, dim: int | None = None, keepdim: bool = False) -> jax.Array:
    return _position(self, dim, keepdim, True)


@lower("aten::argmin", refuses="bc")
def argmin(self: jax.Array, dim: int | None = None, keepdim: bool = False) -> jax.Array:
    return _position(self, dim, keepdim, False)


def _reduce_bools(
    reduce: Callable[[jax.Array, tuple[int, ...]], jax.Array],
) -> Callable[..., jax.Array]:
    def lowering(self, dim=None, keepdim=False):
        x = to_bool(self)
        dims = canonical_dims(dim, x.ndim)
        return restore_dims(reduce(x, dims) if dims else x, dims, keepdim)

    return lowering


for _name, _reduce in (("any", lax.reduce_or), ("all", lax.reduce_and)):
    _lowering = _reduce_bools(_reduce)
    lower(f"aten::{_name}", f"aten::{_name}.dim", f"aten::{_name}.dims")(_lowering)
    lower(f"aten::_is_{_name}_true", shape="truth")(_lowering)


@lower("aten::count_nonzero", "aten::count_nonzero.dim_IntList")
def count_nonzero(self: jax.Array, dim: Dims = None) -> jax.Array:
    return _count_true(to_bool(self), canonical_dims(dim, self.ndim))


def moments(
    x: jax.Array, dims: tuple[int, ...], correction: float, keepdim: bool
) -> tuple[jax.Array, jax.Array]:
    """Variance and mean in two passes over `x`."""
    if is_complex(x.dtype):
        real, center = moments(lax.real(x), dims, correction, keepdim)
        imaginary, imaginary_center = moments(lax.imag(x), dims, correction, keepdim)
        return lax.add(real, imaginary), lax.complex(center, imaginary_center)
    center = mean_over(x, dims, True)
    offset = lax.sub(x, jnp.broadcast_to(center, x.shape))
    total = sum_over(lax.mul(offset, offset), dims, keepdim)
    freedom = count_over(x, dims) - correction
    # The least size of a symbol is 2 in programs of torch.export.
    variance = divided_by_count(total, max(0, freedom) if isinstance(freedom, Number) else freedom)
    return variance, lax.reshape(center, total.shape)


def _var_mean(self, dim, correction, keepdim):
    x = opmath(self)
    return moments(x, canonical_dims(dim, x.ndim), 1 if correction is None else correction, keepdim)


@lower("aten::var.correction", constants=True, refuses="biu", shape="variance")
def var(
    self: jax.Array, dim: Dims = None, *, correction: Number | None = None, keepdim: bool = False
) -> jax.Array:
    return _var_mean(self, dim, correction, keepdim)[0]


@lower("aten::std.correction", constants=True, refuses="biu", shape="variance")
def std(
    self: jax.Array, dim: Dims = None, *, correction: Number | None = None, keepdim: bool = False
) -> jax.Array:
    return _root(_var_mean(self, dim, correction, keepdim)[0])


@lower("aten::var_mean.correction", constants=True, refuses="biu", shape="variance_and_mean")
def var_mean(
    self: jax.Array, dim: Dims = None, *, correction: Number | None = None, keepdim: bool = False
) -> tuple[jax.Array, jax.Array]:
    return _var_mean(self, dim, correction, keepdim)


@lower("aten::std_mean.correction", constants=True, refuses="biu", shape="variance_and_mean")
def std_mean(
    self: jax.Array, dim: Dims = None, *, correction: Number | None = None, keepdim: bool = False
) -> tuple[jax.Array, jax.Array]:
    variance, center = _var_mean(self, dim, correction, keepdim)
    return _root(variance), center


def _root(variance: jax.Array) -> jax.Array:
    """The square root, with a gradient of 0 at 0, as torch has it for standard deviations."""
    if not target.is_portable():
        return lax.sqrt(variance)
    is_zero = variance == 0
    return jnp.where(is_zero, 0, lax.sqrt(jnp.where(is_zero, 1, variance)))


@lower("aten::logsumexp", shape="logsumexp")
def logsumexp(self: jax.Array, dim: Dims, keepdim: bool = False, *, outs) -> jax.Array:
    x = convert(self, opmath_dtype(outs[0].dtype))
    if is_complex(x.dtype):
        raise Unsupported("logsumexp of complex numbers")
    dims = canonical_dims(dim, x.ndim)
    if not dims:
        return x
    if x.size == 0:
        return restore_dims(lax.log(sum_over(lax.exp(x), dims)), dims, keepdim)
    top = lax.reduce_max(x, dims)
    top = lax.select(lax.lt(lax.abs(top), lax.full_like(top, np.inf)), top, lax.full_like(top, 0))
    shifted = lax.exp(lax.sub(x, jnp.broadcast_to(lax.expand_dims(top, dims), x.shape)))
    return restore_dims(lax.add(lax.log(lax.reduce_sum(shifted, dims)), top), dims, keepdim)


def vector_norm(x: jax.Array, ord: Number, dim: Dims, keepdim: bool) -> jax.Array:
    """The p-norm over `dim`, computed in at least float32."""
    has_powers = ord not in (0, 1, np.inf, -np.inf)
    if target.is_portable() and has_powers:
        return _differentiable_norm(opmath(x), ord, dim, keepdim)
    return _vector_norm(opmath(x), ord, dim, keepdim)


def _vector_norm(x: jax.Array, ord: Number, dim: Dims, keepdim: bool) -> jax.Array:
    size = lax.abs(x)
    dims = canonical_dims(dim, x.ndim)
    if ord == 2:
        square = lax.mul(size, size) if is_complex(x.dtype) else lax.mul(x, x)
        return lax.sqrt(sum_over(square, dims, keepdim))
    if ord == 1:
        return sum_over(size, dims, keepdim)
    if ord == 0:
        return sum_over(convert(to_bool(x), real_dtype(x.dtype)), dims, keepdim)
    if ord in (np.inf, -np.inf):
        return _extreme(size, dims, keepdim, ord > 0)
    total = sum_over(lax.pow(size, lax.full_like(size, ord)), dims, keepdim)
    return lax.pow(total, lax.full_like(total, 1 / ord))


# At zero, the derivatives of roots and powers are no numbers; torch takes a subgradient there.
_differentiable_norm = jax.custom_jvp(_vector_norm, nondiff_argnums=(1, 2, 3))


@_differentiable_norm.defjvp
def _tangent_of_norm(
    ord: float, dim: Dims, keepdim: bool, primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[jax.Array, jax.Array]:
    (x,), (tangent,) = primals, tangents
    norm = _differentiable_norm(x, ord, dim, True)
    is_smooth = (x != 0) & (norm != 0)
    direction = jnp.where(is_smooth, x, 1)
    size = jnp.abs(direction)
    slope = (size / jnp.where(norm != 0, norm, 1)) ** (ord - 1)
    gradient = jnp.where(is_smooth, direction / size * slope, 0)
    dims = canonical_dims(dim, x.ndim)
    moved = sum_over(jnp.real(gradient.conj() * tangent), dims, keepdim)
    return jnp.reshape(norm, moved.shape), moved


@lower("aten::linalg_vector_norm", constants=True)
def linalg_vector_norm(
    self: jax.Array, ord: Number = 2, dim: Dims = None, keepdim: bool = False, *, dtype=None
) -> jax.Array:
    return vector_norm(self if dtype is None else convert(self, dtype), ord, dim, keepdim)


@lower("aten::norm.Scalar", "aten::norm.ScalarOpt_dim", constants=True)
def norm(
    self: jax.Array, p: Number | None = 2, dim: Dims = None, keepdim: bool = False
) -> jax.Array:
    return vector_norm(self, 2 if p is None else p, dim, keepdim)


@lower("aten::norm.ScalarOpt_dim_dtype", constants=True)
def norm_dtype(
    self: jax.Array, p: Number | None, dim: Dims, keepdim: bool, *, dtype: np.dtype
) -> jax.Array:
    return vector_norm(convert(self, dtype), 2 if p is None else p, dim, keepdim)


@lower("aten::norm.ScalarOpt_dtype", constants=True)
def norm_all_dtype(self: jax.Array, p: Number | None, *, dtype: np.dtype) -> jax.Array:
    return vector_norm(convert(self, dtype), 2 if p is None else p, None, False)


@lower("aten::trace", refuses="b")
def trace(self: jax.Array, *, outs) -> jax.Array:
    return jnp.trace(convert(self, outs[0].dtype))


@lower("aten::renorm", constants=True, refuses="biu", shares="self=same")
def renorm(self: jax.Array, p: Number, dim: int, maxnorm: Number) -> jax.Array:
    x = opmath(self)
    dim = canonical_dim(dim, x.ndim)
    rest = tuple(i for i in range(x.ndim) if i != dim)
    size = vector_norm(x, p, list(rest), True)
    factor = jnp.where(size > maxnorm, maxnorm / (size + 1e-7), jnp.ones_like(size))
    return lax.mul(x, convert(jnp.broadcast_to(factor, x.shape), x.dtype))


@lower("aten::dist", constants=True)
def dist(self: jax.Array, other: jax.Array, p: Number = 2) -> jax.Array:
    return vector_norm(lax.sub(*operands(self, other)), p, None, False)
