"""Views as functions of the viewed tensor, and their inverses for writing through them.

    view:   y = x.t()[0]        ->  select(t(x), 0, 0)
    write:  y.fill_(5)          ->  x' = t⁻¹(select_write(t(x), full(5), 0, 0))

There are no strides here: a tensor is its logical, row-major value. If a view has no inverse, the
value is scattered to the positions of its elements (`registry.write_view`).
"""

import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base import ffi, merged_dims, target
from torch_xla_lite.lowering.base.promotion import (
    are_known,
    canonical_dim,
    convert,
    index_dtype,
    is_complex,
)
from torch_xla_lite.lowering.base.registry import Unsupported, lower, writes

Index = int | jax.Array


def _overwritten(base: jax.Array, value: jax.Array, dim: int, start: Index) -> jax.Array:
    """`base` with `value` from `start` on along `dim`.

    XLA's CPU compiler fuses the computation of `value` with the write, which runs in place. If it
    reads `base`, it then reads elements that are overwritten (github.com/openxla/xla/issues/49176):
    `x[1:] = x[:-1].clone()` gave the first element everywhere. A stored value is not fused.
    """
    if target.fuses_too_much():
        value = ffi.store(value)
    zero = np.int64(0)
    starts = [start if i == dim else zero for i in range(base.ndim)]
    return lax.dynamic_update_slice(base, value, starts)


# Reshapes.


@lower("aten::view", "aten::_unsafe_view", dense_operand=True)
@lower(
    "aten::view_copy",
    "aten::_reshape_copy",
    "aten::_reshape_alias",
    "aten::_reshape_alias_copy",
    "aten::squeeze",
    "aten::squeeze_copy",
    "aten::squeeze.dim",
    "aten::squeeze_copy.dim",
    "aten::squeeze.dims",
    "aten::squeeze_copy.dims",
    "aten::unsqueeze",
    "aten::unsqueeze_copy",
)
def view(self: jax.Array, *args: object, outs) -> jax.Array:
    return merged_dims.reshape(self, outs[0].shape)


@writes(
    "aten::view",
    "aten::_unsafe_view",
    "aten::_reshape_alias",
    "aten::squeeze",
    "aten::squeeze.dim",
    "aten::squeeze.dims",
    "aten::unsqueeze",
)
def write_view(base: jax.Array, value: jax.Array, *args: object) -> jax.Array:
    return lax.reshape(value, base.shape)


@lower("aten::view.dtype", dense_operand=True)
@lower("aten::view_copy.dtype")
def view_dtype(self: jax.Array, dtype: np.dtype, *, outs) -> jax.Array:
    return _bitcast(self, outs[0].dtype)


def _bitcast(x: jax.Array, dtype: np.dtype) -> jax.Array:
    if x.dtype == dtype:
        return x
    if np.bool_ in (x.dtype, dtype) or is_complex(x.dtype) or is_complex(dtype):
        return _bitcast_uncommon(x, dtype)
    narrow, wide = x.dtype.itemsize, dtype.itemsize
    if wide > narrow:
        x = lax.reshape(x, (*x.shape[:-1], x.shape[-1] * narrow // wide, wide // narrow))
    if wide >= narrow:
        return lax.bitcast_convert_type(x, dtype)
    x = target.split_bits(x, dtype)
    return lax.reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1]))


def _bitcast_uncommon(x: jax.Array, dtype: np.dtype) -> jax.Array:
    if x.dtype == np.bool_:
        return _bitcast(lax.convert_element_type(x, np.uint8), dtype)
    if dtype == np.bool_:
        return lax.ne(_bitcast(x, np.dtype(np.uint8)), np.uint8(0))
    if is_complex(x.dtype):
        parts = jnp.stack([lax.real(x), lax.imag(x)], axis=-1)
        return _bitcast(lax.reshape(parts, (*x.shape[:-1], 2 * x.shape[-1])), dtype)
    part = np.dtype(np.float32 if dtype == np.complex64 else np.float64)
    parts = _bitcast(x, part)
    parts = lax.reshape(parts, (*parts.shape[:-1], parts.shape[-1] // 2, 2))
    return lax.complex(parts[..., 0], parts[..., 1])


@lower("aten::_neg_view", "aten::_neg_view_copy")
def neg_view(self: jax.Array) -> jax.Array:
    return lax.neg(self)


writes("aten::view.dtype")(lambda base, value, dtype: _bitcast(value, base.dtype))
writes("aten::view_as_real")(lambda base, value: lax.complex(value[..., 0], value[..., 1]))
writes("aten::view_as_complex")(lambda base, value: jnp.stack([value.real, value.imag], axis=-1))
writes("aten::_conj")(lambda base, value: lax.conj(value))
writes("aten::_neg_view")(lambda base, value: lax.neg(value))


@writes("aten::alias", "aten::detach", "aten::lift", "aten::lift_fresh", "aten::_fw_primal")
def write_alias(base: jax.Array, value: jax.Array, *args: object) -> jax.Array:
    return value


# Permutations.


@lower("aten::permute", "aten::permute_copy")
def permute(self: jax.Array, dims: list[int]) -> jax.Array:
    return lax.transpose(self, [canonical_dim(dim, self.ndim) for dim in dims])


@writes("aten::permute")
def write_permute(base: jax.Array, value: jax.Array, dims: list[int]) -> jax.Array:
    return lax.transpose(value, np.argsort([canonical_dim(dim, base.ndim) for dim in dims]))


@lower("aten::transpose.int", "aten::transpose_copy.int")
def transpose(self: jax.Array, dim0: int, dim1: int) -> jax.Array:
    if self.ndim == 0:
        return self
    order = list(range(self.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    transposed = lax.transpose(self, order)
    apart = merged_dims.of(self)
    if apart is None or order != [0, 2, 1]:
        return transposed
    leading = range(apart.ndim - 2)
    matrices = lax.transpose(apart, (*leading, apart.ndim - 1, apart.ndim - 2))
    return merged_dims.note(transposed, matrices)


@lower("aten::t", "aten::t_copy")
def t(self: jax.Array) -> jax.Array:
    return lax.transpose(self, tuple(reversed(range(self.ndim))))


writes("aten::transpose.int")(lambda base, value, dim0, dim1: transpose(value, dim0, dim1))
writes("aten::t")(lambda base, value: t(value))


# Broadcasting and overlapping views.


@lower("aten::expand", "aten::expand_copy")
def expand(self: jax.Array, size: list[int], *, implicit: bool = False, outs) -> jax.Array:
    shape = outs[0].shape
    offset = len(shape) - self.ndim
    return lax.broadcast_in_dim(self, shape, range(offset, len(shape)))


@lower("aten::as_strided", "aten::as_strided_copy", dense_operand=True)
def as_strided(
    self: jax.Array, size: list[int], stride: list[int], storage_offset: int | None = None
) -> jax.Array:
    apart = _apart(self, size, stride)
    box = _box(apart.shape, size, stride, storage_offset or 0)
    if box is not None:
        self = apart
        for dim, part in enumerate(box):
            self = _slice(self, dim, part.start, part.step, len(part))
        return lax.reshape(self, tuple(size))
    flat = lax.reshape(self, (self.size,))
    positions = strided_positions(size, stride, storage_offset, self.size)
    return flat.at[positions].get(mode="promise_in_bounds")


@writes("aten::as_strided")
def write_as_strided(
    base: jax.Array,
    value: jax.Array,
    size: list[int],
    stride: list[int],
    storage_offset: int | None = None,
) -> jax.Array | None:
    parts = [_apart(base, size, stride)]
    box = _box(parts[0].shape, size, stride, storage_offset or 0)
    if box is None:
        return None
    for dim, part in enumerate(box):
        parts.append(_slice(parts[-1], dim, part.start, part.step, len(part)))
    value = lax.reshape(value, parts.pop().shape)
    for dim, part in reversed([*enumerate(box)]):
        value = write_slice(parts.pop(), value, dim, part.start, None, part.step)
    return lax.reshape(value, base.shape)


def _apart(x: jax.Array, size: Sequence[int], stride: Sequence[int]) -> jax.Array:
    """A flat array with the dimensions of which a view has these strides, if it has any."""
    if not are_known(*x.shape, *size, *stride):
        return x
    steps = [x.size, *(step for n, step in zip(size, stride, strict=True) if n > 1)]
    pairs = [*itertools.pairwise(steps)]
    if x.ndim != 1 or any(inner == 0 or outer % inner for outer, inner in pairs):
        return x
    return lax.reshape(x, (*(outer // inner for outer, inner in pairs), steps[-1]))


def _box(
    shape: Sequence[int], size: Sequence[int], stride: Sequence[int], offset: Index
) -> list[range] | None:
    """The rows, columns, ... of a dense array that a strided view has, of which it is then a
    reshape; None if it is another one, or known at run time only. What autograd writes through a
    slice to is such a view. XLA would gather an array that devices share to take it by positions.
    """
    if not are_known(*shape, *size, *stride, offset) or 0 in (*shape, *size):
        return None
    box = []
    sizes = [(n, step) for n, step in zip(size, stride, strict=True) if n > 1]
    rest = math.prod(shape)
    for n in shape:
        rest //= n
        start, count, step = offset // rest % n, 1, 1
        if sizes and sizes[0][1] >= rest and sizes[0][1] % rest == 0:
            count, step = sizes[0][0], sizes.pop(0)[1] // rest
        if start + (count - 1) * step >= n:
            return None
        box.append(range(start, start + (count - 1) * step + 1, step))
    return None if sizes or offset >= math.prod(shape) else box


def strided_positions(
    size: Sequence[int], stride: Sequence[int], offset: Index | None, count: int
) -> jax.Array:
    """Places among `count` elements. Computed in the graph: as a constant they would be part of its
    text."""
    dtype = index_dtype(count)
    positions = lax.full(size, 0 if offset is None else offset, dtype)
    for dim, step in enumerate(stride):
        number = lax.broadcasted_iota(dtype, size, dim)
        positions = lax.add(positions, lax.mul(number, lax.full_like(number, step)))
    return positions


@lower("aten::as_strided_scatter", by_value=False)
def as_strided_scatter(
    self: jax.Array,
    src: jax.Array,
    size: list[int],
    stride: list[int],
    storage_offset: int | None = None,
) -> jax.Array:
    positions = strided_positions(size, stride, storage_offset, self.size).reshape(-1)
    flat = lax.reshape(self, (self.size,)).at[positions].set(convert(src, self.dtype).reshape(-1))
    return lax.reshape(flat, self.shape)


@lower("aten::unfold", "aten::unfold_copy")
def unfold(self: jax.Array, dimension: int, size: int, step: int) -> jax.Array:
    if self.ndim == 0:
        return jnp.broadcast_to(self, (size,))
    dim = canonical_dim(dimension, self.ndim)
    windows = (self.shape[dim] - size) // step + 1
    positions = strided_positions([windows, size], [step, 1], 0, self.shape[dim])
    taken = jnp.take(self, positions.reshape(-1), axis=dim, mode="clip")
    shape = (*self.shape[:dim], windows, size, *self.shape[dim + 1 :])
    return jnp.moveaxis(lax.reshape(taken, shape), dim + 1, -1)


@lower("aten::unfold_backward")
def unfold_backward(
    grad_in: jax.Array, input_sizes: list[int], dim: int, size: int, step: int
) -> jax.Array:
    if not input_sizes:
        return lax.reduce_sum(grad_in, (0,))
    dim = canonical_dim(dim, len(input_sizes))
    windows = grad_in.shape[dim]
    positions = strided_positions([windows, size], [step, 1], 0, input_sizes[dim]).reshape(-1)
    moved = jnp.moveaxis(jnp.moveaxis(grad_in, -1, dim + 1), (dim, dim + 1), (0, 1))
    moved = lax.reshape(moved, (windows * size, *moved.shape[2:]))
    rest = [length for i, length in enumerate(input_sizes) if i != dim]
    zeros = jnp.zeros((input_sizes[dim], *rest), grad_in.dtype)
    total = zeros.at[positions].add(moved, wrap_negative_indices=False)
    return jnp.moveaxis(total, 0, dim)


@lower("aten::diagonal", "aten::diagonal_copy")
def diagonal(self: jax.Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> jax.Array:
    return jnp.diagonal(self, offset, dim1, dim2)


@writes("aten::diagonal")
def write_diagonal(
    base: jax.Array, value: jax.Array, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> jax.Array:
    row, column = (
        strided_positions(value.shape[-1:], [1], first, base.size)
        for first in (max(-offset, 0), max(offset, 0))
    )
    moved = jnp.moveaxis(base, (dim1, dim2), (0, 1))
    moved = moved.at[row, column].set(
        jnp.moveaxis(value, -1, 0), unique_indices=True, wrap_negative_indices=False
    )
    return jnp.moveaxis(moved, (0, 1), (dim1, dim2))


@lower("aten::diagonal_scatter", refused_if="misfit_diagonal")
def diagonal_scatter(
    self: jax.Array, src: jax.Array, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> jax.Array:
    return write_diagonal(self, convert(src, self.dtype), offset, dim1, dim2)


# Slices. An index or start that is an array is known only at run time; it is in range and not
# negative.


@lower("aten::select.int", indexes=True)
@lower("aten::select_copy.int")
def select(self: jax.Array, dim: int, index: Index) -> jax.Array:
    dim = canonical_dim(dim, self.ndim)
    if isinstance(index, int):
        index = index + self.shape[dim] if index < 0 else index
        return lax.index_in_dim(self, index, dim, keepdims=False)
    return lax.dynamic_index_in_dim(self, index, dim, keepdims=False)


@writes("aten::select.int")
def write_select(base: jax.Array, value: jax.Array, dim: int, index: Index) -> jax.Array:
    dim = canonical_dim(dim, base.ndim)
    if isinstance(index, int) and index < 0:
        index += base.shape[dim]
    return _overwritten(base, lax.expand_dims(value, (dim,)), dim, index)


@lower("aten::select_scatter", indexes=True, refused_if="misfit_row")
def select_scatter(self: jax.Array, src: jax.Array, dim: int, index: Index) -> jax.Array:
    return write_select(self, convert(src, self.dtype), dim, index)


@lower("aten::select_backward", indexes=True, shape="select_backward")
def select_backward(
    grad_output: jax.Array, input_sizes: list[int], dim: int, index: Index
) -> jax.Array:
    dim = canonical_dim(dim, len(input_sizes))
    if not isinstance(index, int):
        zeros = lax.full(tuple(input_sizes), 0, grad_output.dtype)
        return write_select(zeros, grad_output, dim, index)
    index = index + input_sizes[dim] if index < 0 else index
    return slice_backward(
        lax.expand_dims(grad_output, (dim,)), input_sizes, dim, index, index + 1, 1
    )


def _clamped(position: Index | None, length: int, default: int) -> Index:
    if position is None:
        return default
    if not isinstance(position, int):
        return position
    if position < 0:
        position += length
    return min(max(position, 0), length)


@lower("aten::slice.Tensor", indexes=True)
@lower("aten::slice_copy.Tensor")
def slice_(
    self: jax.Array,
    dim: int = 0,
    start: Index | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    outs,
) -> jax.Array:
    dim = canonical_dim(dim, self.ndim)
    return _slice(self, dim, start, step, outs[0].shape[dim])


def _slice(x: jax.Array, dim: int, start: Index | None, step: int, length: int) -> jax.Array:
    first = _clamped(start, x.shape[dim], 0)
    if isinstance(first, int):
        first = min(first, x.shape[dim])
        limit = min(first + (length - 1) * step + 1, x.shape[dim]) if length else first
        return lax.slice_in_dim(x, first, limit, step, dim)
    if step == 1:
        return lax.dynamic_slice_in_dim(x, first, length, dim)
    positions = strided_positions([length], [step], first, x.shape[dim])
    return jnp.take(x, positions, axis=dim, mode="clip")


@writes("aten::slice.Tensor")
def write_slice(
    base: jax.Array,
    value: jax.Array,
    dim: int = 0,
    start: Index | None = None,
    end: int | None = None,
    step: int = 1,
) -> jax.Array:
    dim = canonical_dim(dim, base.ndim)
    if value.shape[dim] == 0:
        return base
    if value.shape == base.shape and step == 1:
        return value
    first = _clamped(start, base.shape[dim], 0)
    if step == 1:
        return _overwritten(base, value, dim, first)
    positions = strided_positions([value.shape[dim]], [step], first, base.shape[dim])
    moved = (
        jnp.moveaxis(base, dim, 0)
        .at[positions]
        .set(jnp.moveaxis(value, dim, 0), unique_indices=True, wrap_negative_indices=False)
    )
    return jnp.moveaxis(moved, 0, dim)


@lower("aten::slice_scatter", indexes=True, refused_if="foreign_slice")
def slice_scatter(
    self: jax.Array,
    src: jax.Array,
    dim: int = 0,
    start: Index | None = None,
    end: int | None = None,
    step: int = 1,
) -> jax.Array:
    dim = canonical_dim(dim, self.ndim)
    first = _clamped(start, self.shape[dim], 0)
    if isinstance(first, int):
        stop = max(first, _clamped(end, self.shape[dim], self.shape[dim]))
        length = len(range(first, stop, step))
        shape = tuple(length if i == dim else n for i, n in enumerate(self.shape))
        src = jnp.broadcast_to(src, shape)
    return write_slice(self, convert(src, self.dtype), dim, start, end, step)


@lower("aten::slice_backward", indexes=True, shape="slice_backward")
def slice_backward(
    grad_output: jax.Array,
    input_sizes: list[int],
    dim: int,
    start: Index,
    end: int | None,
    step: int,
) -> jax.Array:
    dim = canonical_dim(dim, len(input_sizes))
    first = _clamped(start, input_sizes[dim], 0)
    if not isinstance(first, int) or grad_output.shape[dim] == 0:
        zeros = lax.full(tuple(input_sizes), 0, grad_output.dtype)
        return write_slice(zeros, grad_output, dim, first, end, step)
    # A pad, which XLA fuses into what follows; updating zeros would be a copy.
    padding = [(0, 0, 0)] * grad_output.ndim
    spread = (grad_output.shape[dim] - 1) * step + 1
    padding[dim] = (first, input_sizes[dim] - first - spread, step - 1)
    return lax.pad(grad_output, np.array(0, grad_output.dtype), padding)


@lower("aten::slice_inverse")
def slice_inverse(*args: object) -> jax.Array:
    raise Unsupported("slice_inverse")


# Views with several outputs.


@lower("aten::split.Tensor", "aten::split_copy.Tensor", "aten::unsafe_split.Tensor")
def split(self: jax.Array, split_size: int, dim: int = 0) -> list[jax.Array]:
    dim = canonical_dim(dim, self.ndim)
    length = self.shape[dim]
    if length == 0 or split_size == 0:
        return [self]
    return [
        lax.slice_in_dim(self, start, min(start + split_size, length), 1, dim)
        for start in range(0, length, split_size)
    ]


@lower("aten::split_with_sizes", "aten::split_with_sizes_copy", "aten::unsafe_split_with_sizes")
def split_with_sizes(self: jax.Array, split_sizes: list[int], dim: int = 0) -> list[jax.Array]:
    stops = np.cumsum(split_sizes)
    return [
        lax.slice_in_dim(self, int(stop) - size, int(stop), 1, canonical_dim(dim, self.ndim))
        for size, stop in zip(split_sizes, stops, strict=True)
    ]


@lower("aten::unbind.int", "aten::unbind_copy.int")
def unbind(self: jax.Array, dim: int = 0) -> list[jax.Array]:
    dim = canonical_dim(dim, self.ndim)
    return [lax.index_in_dim(self, i, dim, keepdims=False) for i in range(self.shape[dim])]
