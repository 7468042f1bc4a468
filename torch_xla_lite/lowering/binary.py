"""Pointwise functions of two operands, each a tensor or a number.

All promote and broadcast as torch does. `outs[0]` has the dtype and shape of the result; operands
of comparisons are promoted to `result_dtype`.
"""

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering import unary
from torch_xla_lite.lowering.base import checks, target
from torch_xla_lite.lowering.base.promotion import (
    Operand,
    broadcast,
    convert,
    full,
    is_complex,
    is_integral,
    is_number,
    operands,
    opmath,
    opmath_dtype,
)
from torch_xla_lite.lowering.base.registry import WrappedNumber, lower


def _number(value: Operand) -> Operand:
    """A `Scalar` argument as an operand: an array at run time, it promotes like a number."""
    return WrappedNumber(value) if isinstance(value, (jax.Array, np.ndarray, np.generic)) else value


def _pair(a: Operand, b: Operand, out: jax.ShapeDtypeStruct) -> list[jax.Array]:
    return operands(a, b, dtype=out.dtype, shape=out.shape)


def _wide_pair(a: Operand, b: Operand, out: jax.ShapeDtypeStruct) -> list[jax.Array]:
    return operands(a, b, dtype=opmath_dtype(out.dtype), shape=out.shape)


def _rounded_pair(a: Operand, b: Operand, out: jax.ShapeDtypeStruct) -> list[jax.Array]:
    """As `_wide_pair`, for ops whose operands torch rounds to halves first, numbers too."""
    return [opmath(x) for x in _pair(a, b, out)]


def scaled(x: jax.Array, alpha: Operand) -> jax.Array:
    if is_number(alpha, 1):
        return x
    return _mul(x, full(x.shape, alpha, x.dtype))


def _add(a: jax.Array, b: jax.Array) -> jax.Array:
    return lax.bitwise_or(a, b) if a.dtype == np.bool_ else lax.add(a, b)


def _mul(a: jax.Array, b: jax.Array) -> jax.Array:
    return lax.bitwise_and(a, b) if a.dtype == np.bool_ else lax.mul(a, b)


@lower("aten::add.Tensor", "aten::add.Scalar", rounds="numbers")
def add(self: Operand, other: Operand, alpha: Operand = 1, *, outs) -> jax.Array:
    dtypes = {getattr(x, "dtype", None) for x in (self, other)}
    if target.rounds_products() and is_number(alpha, 1) and dtypes == {outs[0].dtype}:
        return _add(*_pair(self, other, outs[0]))
    a, b = _wide_pair(self, other, outs[0])
    return _add(a, scaled(b, alpha))


@lower("aten::sub.Tensor", "aten::sub.Scalar", rounds="numbers")
def sub(self: Operand, other: Operand, alpha: Operand = 1, *, outs) -> jax.Array:
    a, b = _wide_pair(self, other, outs[0])
    return lax.sub(a, scaled(b, alpha))


@lower("aten::rsub.Tensor", rounds="numbers", shape="elementwise")
@lower("aten::rsub.Scalar", rounds="numbers", shape="elementwise")
def rsub(self: Operand, other: Operand, alpha: Operand = 1, *, outs) -> jax.Array:
    a, b = _wide_pair(self, other, outs[0])
    return lax.sub(b, scaled(a, alpha))


@lower("aten::mul.Tensor", rounds="operands")
@lower("aten::mul.Scalar")
def mul(self: Operand, other: Operand, *, outs) -> jax.Array:
    return _mul(*_wide_pair(self, other, outs[0]))


@lower("aten::div.Tensor", rounds="operands")
@lower("aten::div.Scalar")
def div(self: Operand, other: Operand, *, outs) -> jax.Array:
    return target.divide(*_wide_pair(self, other, outs[0]))


@lower(
    "aten::div.Tensor_mode",
    refuses="bc",
    divides="integers",
    rounds="operands",
    kernel_needs="quotients",
)
@lower("aten::div.Scalar_mode", divides="integers", kernel_needs="quotients")
def div_mode(self: Operand, other: Operand, *, rounding_mode: str | None, outs) -> jax.Array:
    if rounding_mode is None:
        return div(self, other, outs=outs)
    a, b = _wide_pair(self, other, outs[0])
    return divide_rounded(a, _checked(b, other, outs[0]), rounding_mode)


def _checked(b: jax.Array, divisor: Operand, out: jax.ShapeDtypeStruct) -> jax.Array:
    """`b`, which is `divisor` in another dtype and shape, for integers with 1 in place of 0: XLA
    ends the process when it divides constants by zero while it compiles."""
    # What is empty divides nothing.
    if not is_integral(out.dtype) or 0 in out.shape:
        return b
    # Python numbers were checked when the op was recorded (csrc/infer/numbers.h).
    if isinstance(divisor, jax.Array) and divisor.dtype.kind in "biu":
        checks.not_zero(convert(divisor, out.dtype))
    return lax.select(lax.eq(b, lax.full_like(b, 0)), lax.full_like(b, 1), b)


def divide_rounded(a: jax.Array, b: jax.Array, rounding_mode: str) -> jax.Array:
    if is_integral(a.dtype):
        quotient = lax.div(a, b)
        if rounding_mode == "trunc" or a.dtype.kind == "u":
            return quotient
        remainder = lax.rem(a, b)
        zero = lax.full_like(a, 0)
        off = lax.bitwise_and(
            lax.ne(remainder, zero), lax.ne(lax.lt(remainder, zero), lax.lt(b, zero))
        )
        return lax.sub(quotient, convert(off, a.dtype))
    if rounding_mode == "trunc":
        quotient = target.divide(a, b)
        return lax.select(
            lax.lt(quotient, lax.full_like(a, 0)), lax.ceil(quotient), lax.floor(quotient)
        )
    # As in c10::div_floor_floating: the quotient of a - rem(a, b) is close to an integer but may be
    # slightly below it, where floor would be one too low.
    remainder = lax.rem(a, b)
    zero = lax.full_like(a, 0)
    quotient = lax.div(lax.sub(a, remainder), b)
    off = lax.bitwise_and(lax.ne(remainder, zero), lax.ne(lax.lt(remainder, zero), lax.lt(b, zero)))
    quotient = lax.select(off, lax.sub(quotient, lax.full_like(a, 1)), quotient)
    floored = lax.floor(quotient)
    above = lax.gt(lax.sub(quotient, floored), lax.full_like(a, 0.5))
    floored = lax.select(above, lax.add(floored, lax.full_like(a, 1)), floored)
    signed_zero = lax.mul(lax.full_like(a, 0), lax.div(a, b))
    floored = lax.select(lax.eq(quotient, zero), signed_zero, floored)
    return lax.select(lax.eq(b, zero), lax.div(a, b), floored)


@lower(
    "aten::floor_divide",
    divides="integers",
    shares="self=same other=same",
    rounds="operands",
    shape="floor_divide",
)
@lower("aten::floor_divide.Scalar", divides="integers", shares="self=same other=same")
def floor_divide(self: Operand, other: Operand, *, outs) -> jax.Array:
    return div_mode(self, other, rounding_mode="floor", outs=outs)


@lower("aten::fmod.Tensor", "aten::fmod.Scalar", refuses_results="bc", divides="integers")
def fmod(self: Operand, other: Operand, *, outs) -> jax.Array:
    a, b = _rounded_pair(self, other, outs[0])
    return lax.rem(a, _checked(b, other, outs[0]))


@lower(
    "aten::remainder.Tensor",
    "aten::remainder.Scalar",
    "aten::remainder.Scalar_Tensor",
    refuses_results="bc",
    divides="integers",
)
def remainder(self: Operand, other: Operand, *, outs) -> jax.Array:
    a, b = _rounded_pair(self, other, outs[0])
    b = _checked(b, other, outs[0])
    rest = lax.rem(a, b)
    zero = lax.full_like(a, 0)
    other_sign = lax.bitwise_and(lax.ne(rest, zero), lax.ne(lax.lt(rest, zero), lax.lt(b, zero)))
    return lax.select(other_sign, lax.add(rest, b), rest)


@lower("aten::pow.Tensor_Tensor", "aten::pow.Tensor_Scalar", "aten::pow.Scalar", refuses="b")
def pow_(self: Operand, exponent: Operand, *, outs) -> jax.Array:
    return power(self, exponent, outs[0])


def power(self: Operand, exponent: Operand, out: jax.ShapeDtypeStruct) -> jax.Array:
    dtype = opmath_dtype(out.dtype)
    if isinstance(exponent, (bool, int, float)) and not isinstance(self, (bool, int, float)):
        x = broadcast(convert(self, dtype), out.shape)
        if exponent == 1:
            return x
        if exponent in (2, 3, 4):
            return lax.integer_pow(x, int(exponent))
        if exponent == 0.5 and not is_integral(dtype):
            return lax.sqrt(x)
        if exponent == -0.5 and not is_integral(dtype):
            return lax.rsqrt(x)
        if exponent in (-1, -2) and not is_integral(dtype):
            return lax.integer_pow(x, int(exponent))
        if exponent == 0:
            return lax.full_like(x, 1)
    a, b = _rounded_pair(self, exponent, out)
    if not is_integral(dtype):
        result = lax.pow(a, b)
        if not is_complex(dtype):
            return result
        zero = lax.full_like(a, 0)
        is_zero = lax.bitwise_and(lax.eq(a, zero), lax.gt(lax.real(b), lax.real(zero)))
        return lax.select(is_zero, zero, result)
    if dtype == np.bool_:
        return lax.bitwise_or(a, lax.bitwise_not(b))
    return _integer_power(a, b)


def _integer_power(base: jax.Array, exponent: jax.Array) -> jax.Array:
    """Integer power by squaring, with wrap-around; 0 for a negative exponent unless |base| is 1."""
    one, zero = lax.full_like(base, 1), lax.full_like(base, 0)

    def square(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        result, factor, left = state
        odd = lax.eq(lax.bitwise_and(left, one), one)
        result = lax.select(odd, lax.mul(result, factor), result)
        return result, lax.mul(factor, factor), lax.shift_right_logical(left, one)

    # A loop, because an exponent may have as many bits as its dtype, but few have more than three.
    state = (one, base, lax.max(exponent, zero))
    result, _, _ = lax.while_loop(lambda state: jnp.any(lax.gt(state[2], zero)), square, state)
    if base.dtype.kind == "u":
        return result
    odd = lax.eq(lax.bitwise_and(exponent, one), one)
    unit = lax.select(odd, base, one)
    inverse = lax.select(lax.eq(lax.abs(base), one), unit, zero)
    return lax.select(lax.lt(exponent, zero), inverse, result)


def _compare(name: str, compare: Callable[[jax.Array, jax.Array], jax.Array]) -> None:
    def tensor(self, other, *, outs):
        return compare(*operands(self, other, shape=outs[0].shape))

    def scalar(self, other, *, outs):
        return compare(*operands(self, _number(other), shape=outs[0].shape))

    # Complex numbers have no order.
    refused_if = "" if name in ("eq", "ne") else "complex"
    lower(f"aten::{name}.Tensor", refused_if=refused_if)(tensor)
    lower(f"aten::{name}.Scalar", refused_if=refused_if)(scalar)


for _name, _fn in {
    "eq": lax.eq,
    "ge": lax.ge,
    "gt": lax.gt,
    "le": lax.le,
    "lt": lax.lt,
    "ne": lax.ne,
}.items():
    _compare(_name, _fn)


def _logical(name: str, combine: Callable[[jax.Array, jax.Array], jax.Array]) -> None:
    def lowering(self, other, *, outs):
        a, b = (broadcast(to_bool(x), outs[0].shape) for x in (self, other))
        return combine(a, b)

    lower(f"aten::logical_{name}", shape="mask")(lowering)


def to_bool(x: Operand) -> jax.Array:
    return convert(x, np.dtype(np.bool_))


def _bitwise(names: Iterable[str], combine: Callable, **facts: Any) -> None:
    def lowering(self, other, *, outs):
        return combine(*_pair(self, other, outs[0]))

    lower(*(f"aten::{name}" for name in names), **facts)(lowering)


for _name, _fn in {"and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor}.items():
    _logical(_name, _fn)
    _overloads = ("Tensor", "Scalar", "Scalar_Tensor")
    _bitwise((f"bitwise_{_name}.{overload}" for overload in _overloads), _fn, refuses="fhc")


def _shift_right(a: jax.Array, b: jax.Array) -> jax.Array:
    return (lax.shift_right_logical if a.dtype.kind == "u" else lax.shift_right_arithmetic)(a, b)


for _name, _fn in {"left": lax.shift_left, "right": _shift_right}.items():
    _names = [f"bitwise_{_name}_shift.{x}" for x in ("Tensor", "Tensor_Scalar", "Scalar_Tensor")]
    _names += [f"__{_name[0]}shift__.{x}" for x in ("Tensor", "Scalar")]
    _bitwise(_names, _fn, refuses_results="fhcb")


@lower("aten::maximum", "aten::clamp_min.Tensor", "aten::clamp_min", refuses="c")
def maximum(self: Operand, other: Operand, *, outs) -> jax.Array:
    return lax.max(*_pair(self, other, outs[0]))


@lower("aten::minimum", "aten::clamp_max.Tensor", "aten::clamp_max", refuses="c")
def minimum(self: Operand, other: Operand, *, outs) -> jax.Array:
    return lax.min(*_pair(self, other, outs[0]))


@lower("aten::fmax", refuses="c")
def fmax(self: Operand, other: Operand, *, outs) -> jax.Array:
    a, b = _pair(self, other, outs[0])
    return lax.select(lax.ne(a, a), b, lax.select(lax.ne(b, b), a, lax.max(a, b)))


@lower("aten::fmin", refuses="c")
def fmin(self: Operand, other: Operand, *, outs) -> jax.Array:
    a, b = _pair(self, other, outs[0])
    return lax.select(lax.ne(a, a), b, lax.select(lax.ne(b, b), a, lax.min(a, b)))


@lower("aten::atan2", refuses="c")
def atan2(self: Operand, other: Operand, *, outs) -> jax.Array:
    return lax.atan2(*_pair(self, other, outs[0]))


@lower("aten::copysign.Tensor", "aten::copysign.Scalar", refuses="c")
def copysign(self: Operand, other: Operand, *, outs) -> jax.Array:
    a, b = _pair(self, other, outs[0])
    return jnp.copysign(a, b)


@lower("aten::hypot", refuses="biuc")
def hypot(self: Operand, other: Operand, *, outs) -> jax.Array:
    return jnp.hypot(*_rounded_pair(self, other, outs[0]))


@lower("aten::nextafter", refuses="biuc")
def nextafter(self: Operand, other: Operand, *, outs) -> jax.Array:
    return lax.nextafter(*_pair(self, other, outs[0]))


@lower("aten::logaddexp", refuses="biu")
def logaddexp(self: Operand, other: Operand, *, outs) -> jax.Array:
    a, b = _rounded_pair(self, other, outs[0])
    if not is_complex(a.dtype):
        return jnp.logaddexp(a, b)
    # jnp.logaddexp turns the angle into [-pi, pi]; torch leaves it.
    is_swapped = lax.lt(lax.real(a), lax.real(b))
    large, small = lax.select(is_swapped, b, a), lax.select(is_swapped, a, b)
    is_infinite = lax.eq(lax.abs(lax.real(large)), lax.full_like(lax.real(large), np.inf))
    return lax.select(is_infinite, large, large + lax.log1p(lax.exp(small - large)))


@lower("aten::logaddexp2", refuses="biuc")
def logaddexp2(self: Operand, other: Operand, *, outs) -> jax.Array:
    return jnp.logaddexp2(*_rounded_pair(self, other, outs[0]))


@lower("aten::ldexp.Tensor", shares="self=same", shape="ldexp")
def ldexp(self: Operand, other: Operand, *, outs) -> jax.Array:
    a, b = _wide_pair(self, other, outs[0])
    return lax.mul(a, unary.exp2(b))


@lower("aten::gcd", refuses_results="fhcb")
def gcd(self: Operand, other: Operand, *, outs) -> jax.Array:
    return _gcd(*_pair(self, other, outs[0]))


@lower("aten::lcm", refuses="fhcb", kernel_needs="multiples")
def lcm(self: Operand, other: Operand, *, outs) -> jax.Array:
    a, b = _pair(self, other, outs[0])
    divisor = _gcd(a, b)
    is_zero = lax.eq(divisor, lax.full_like(divisor, 0))
    safe = lax.select(is_zero, lax.full_like(divisor, 1), divisor)
    # As in C++, small integers are multiplied as int32.
    wide = np.promote_types(a.dtype, np.int32)
    a, b, safe = (lax.convert_element_type(x, wide) for x in (a, b, safe))
    multiple = lax.abs(lax.mul(lax.div(a, safe), b))
    return lax.select(is_zero, lax.full_like(divisor, 0), convert(multiple, divisor.dtype))


def _gcd(a: jax.Array, b: jax.Array) -> jax.Array:
    """Step by step as in torch, which is defined for the smallest integer, too: it has no absolute
    value, and jnp.gcd does not end."""

    def remainder(pair: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        a, b = pair
        is_done = lax.eq(a, lax.full_like(a, 0))
        rest = lax.rem(b, lax.select(is_done, lax.full_like(a, 1), a))
        return lax.select(is_done, a, rest), lax.select(is_done, b, a)

    pair = (jnp.abs(a), jnp.abs(b))
    return lax.while_loop(lambda pair: jnp.any(pair[0] != 0), remainder, pair)[1]


@lower("aten::heaviside", refuses="c", one_dtype="self values")
def heaviside(self: Operand, values: Operand, *, outs) -> jax.Array:
    a, b = _pair(self, values, outs[0])
    zero = lax.full_like(a, 0)
    step = convert(lax.gt(a, zero), a.dtype)
    return lax.select(lax.eq(a, zero), b, step)


@lower("aten::xlogy.Tensor", "aten::xlogy.Scalar_Self", "aten::xlogy.Scalar_Other", refuses="c")
def xlogy(self: Operand, other: Operand, *, outs) -> jax.Array:
    a, b = _rounded_pair(self, other, outs[0])
    zero = lax.full_like(a, 0)
    product = lax.select(lax.eq(a, zero), zero, lax.mul(a, lax.log(b)))
    return lax.select(lax.ne(b, b), b, product)


@lower("aten::special_zeta", refuses="c")
@lower("aten::special_zeta.self_scalar", "aten::special_zeta.other_scalar")
def special_zeta(self: Operand, other: Operand, *, outs) -> jax.Array:
    return unary.zeta(*_rounded_pair(self, other, outs[0]))


@lower("aten::complex", one_dtype="real imag", shape="complex")
def complex_(real: jax.Array, imag: jax.Array, *, outs) -> jax.Array:
    return lax.complex(*(broadcast(x, outs[0].shape) for x in (real, imag)))


@lower("aten::polar", one_dtype="abs angle")
def polar(abs: jax.Array, angle: jax.Array, *, outs) -> jax.Array:
    r, phi = (broadcast(x, outs[0].shape) for x in (abs, angle))
    return lax.complex(lax.mul(r, lax.cos(phi)), lax.mul(r, lax.sin(phi)))


@lower("aten::_prelu_kernel", refuses="biuc", shape="elementwise")
def prelu(self: jax.Array, weight: jax.Array) -> jax.Array:
    positive = lax.gt(self, lax.full_like(self, 0))
    return lax.select(positive, self, lax.mul(self, broadcast(weight, self.shape)))
