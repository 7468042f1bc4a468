"""`_foreach_*` and fused optimizer steps: one op over a list of tensors.

Each applies the lowering for single tensors to the elements of the lists, in one graph.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

from torch_xla_lite.lowering import binary, unary
from torch_xla_lite.lowering.base.promotion import (
    Number,
    Operand,
    broadcast,
    convert,
    is_number,
    operands,
    opmath,
    opmath_dtype,
)
from torch_xla_lite.lowering.base.registry import lower
from torch_xla_lite.lowering.reduction import vector_norm
from torch_xla_lite.lowering.ternary import add_product, add_quotient, interpolate

Outs = Sequence[jax.ShapeDtypeStruct]

_UNARY = (
    *("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor"),
    *("frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt"),
    *("sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
)


def _register_unary(name: str) -> None:
    entry = unary.entry(name)

    def lowering(self, *, outs):
        if entry.wants_outs:
            return [entry.fn(x, outs=[out]) for x, out in zip(self, outs, strict=True)]
        return [entry.fn(x) for x in self]

    lower(f"aten::_foreach_{name}")(lowering)


for _name in _UNARY:
    _register_unary(_name)


def _register_binary(
    name: str, compute: Callable[..., jax.Array], one_tensor: bool = False, **facts: Any
) -> None:
    """Registers the overloads Scalar, List and ScalarList, and Tensor (one tensor for all)."""

    def one(self, other, alpha=1, *, outs):
        extra = {} if is_number(alpha, 1) else {"alpha": alpha}
        return [compute(x, other, outs=[out], **extra) for x, out in zip(self, outs, strict=True)]

    def many(self, other, *, alpha=1, outs):
        extra = {} if is_number(alpha, 1) else {"alpha": alpha}
        rows = zip(self, other, outs, strict=True)
        return [compute(x, y, outs=[out], **extra) for x, y, out in rows]

    lower(f"aten::_foreach_{name}.Scalar", **facts)(one)
    lower(f"aten::_foreach_{name}.List", f"aten::_foreach_{name}.ScalarList", **facts)(many)
    if one_tensor:
        lower(f"aten::_foreach_{name}.Tensor", **facts)(one)


_register_binary("add", binary.add, one_tensor=True, rounds="numbers")
_register_binary("sub", binary.sub, rounds="numbers")
_register_binary("mul", binary.mul, one_tensor=True, rounds="operands")
_register_binary("div", binary.div, one_tensor=True, rounds="operands")
_register_binary("clamp_max", binary.minimum, casts_numbers=True)
_register_binary("clamp_min", binary.maximum, casts_numbers=True)
_register_binary("maximum", binary.maximum, casts_numbers=True)
_register_binary("minimum", binary.minimum, casts_numbers=True)
_register_binary("pow", binary.pow_)


@lower("aten::_foreach_pow.ScalarAndTensor")
def foreach_pow_scalar(self: Operand, exponent: list[jax.Array], *, outs: Outs) -> list[jax.Array]:
    return [binary.power(self, x, out) for x, out in zip(exponent, outs, strict=True)]


def _pointwise(name: str, combine: Callable[..., jax.Array]) -> None:
    """addcmul and addcdiv: with one scalar, a list of scalars, or a 1-d tensor of them."""

    def step(x, a, b, value, out):
        dtype = opmath_dtype(out.dtype)
        return combine(*operands(x, a, b, dtype=dtype, shape=out.shape), value)

    def same(self, tensor1, tensor2, value=1, *, outs):
        rows = zip(self, tensor1, tensor2, outs, strict=True)
        return [step(x, a, b, value, out) for x, a, b, out in rows]

    def each(self, tensor1, tensor2, scalars, *, outs):
        rows = zip(self, tensor1, tensor2, scalars, outs, strict=True)
        return [step(x, a, b, value, out) for x, a, b, value, out in rows]

    def from_tensor(self, tensor1, tensor2, scalars, *, outs):
        return each(self, tensor1, tensor2, [scalars[i] for i in range(len(self))], outs=outs)

    lower(f"aten::_foreach_{name}.Scalar", casts_numbers=True)(same)
    lower(f"aten::_foreach_{name}.ScalarList", casts_numbers=True)(each)
    lower(f"aten::_foreach_{name}.Tensor")(from_tensor)


_pointwise("addcmul", add_product)
_pointwise("addcdiv", add_quotient)


def _lerp(a: jax.Array, b: jax.Array, weight: Operand, out: jax.ShapeDtypeStruct) -> jax.Array:
    dtype = opmath_dtype(out.dtype)
    return interpolate(*operands(a, b, dtype=dtype, shape=out.shape), weight)


@lower("aten::_foreach_lerp.Scalar")
def foreach_lerp(
    self: list[jax.Array], tensors1: list[jax.Array], weight: Operand, *, outs: Outs
) -> list[jax.Array]:
    return [_lerp(a, b, weight, out) for a, b, out in zip(self, tensors1, outs, strict=True)]


@lower("aten::_foreach_lerp.List", "aten::_foreach_lerp.ScalarList")
def foreach_lerp_list(
    self: list[jax.Array], tensors1: list[jax.Array], weights: list[Operand], *, outs: Outs
) -> list[jax.Array]:
    rows = zip(self, tensors1, weights, outs, strict=True)
    return [_lerp(a, b, weight, out) for a, b, weight, out in rows]


@lower("aten::_foreach_norm.Scalar", constants=True)
def foreach_norm(
    self: list[jax.Array], ord: Number = 2, dtype: np.dtype | None = None
) -> list[jax.Array]:
    return [vector_norm(x if dtype is None else convert(x, dtype), ord, None, False) for x in self]


@lower("aten::_foreach_powsum.Scalar", constants=True)
def foreach_powsum(
    self: list[jax.Array], ord: Number = 2, dtype: np.dtype | None = None
) -> list[jax.Array]:
    wide = [opmath(x if dtype is None else convert(x, dtype)) for x in self]
    powers = [lax.pow(lax.abs(x), lax.full_like(lax.abs(x), ord)) for x in wide]
    return [lax.reduce_sum(x, tuple(range(x.ndim))) for x in powers]


@lower("aten::_foreach_max")
def foreach_max(self: list[jax.Array]) -> list[jax.Array]:
    return [lax.reduce_max(x, tuple(range(x.ndim))) if x.ndim else x for x in self]


@lower("aten::_foreach_zero")
def foreach_zero(self: list[jax.Array]) -> list[jax.Array]:
    return [lax.full_like(x, 0) for x in self]


@lower("aten::_foreach_clone")
def foreach_clone(self: list[jax.Array]) -> list[jax.Array]:
    return list(self)


@lower("aten::_foreach_copy")
def foreach_copy(self: list[jax.Array], src: list[jax.Array], *, outs: Outs) -> list[jax.Array]:
    return [broadcast(convert(x, out.dtype), out.shape) for x, out in zip(src, outs, strict=True)]
