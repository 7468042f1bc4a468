"""Pointwise functions of three operands: selection, clamping, interpolation, multiply-adds."""

import functools
from collections.abc import Callable

import jax
from jax import lax

from torch_xla_lite.lowering.base.promotion import (
    Operand,
    broadcast,
    convert,
    full,
    is_number,
    operands,
    opmath_dtype,
)
from torch_xla_lite.lowering.base.registry import lower
from torch_xla_lite.lowering.binary import to_bool


@lower("aten::where.self", casts_numbers=True, shape="where")
def where(condition: jax.Array, self: Operand, other: Operand, *, outs) -> jax.Array:
    a, b = operands(self, other, dtype=outs[0].dtype, shape=outs[0].shape)
    return lax.select(broadcast(to_bool(condition), outs[0].shape), a, b)


@lower("aten::masked_fill.Tensor", shares="mask=same")
@lower("aten::masked_fill.Scalar", shares="mask=same", shape="masked_fill")
def masked_fill(self: jax.Array, mask: jax.Array, value: Operand, *, outs) -> jax.Array:
    shape = outs[0].shape
    filled = full(shape, value, self.dtype)
    return lax.select(broadcast(to_bool(mask), shape), filled, broadcast(self, shape))


@lower("aten::clamp", refuses="c")
@lower("aten::clamp.Tensor", refuses="bc")
def clamp(
    self: Operand, min: Operand | None = None, max: Operand | None = None, *, outs
) -> jax.Array:
    dtype, shape = outs[0].dtype, outs[0].shape
    x = broadcast(convert(self, dtype), shape)
    if min is not None:
        x = lax.max(x, full(shape, min, dtype))
    return x if max is None else lax.min(x, full(shape, max, dtype))


@lower("aten::lerp.Scalar", "aten::lerp.Tensor", refuses="biu")
def lerp(self: Operand, end: Operand, weight: Operand, *, outs) -> jax.Array:
    dtype = opmath_dtype(outs[0].dtype)
    return interpolate(*operands(self, end, dtype=dtype, shape=outs[0].shape), weight)


def interpolate(a: jax.Array, b: jax.Array, weight: Operand) -> jax.Array:
    """Interpolation by torch's formula, which is exact at the weights 0 and 1."""
    span = lax.sub(b, a)
    one = lax.full_like(a, 1)
    if isinstance(weight, (int, float)):
        w = full(a.shape, weight, a.dtype)
        if abs(weight) < 0.5:
            return lax.add(a, lax.mul(w, span))
        return lax.sub(b, lax.mul(lax.sub(one, w), span))
    w = full(a.shape, weight, a.dtype)
    near_a = lax.add(a, lax.mul(w, span))
    near_b = lax.sub(b, lax.mul(lax.sub(one, w), span))
    magnitude = lax.abs(w)
    return lax.select(lax.lt(magnitude, lax.full_like(magnitude, 0.5)), near_a, near_b)


@lower("aten::addcmul", refuses="b", rounds="operands")
def addcmul(
    self: Operand, tensor1: Operand, tensor2: Operand, *, value: Operand = 1, outs
) -> jax.Array:
    dtype = opmath_dtype(outs[0].dtype)
    return add_product(*operands(self, tensor1, tensor2, dtype=dtype, shape=outs[0].shape), value)


def add_product(
    x: jax.Array, a: jax.Array, b: jax.Array, value: Operand, combine: Callable = lax.mul
) -> jax.Array:
    scaled = a if is_number(value, 1) else lax.mul(full(a.shape, value, a.dtype), a)
    return lax.add(x, combine(scaled, b))


add_quotient = functools.partial(add_product, combine=lax.div)


@lower("aten::addcdiv", refuses_results="biu", rounds="operands")
def addcdiv(
    self: Operand, tensor1: Operand, tensor2: Operand, *, value: Operand = 1, outs
) -> jax.Array:
    dtype = opmath_dtype(outs[0].dtype)
    return add_quotient(*operands(self, tensor1, tensor2, dtype=dtype, shape=outs[0].shape), value)


@lower("aten::_masked_scale")
def masked_scale(self: jax.Array, mask: jax.Array, scale: float) -> jax.Array:
    return lax.mul(lax.mul(self, convert(mask, self.dtype)), lax.full_like(self, scale))
