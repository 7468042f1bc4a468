"""Rearranges tensors: joining, repeating, reordering, padding and cutting out triangles.

The gradient of a padding is its transpose, from `jax.linear_transpose`.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base.checks import check
from torch_xla_lite.lowering.base.promotion import (
    Operand,
    canonical_dim,
    canonical_dims,
    convert,
    opmath,
)
from torch_xla_lite.lowering.base.registry import lower


@lower("aten::cat", shares="tensors=nothing", any_strides=True)
def cat(tensors: list[jax.Array], dim: int = 0, *, outs) -> jax.Array:
    # torch skips empty 1-d tensors, whatever the rank of the others.
    parts = [convert(x, outs[0].dtype) for x in tensors if x.shape != (0,)]
    if not parts:
        return lax.full(outs[0].shape, 0, outs[0].dtype)
    if len(parts) == 1:
        return parts[0]
    return lax.concatenate(parts, canonical_dim(dim, len(outs[0].shape)))


@lower("aten::stack", shares="tensors=nothing", shape="stack")
@lower("aten::_stack")
def stack(tensors: list[jax.Array], dim: int = 0, *, outs) -> jax.Array:
    dim = canonical_dim(dim, len(outs[0].shape))
    parts = [lax.expand_dims(convert(x, outs[0].dtype), (dim,)) for x in tensors]
    return parts[0] if len(parts) == 1 else lax.concatenate(parts, dim)


@lower("aten::repeat", shape="repeat")
def repeat(self: jax.Array, repeats: list[int]) -> jax.Array:
    return jnp.tile(lax.reshape(self, (1,) * (len(repeats) - self.ndim) + self.shape), repeats)


@lower("aten::repeat_interleave.Tensor")
def repeat_interleave(repeats: jax.Array, *, output_size: int | None = None, outs) -> jax.Array:
    positions = lax.iota(np.int64, repeats.shape[0])
    size = outs[0].shape[0]
    message = f"output_size is {size}, which is not the sum of the repeats"
    check(jnp.sum(repeats) != size, message, RuntimeError)
    return jnp.repeat(positions, repeats, total_repeat_length=size)


@lower("aten::flip", shape="flip")
def flip(self: jax.Array, dims: list[int]) -> jax.Array:
    return lax.rev(self, canonical_dims(dims, self.ndim)) if dims and self.ndim else self


@lower("aten::roll", shape="roll")
def roll(self: jax.Array, shifts: list[int], dims: list[int] | None = None) -> jax.Array:
    if not dims:
        flat = lax.reshape(self, (self.size,))
        return lax.reshape(roll(flat, shifts, [0]), self.shape)
    x = self
    for shift, dim in zip(shifts, dims, strict=True):
        dim = canonical_dim(dim, x.ndim)
        cut = -shift % x.shape[dim] if x.shape[dim] else 0
        if cut:
            parts = lax.slice_in_dim(x, cut, None, 1, dim), lax.slice_in_dim(x, 0, cut, 1, dim)
            x = lax.concatenate(parts, dim)
    return x


def _distance_from_diagonal(x: jax.Array) -> jax.Array:
    row = lax.broadcasted_iota(np.int32, x.shape, x.ndim - 2)
    return lax.sub(lax.broadcasted_iota(np.int32, x.shape, x.ndim - 1), row)


def _clipped(diagonal: int, x: jax.Array) -> int:
    """The diagonal, or one outside of the matrix: distances are int32."""
    return max(-x.shape[-2], min(diagonal, x.shape[-1]))


@lower("aten::tril")
def tril(self: jax.Array, diagonal: int = 0) -> jax.Array:
    distance = _distance_from_diagonal(self)
    inside = lax.le(distance, lax.full_like(distance, _clipped(diagonal, self)))
    return lax.select(inside, self, lax.full_like(self, 0))


@lower("aten::triu")
def triu(self: jax.Array, diagonal: int = 0) -> jax.Array:
    distance = _distance_from_diagonal(self)
    inside = lax.ge(distance, lax.full_like(distance, _clipped(diagonal, self)))
    return lax.select(inside, self, lax.full_like(self, 0))


# Padding. torch lists (before, after) from the last dimension backwards.


def _margins(pad: list[int], ndim: int) -> list[tuple[int, int]]:
    margins = [(0, 0)] * ndim
    for i in range(len(pad) // 2):
        margins[ndim - 1 - i] = (pad[2 * i], pad[2 * i + 1])
    return margins


@lower("aten::constant_pad_nd")
def constant_pad_nd(self: jax.Array, pad: list[int], value: Operand = 0) -> jax.Array:
    margins = [(low, high, 0) for low, high in _margins(pad, self.ndim)]
    return lax.pad(self, convert(value, self.dtype), margins)


def _pad_positions(size: int, low: int, high: int, mode: str) -> jax.Array:
    """Computed in the graph: as a constant those of a signal would be part of its text."""
    places = lax.iota(np.int64, low + size + high) - low
    if mode == "replicate":
        return places.clip(0, size - 1)
    places = lax.abs(places)
    return lax.min(places, 2 * (size - 1) - places)


def _pad_by_index(x: jax.Array, padding: list[int], mode: str) -> jax.Array:
    for dim, (low, high) in enumerate(_margins(padding, x.ndim)):
        if low or high:
            x = jnp.take(x, _pad_positions(x.shape[dim], low, high, mode), axis=dim, mode="clip")
    return x


def _register_padding(mode: str, name: str, rank: int) -> None:
    def forward(self, padding):
        return _pad_by_index(self, padding, mode)

    def backward(grad_output, self, padding):
        grad = opmath(grad_output)
        shape = jax.ShapeDtypeStruct(self.shape, grad.dtype)
        pad: Callable = lambda x: _pad_by_index(x, padding, mode)  # noqa: E731
        return jax.linear_transpose(pad, shape)(grad)[0]

    lower(f"aten::{name}_pad{rank}d", refuses="b")(forward)
    lower(f"aten::{name}_pad{rank}d_backward")(backward)


for _rank in (1, 2, 3):
    _register_padding("reflect", "reflection", _rank)
    _register_padding("replicate", "replication", _rank)


# Unfolding images into columns and back.


def _columns(
    x: jax.Array, kernel: list[int], dilation: list[int], padding: list[int], stride: list[int]
) -> jax.Array:
    """[batch, channels, height, width] -> [batch, channels · window, places]."""
    margins = [(0, 0, 0), (0, 0, 0), *((p, p, 0) for p in padding)]
    x = lax.pad(x, np.array(0, x.dtype), margins)
    counts = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, d, s in zip(x.shape[2:], kernel, dilation, stride, strict=True)
    ]
    # Constants: a gather that computes its indices takes 1.3 times as long.
    rows, columns = (
        (np.arange(k)[:, None] * d + np.arange(count) * s).astype(np.int32)
        for k, count, d, s in zip(kernel, counts, dilation, stride, strict=True)
    )
    taken = x[:, :, rows[:, None, :, None], columns[None, :, None, :]]
    return lax.reshape(taken, (*x.shape[:1], x.shape[1] * math.prod(kernel), math.prod(counts)))


@lower("aten::im2col", refuses="iu", refused_if="negative_padding")
def im2col(
    self: jax.Array,
    kernel_size: list[int],
    dilation: list[int],
    padding: list[int],
    stride: list[int],
    *,
    outs,
) -> jax.Array:
    x = self if self.ndim == 4 else self[None]
    return lax.reshape(_columns(x, kernel_size, dilation, padding, stride), outs[0].shape)


@lower("aten::col2im", refuses="iu")
def col2im(
    self: jax.Array,
    output_size: list[int],
    kernel_size: list[int],
    dilation: list[int],
    padding: list[int],
    stride: list[int],
    *,
    outs,
) -> jax.Array:
    if self.dtype == np.bool_:  # Only floats have a transpose.
        self = convert(self, np.dtype(np.float32))
    columns = self if self.ndim == 3 else self[None]
    channels = columns.shape[1] // math.prod(kernel_size)
    image = jax.ShapeDtypeStruct((columns.shape[0], channels, *output_size), self.dtype)
    unfold: Callable = lambda x: _columns(x, kernel_size, dilation, padding, stride)  # noqa: E731
    return lax.reshape(jax.linear_transpose(unfold, image)(columns)[0], outs[0].shape)
