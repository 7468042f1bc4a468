"""`_foreach_*`: one op over lists of tensors.

Each applies the lowering for single tensors to the elements of the lists, in one graph.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax

from torch_xla_lite.lowering import binary, unary
from torch_xla_lite.lowering.base.promotion import (
    Number,
    broadcast,
    convert,
    operands,
    opmath,
    opmath_dtype,
)
from torch_xla_lite.lowering.base.registry import lower
from torch_xla_lite.lowering.reduction import vector_norm
from torch_xla_lite.lowering.ternary import add_product, add_quotient, interpolate


def _register(compute: Callable[..., jax.Array], name: str, *overloads: str, **facts: Any) -> None:
    """Registers a loop over the elements of the lists; other arguments are the same for each.

    Args:
      compute: gets `out`, the shape and dtype of its result, as the last argument by position.
    """

    def lowering(*args: Any, outs: Any, **keywords: Any) -> list[jax.Array]:
        results = []
        for i, out in enumerate(outs):
            own = [value[i] if isinstance(value, list) else value for value in args]
            results.append(compute(*own, out, **keywords))
        return results

    names = [f"aten::_foreach_{name}.{overload}" for overload in overloads]
    lower(*(names or [f"aten::_foreach_{name}"]), **facts)(lowering)


def _single(entry: Any) -> Callable[..., jax.Array]:
    """The lowering for one tensor."""
    if entry.wants_outs:
        return lambda *args: entry.fn(*args[:-1], outs=args[-1:])
    return lambda *args: entry.fn(*args[:-1])


for _name in (
    *("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor"),
    *("frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt"),
    *("sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
):
    _register(_single(unary.entry(_name)), _name)


def _binary(function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    return lambda a, b, out, **alpha: function(a, b, outs=[out], **alpha)


_OVERLOADS = ("Scalar", "List", "ScalarList")
for _name, _function in (("add", binary.add), ("sub", binary.sub)):
    _register(_binary(_function), _name, *_OVERLOADS, rounds="numbers")
_register(_binary(binary.add), "add", "Tensor", rounds="numbers")
for _name, _function in (("mul", binary.mul), ("div", binary.div)):
    _register(_binary(_function), _name, *_OVERLOADS, "Tensor", rounds="operands")
for _name, _function in (
    *(("clamp_max", binary.minimum), ("minimum", binary.minimum)),
    *(("clamp_min", binary.maximum), ("maximum", binary.maximum)),
):
    _register(_binary(_function), _name, *_OVERLOADS, casts_numbers=True)
_register(_binary(binary.pow_), "pow", *_OVERLOADS)
_register(binary.power, "pow", "ScalarAndTensor")


def _wide(combine: Callable[..., jax.Array], count: int) -> Callable[..., jax.Array]:
    """Of `count` tensors, as one shape and dtype, and a number, which is 1 by default."""

    def compute(*args: Any) -> jax.Array:
        *tensors, out = args
        number = tensors.pop() if len(tensors) > count else 1
        same = operands(*tensors, dtype=opmath_dtype(out.dtype), shape=out.shape)
        return combine(*same, number)

    return compute


def _pointwise(name: str, combine: Callable[..., jax.Array]) -> None:
    compute = _wide(combine, 3)
    _register(compute, name, "Scalar", "ScalarList", casts_numbers=True)

    @lower(f"aten::_foreach_{name}.Tensor")
    def with_tensor(self: list, tensor1: list, tensor2: list, scalars: jax.Array, *, outs) -> list:
        numbers = [scalars[i] for i in range(len(outs))]
        rows = zip(self, tensor1, tensor2, numbers, outs, strict=True)
        return [compute(*row) for row in rows]


_pointwise("addcmul", add_product)
_pointwise("addcdiv", add_quotient)
_register(_wide(interpolate, 2), "lerp", "Scalar", "List", "ScalarList")


def _norm(x: jax.Array, ord: Number, dtype: np.dtype | None, out: Any) -> jax.Array:
    return vector_norm(x if dtype is None else convert(x, dtype), ord, None, False)


def _powsum(x: jax.Array, ord: Number, dtype: np.dtype | None, out: Any) -> jax.Array:
    size = lax.abs(opmath(x if dtype is None else convert(x, dtype)))
    return lax.reduce_sum(lax.pow(size, lax.full_like(size, ord)), tuple(range(size.ndim)))


_register(_norm, "norm", "Scalar", constants=True)
_register(_powsum, "powsum", "Scalar", constants=True)
_register(lambda x, out: lax.reduce_max(x, tuple(range(x.ndim))) if x.ndim else x, "max")
_register(lambda x, out: lax.full_like(x, 0), "zero")
_register(lambda x, out: x, "clone")
_register(lambda x, source, out: broadcast(convert(source, out.dtype), out.shape), "copy")
