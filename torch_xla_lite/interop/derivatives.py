"""Derivatives of pointwise ops by jax: those of torch.

    results = differentiable(lower, "aten::xlogy.Tensor", args, operands, outs, capture)

jax differentiates a lowering operation by operation. At kinks, ties and poles, and where a part
overflows, that is another number than torch's formula for the whole op gives, often NaN. So a
pointwise op has a rule: torch's backward of the op, which is captured when jax differentiates it.
Of a pointwise op it gives tangents as well as gradients.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

from torch_xla_lite.startup.late_jax import jax, jnp

from ..lowering.base import decomposition, promotion, registry

Outputs: TypeAlias = "list[jax.Array | None]"
# `capture.capture`: of a function of tensors, their dtypes and shapes, and its name.
Capture: TypeAlias = Callable[..., Callable[[Sequence[Any]], list[Any]]]

# How many formulas are kept: one for each op, place of an operand, and shapes.
_MOST = 1024


def differentiable(
    lower: Callable[[Sequence[jax.Array]], Outputs],
    op: str,
    args: Sequence[Any],
    operands: Sequence[jax.Array],
    outs: Sequence[jax.ShapeDtypeStruct | None],
    capture: Capture,
) -> Outputs:
    """Lowers a call so that jax differentiates it as torch does, if the op is pointwise.

    Args:
      lower: gives the outputs for the operands.
      op, args, outs: as of `registry.call`; the values of numbers among `args` are known.
      operands: the arrays among `args` and in lists there.
    """
    if not _has_rule(op, args, outs):
        return lower(operands)

    def plain(*arrays: jax.Array) -> Any:
        return lower(arrays)[0]

    function = jax.custom_jvp(plain)

    def rule(primals: tuple[jax.Array, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        moving = {
            i: x
            for i, x in enumerate(tangents)
            if not isinstance(x, jax.custom_derivatives.SymbolicZero)
        }
        try:
            tangent = _tangent(op, args, primals, moving, outs[0], capture)
        except registry.BrokenPackage:
            raise
        except Exception:
            # torch has no derivative, or one that needs a value.
            zeros = tuple(moving.get(i, _zero(x)) for i, x in enumerate(primals))
            return jax.jvp(plain, primals, zeros)
        return function(*primals), tangent

    function.defjvp(rule, symbolic_zeros=True)
    return [function(*operands)]


def _has_rule(op: str, args: Sequence[Any], outs: Sequence[jax.ShapeDtypeStruct | None]) -> bool:
    """Whether an op is pointwise, of real numbers, with one result that may have a derivative."""
    if len(outs) != 1 or outs[0] is None or not promotion.is_float(outs[0].dtype):
        return False
    if any(isinstance(arg, list) for arg in args) or not _is_pointwise(op):
        return False
    return not any(promotion.is_complex(arg.dtype) for arg in args if isinstance(arg, jax.Array))


@functools.cache
def _is_pointwise(op: str) -> bool:
    entry = registry.find(op)
    if entry is not None and (entry.wants_key or entry.facts.shape == "elementwise"):
        return not entry.wants_key
    return torch.Tag.pointwise in registry.overload(op).tags


def _zero(x: jax.Array) -> Any:
    """The tangent of what does not move."""
    is_float = promotion.is_float(x.dtype)
    return jnp.zeros_like(x) if is_float else np.zeros(x.shape, jax.dtypes.float0)


def _tangent(
    op: str,
    args: Sequence[Any],
    primals: Sequence[jax.Array],
    moving: dict[int, jax.Array],
    out: jax.ShapeDtypeStruct,
    capture: Capture,
) -> jax.Array:
    """The tangent of the result.

    Args:
      primals: in place of the arrays among `args`.
      moving: tangents of `primals` by their places; those of others are zero.
    """

    def whole(x: jax.Array) -> jax.Array:
        # In the form of the result, so that the backward sums over no dimension.
        dtype = out.dtype if promotion.is_float(x.dtype) else x.dtype
        return promotion.broadcast(promotion.convert(x, dtype), out.shape)

    with jax.enable_x64(True):
        arrays = [whole(x) for x in primals]
        given = iter(arrays)
        signature = tuple(
            decomposition.describe(next(given) if isinstance(arg, jax.Array) else _number(arg))
            for arg in args
        )
        terms = [
            _backward(op, signature, place, capture)(arrays, whole(tangent))
            for place, tangent in moving.items()
        ]
        return functools.reduce(jnp.add, terms)


def _number(arg: Any) -> Any:
    """An argument that is no tensor, as Python has it."""
    if isinstance(arg, registry.WrappedNumber):
        arg = arg.value
    return arg.item() if isinstance(arg, (np.ndarray, np.generic)) else arg


@functools.lru_cache(_MOST)
def _backward(
    op: str, signature: tuple[Hashable, ...], place: int, capture: Capture
) -> Callable[[Sequence[jax.Array], jax.Array], jax.Array]:
    """torch's backward of an op for one of its operands: of the operands and the tangent of one.

    Args:
      signature: `decomposition.describe` of all arguments; its tensors are of one shape.
    """

    def gradient(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        *operands, cotangent = tensors
        no_autocast = torch.autocast("jax", enabled=False)
        with torch._C.DisableTorchFunction(), no_autocast, torch.enable_grad():
            operands[place].requires_grad_()
            function = registry.overload(op)
            positional, keywords = decomposition.bind(function, signature, iter(operands))
            result = function(*positional, **keywords)
            return list(torch.autograd.grad(result, operands[place], cotangent))

    shapes = [
        jax.ShapeDtypeStruct(arg.shape, arg.dtype)
        for arg in signature
        if isinstance(arg, decomposition.Tensor)
    ]
    of = shapes[place]
    inputs = [(registry.TO_TORCH[x.dtype], x.shape) for x in (*shapes, of)]
    captured = capture(gradient, inputs, f"the backward of {op}")

    def backward(operands: Sequence[jax.Array], tangent: jax.Array) -> jax.Array:
        return captured([*operands, tangent])[0]

    if _is_plain(backward, shapes, of):
        return backward

    def masked(operands: Sequence[jax.Array], tangent: jax.Array) -> jax.Array:
        # The derivative is diagonal: it is the gradient for ones. Where torch masks the gradient,
        # it is 0, even if the tangent is infinite.
        slope = backward(operands, jnp.ones_like(tangent))
        return slope * jnp.where(slope == 0, 0, tangent)

    return masked


def _is_plain(
    backward: Callable, operands: Sequence[jax.ShapeDtypeStruct], of: jax.ShapeDtypeStruct
) -> bool:
    """Whether jax can transpose the backward, a function of the tangent, as it is. Where it
    selects, the transposed selection comes first, and what follows makes NaN of its zeros: 0 / 0.
    """

    @jax.custom_jvp
    def identity(x: jax.Array, *operands: jax.Array) -> jax.Array:
        return x

    @identity.defjvp
    def rule(primals: tuple, tangents: tuple) -> tuple[jax.Array, jax.Array]:
        return primals[0], backward(primals[1:], tangents[0])

    def transposed(x: jax.Array, *operands: jax.Array) -> jax.Array:
        return jax.vjp(lambda x: identity(x, *operands), x)[1](x)

    try:
        return "select_n" not in str(jax.make_jaxpr(transposed)(of, *operands))
    except Exception:  # No function of the tangent that jax can transpose; each has its own error.
        return False
