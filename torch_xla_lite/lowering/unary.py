"""Pointwise functions of one tensor.

Most are one XLA operation, listed in `_DIRECT`; integers are first converted to the float dtype
that torch infers. Compositions compute 16-bit floats in float32, as torch does, and are rounded
once, by `registry.call`.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special

from torch_xla_lite.lowering.base import target
from torch_xla_lite.lowering.base.promotion import (
    broadcasting,
    category,
    convert,
    full,
    is_complex,
    is_float,
    is_integral,
    opmath,
    opmath_dtype,
)
from torch_xla_lite.lowering.base.registry import LOWERINGS, Lowering, lower


def digamma(x: jax.Array) -> jax.Array:
    """torch's values at the poles, and more precise near them than XLA's."""
    negative = x < 0
    positive = lax.digamma(jnp.where(negative, 1 - x, x))
    # The distance to the pole first: pi times x has lost the digits that the tangent needs.
    fraction = lax.sub(x, lax.round(x))
    # Not at 0, where the derivative of the reflection is no number.
    tangent = lax.tan(np.pi * jnp.where(negative & (fraction != 0), fraction, 0.5))
    reflected = positive - np.pi / tangent
    value = jnp.where(negative, jnp.where(fraction == 0, np.nan, reflected), positive)
    return jnp.where(x == 0, jnp.copysign(np.inf, -x), value)


def trigamma(x: jax.Array) -> jax.Array:
    """torch's series, which is finite where its sine of a multiple of pi is not zero."""
    small = x < 0.5
    sine = lax.sin(np.array(np.pi, x.dtype) * x)
    reflection = np.array(np.pi**2, x.dtype) / (sine * sine)
    z = jnp.where(small, 1 - x, x)
    total = jnp.zeros_like(x)
    for _ in range(6):
        total = total + 1 / (z * z)
        z = z + 1
    inverse = 1 / (z * z)
    series = 1 + 1 / (2 * z) + inverse * (1 / 6 - inverse * (1 / 30 - inverse / 42))
    total = total + series / z
    return jnp.where(small, reflection - total, total)


def sinc(x: jax.Array) -> jax.Array:
    """NaN at infinity, as in torch; jnp.sinc has 0 there from jax 0.11 on."""
    return jnp.where(jnp.isinf(x.real), math.nan * x, jnp.sinc(x))


def exp2(x: jax.Array) -> jax.Array:
    """Exact at integers, unlike `exp(x * log(2))`, which is what lax.exp2 is."""
    return lax.pow(lax.full_like(x, 2), x)


def zeta(x: jax.Array, q: jax.Array) -> jax.Array:
    """Hurwitz's, for q below zero too: the terms up to the first positive one are added by hand."""
    steps = jnp.where(jnp.isfinite(q), jnp.ceil(jnp.maximum(1 - q, 0)), 0)
    steps = jnp.where(steps > _MANY_TERMS, 0, steps)

    most = jnp.max(steps, initial=0).astype(np.int32)
    negated = jnp.negative(x)
    terms = lax.fori_loop(
        0,
        most,
        lambda k, total: jnp.where(
            k < steps, total + lax.pow(q + lax.convert_element_type(k, q.dtype), negated), total
        ),
        jnp.zeros_like(q),
    )
    value = terms + special.zeta(x, q + steps)
    value = jnp.where((q <= 0) & (q == jnp.floor(q)), np.inf, value)
    value = jnp.where((q < 0) & (q != jnp.floor(q)) & (x != jnp.floor(x)), np.nan, value)
    value = jnp.where(x == 1, np.inf, jnp.where(x < 1, np.nan, value))
    # Of the terms 1 / (q + k) ** x, an infinite order leaves those of at least 1.
    limit = jnp.where(q == 1, 1, jnp.where((q > 0) & (q < 1), np.inf, np.nan))
    return jnp.where(x == np.inf, limit.astype(x.dtype), value)


# Terms of a zeta function at a negative place that are still added.
_MANY_TERMS = 10_000


def log1p(x: jax.Array) -> jax.Array:
    """In float64 XLA's polynomial is 120 ulp off between -0.42 and -0.36, where 1 + x is exact to
    rounding."""
    if x.dtype != np.float64:
        return lax.log1p(x)
    one = lax.full_like(x, 1)
    return lax.select(lax.lt(x, lax.full_like(x, -0.33)), lax.log(lax.add(one, x)), lax.log1p(x))


def atanh(x: jax.Array) -> jax.Array:
    if x.dtype != np.float64:
        return lax.atanh(x)
    return lax.mul(lax.full_like(x, 0.5), lax.sub(log1p(x), log1p(lax.neg(x))))


def erfinv(x: jax.Array) -> jax.Array:
    """XLA's is 40 (float32) or 110 ulp (float64) off near one; a step of Newton's method there."""
    value = lax.erf_inv(x)
    magnitude, root = lax.abs(x), lax.abs(value)
    # The complements of x and erf(root) are precise near one, unlike x and erf(root).
    error = lax.sub(lax.sub(lax.full_like(x, 1), magnitude), lax.erfc(root))
    slope = lax.mul(lax.full_like(x, 2 / np.sqrt(np.pi)), lax.exp(lax.neg(lax.mul(root, root))))
    refined = lax.mul(lax.sign(x), lax.sub(root, lax.div(error, slope)))
    return jnp.where((magnitude > 0.95) & (magnitude < 1), refined, value)


def lgamma(x: jax.Array) -> jax.Array:
    """XLA's loses digits beside the zeros at 1 and 2, so float32 is computed in float64."""
    wide = convert(x, np.dtype(np.float64))
    return convert(lax.lgamma(wide), x.dtype)


def log_ndtr(x: jax.Array) -> jax.Array:
    """jax's takes the logarithm of a number near one for x between 1 and 8."""
    minus_one = lax.full_like(x, -1)
    is_tail = lax.lt(x, minus_one)
    # Each formula gets only numbers of its own range: elsewhere its derivative is no number.
    low = lax.mul(lax.select(is_tail, x, minus_one), lax.full_like(x, np.sqrt(0.5)))
    high = lax.mul(lax.select(is_tail, minus_one, x), lax.full_like(x, np.sqrt(0.5)))
    half = lax.full_like(x, 0.5)
    tail = lax.sub(lax.log(lax.mul(half, erfcx(lax.neg(low)))), lax.mul(low, low))
    return lax.select(is_tail, tail, log1p(lax.neg(lax.mul(half, lax.erfc(high)))))


def erfcx(x: jax.Array) -> jax.Array:
    """exp(x²)·erfc(x), which overflows from x ≈ 9 on in float32; there the asymptotic series is
    exact to rounding."""
    one = lax.full_like(x, 1)
    edge = lax.full_like(x, 25.0 if x.dtype == np.float64 else 8.0)
    is_large = lax.gt(x, edge)
    large, small = lax.select(is_large, x, edge), lax.select(is_large, edge, x)
    inverse = lax.div(one, lax.mul(large, large))
    series = one
    for k in range(9, 0, -2):
        series = lax.sub(one, lax.mul(lax.mul(lax.full_like(x, k / 2), inverse), series))
    asymptotic = lax.mul(lax.div(lax.full_like(x, 1 / np.sqrt(np.pi)), large), series)
    product = lax.mul(lax.exp(lax.mul(small, small)), lax.erfc(small))
    return lax.select(is_large, asymptotic, product)


_DIRECT: dict[str, Callable[[jax.Array], jax.Array]] = {
    "acos": lax.acos,
    "acosh": lax.acosh,
    "asin": lax.asin,
    "asinh": lax.asinh,
    "atan": lax.atan,
    "atanh": atanh,
    "cos": lax.cos,
    "cosh": lax.cosh,
    "digamma": digamma,
    "erf": lax.erf,
    "erfc": lax.erfc,
    "erfinv": erfinv,
    "exp": lax.exp,
    "exp2": exp2,
    "expm1": lax.expm1,
    "i0": special.i0,
    "lgamma": lgamma,
    "log": lax.log,
    "log1p": log1p,
    "neg": lax.neg,
    "rsqrt": lax.rsqrt,
    "sigmoid": lax.logistic,
    "sin": lax.sin,
    "sinc": sinc,
    "sinh": lax.sinh,
    "special_entr": special.entr,
    "special_i0e": special.i0e,
    "special_i1": special.i1,
    "special_i1e": special.i1e,
    "special_erfcx": erfcx,
    "special_log_ndtr": log_ndtr,
    "special_ndtri": special.ndtri,
    "sqrt": lax.sqrt,
    "tan": lax.tan,
    "tanh": lax.tanh,
}
# XLA has no version of these for 16-bit floats, or one that rounds intermediate results.
_IN_OPMATH = frozenset(
    (
        *("acos", "acosh", "asin", "asinh", "atanh", "digamma", "erfinv", "exp2", "i0", "lgamma"),
        "sinc",
        *("special_entr", "special_erfcx", "special_i0e", "special_i1", "special_i1e"),
        *("special_log_ndtr", "special_ndtri"),
    )
)
# torch's kernels of these take no complex numbers.
_REAL = frozenset(
    (
        *("digamma", "erf", "erfc", "erfinv", "i0", "lgamma", "special_entr", "special_i0e"),
        *("special_i1", "special_i1e", "special_erfcx", "special_log_ndtr", "special_ndtri"),
    )
)


def direct(name: str) -> Callable[[jax.Array, np.dtype], jax.Array]:
    """The pointwise function `name` on an array already known to have the result's dtype."""
    compute = _DIRECT[name]
    if name in _IN_OPMATH:
        return lambda x, dtype: compute(convert(x, opmath_dtype(dtype)))
    return lambda x, dtype: compute(convert(x, dtype))


def _register_direct(name: str) -> None:
    compute = direct(name)

    def lowering(self, *, outs):
        return compute(self, outs[0].dtype)

    lowering.__name__ = name
    lower(f"aten::{name}", refuses="c" if name in _REAL else "")(lowering)


for _name in _DIRECT:
    _register_direct(_name)


@lower("aten::abs", refuses="b", shape="elementwise")
def abs_(self: jax.Array) -> jax.Array:
    return self if self.dtype.kind in "bu" else lax.abs(self)


@lower("aten::angle")
def angle(self: jax.Array, *, outs) -> jax.Array:
    if is_complex(self.dtype):
        return lax.atan2(lax.imag(self), lax.real(self))
    x = convert(self, outs[0].dtype)
    turned = lax.select(
        lax.lt(x, lax.full_like(x, 0)), lax.full_like(x, np.pi), lax.full_like(x, 0)
    )
    return lax.select(lax.ne(x, x), x, turned)


@lower("aten::bitwise_not", refuses="fhc")
def bitwise_not(self: jax.Array) -> jax.Array:
    return lax.bitwise_not(self)


@lower("aten::ceil", refuses="bc")
def ceil(self: jax.Array) -> jax.Array:
    return self if is_integral(self.dtype) else lax.ceil(self)


@lower("aten::_conj_physical", "aten::_conj", "aten::_conj_copy")
def conj_physical(self: jax.Array) -> jax.Array:
    return lax.conj(self) if is_complex(self.dtype) else self


@lower("aten::floor", refuses="bc")
def floor(self: jax.Array) -> jax.Array:
    return self if is_integral(self.dtype) else lax.floor(self)


@lower("aten::frac", refuses="biuc")
def frac(self: jax.Array) -> jax.Array:
    return lax.sub(self, truncate(self))


@lower("aten::isinf", shape="mask")
def isinf(self: jax.Array) -> jax.Array:
    return jnp.isinf(self)


@lower("aten::isnan", shape="mask")
def isnan(self: jax.Array) -> jax.Array:
    return lax.ne(self, self)


def _log_base(x: jax.Array, dtype: np.dtype, base: float, high: float, low: float) -> jax.Array:
    """The logarithm to a base, exact at its powers; `high + low` is that of two."""
    if dtype == np.float64:
        return _log_by_exponent(convert(x, dtype), base, high, low)
    # In float32, log2(2^-124) would be a little more than -124.
    wide = convert(x, np.dtype(np.float64) if dtype == np.float32 else opmath_dtype(dtype))
    return lax.mul(lax.log(wide), lax.full_like(wide, 1 / np.log(base)))


def _log_by_exponent(x: jax.Array, base: float, high: float, low: float) -> jax.Array:
    mantissa, exponent = jnp.frexp(x)
    # [1, 2) for an exponent >= 0, else [1/2, 1): both terms of the sum have the same sign.
    large = exponent > 0
    exponent = jnp.where(large, exponent - 1, exponent).astype(x.dtype)
    rest = lax.log(jnp.where(large, 2 * mantissa, mantissa)) / np.log(base)
    value = (exponent * low + rest) + exponent * high
    return jnp.where((x > 0) & (x < np.inf), value, lax.log(x))


@lower("aten::log10")
def log10(self: jax.Array, *, outs) -> jax.Array:
    # `high` has so few bits that its products with exponents are exact.
    return _log_base(self, outs[0].dtype, 10.0, 0.30102999566361177, 3.694239077158931e-13)


@lower("aten::log2")
def log2(self: jax.Array, *, outs) -> jax.Array:
    return _log_base(self, outs[0].dtype, 2.0, 1.0, 0.0)


@lower("aten::logical_not", shape="mask")
def logical_not(self: jax.Array) -> jax.Array:
    return lax.eq(self, lax.full_like(self, 0))


@lower("aten::logit", constants=True, refuses="c")
def logit(self: jax.Array, eps: float | None = None, *, outs) -> jax.Array:
    x = convert(self, opmath_dtype(outs[0].dtype))
    if eps is not None:
        low, high = lax.full_like(x, eps), lax.full_like(x, 1 - eps)
        x = lax.select(lax.lt(x, low), low, lax.select(lax.gt(x, high), high, x))
    return lax.log(lax.div(x, lax.sub(lax.full_like(x, 1), x)))


@lower("aten::logit_backward", constants=True)
@broadcasting()
def logit_backward(grad_output: jax.Array, self: jax.Array, eps: float | None = None) -> jax.Array:
    x, grad = opmath(self), opmath(grad_output)
    slope = lax.div(grad, lax.mul(x, lax.sub(lax.full_like(x, 1), x)))
    low, high = (0.0, 1.0) if eps is None else (eps, 1 - eps)
    # NaN is not outside.
    outside = lax.bitwise_or(
        lax.lt(x, full(x.shape, low, x.dtype)), lax.gt(x, full(x.shape, high, x.dtype))
    )
    return lax.select(outside, lax.full_like(x, np.nan if eps is None else 0), slope)


@lower("aten::nan_to_num", constants=True, shape="elementwise")
def nan_to_num(
    self: jax.Array,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> jax.Array:
    if is_integral(self.dtype):
        return self
    return jnp.nan_to_num(self, nan=nan or 0.0, posinf=posinf, neginf=neginf)


@lower("aten::mvlgamma", refuses="bc", shares="", numbers="p>=1")
def mvlgamma(self: jax.Array, p: int, *, outs) -> jax.Array:
    x = convert(self, opmath_dtype(outs[0].dtype))
    total = lax.full_like(x, p * (p - 1) / 4 * np.log(np.pi))
    for i in range(p):
        total = lax.add(total, lax.lgamma(lax.sub(x, lax.full_like(x, i / 2))))
    return total


@lower("aten::polygamma", refuses="c")
def polygamma(n: int, self: jax.Array, *, outs) -> jax.Array:
    x = convert(self, opmath_dtype(outs[0].dtype))
    if n < 2:
        return trigamma(x) if n else digamma(x)
    # The terms of even orders cancel each other. The factorial of 170 is the last that is finite.
    x = convert(x, np.dtype(np.float64))
    factorial = math.factorial(n) if n <= 170 else math.inf
    value = lax.mul(zeta(lax.full_like(x, n + 1), x), lax.full_like(x, factorial))
    return value if n % 2 else lax.neg(value)


@lower("aten::reciprocal")
def reciprocal(self: jax.Array, *, outs) -> jax.Array:
    x = convert(self, outs[0].dtype)
    return lax.div(lax.full_like(x, 1), x)


@lower("aten::relu", refuses="bc", shares="", shape="elementwise")
def relu(self: jax.Array) -> jax.Array:
    return lax.max(self, lax.full_like(self, 0))


@lower("aten::round", refuses="bc")
def round_(self: jax.Array) -> jax.Array:
    if is_integral(self.dtype):
        return self
    return lax.round(self, lax.RoundingMethod.TO_NEAREST_EVEN)


@lower("aten::round.decimals", refuses="biuc")
def round_decimals(self: jax.Array, *, decimals: int) -> jax.Array:
    if is_integral(self.dtype):
        return self
    x = opmath(self)
    scale = lax.full_like(x, float(f"1e{abs(decimals)}"))
    if decimals >= 0:
        return target.divide(round_(lax.mul(x, scale)), scale)
    return lax.mul(round_(target.divide(x, scale)), scale)


@lower("aten::sgn")
def sgn(self: jax.Array) -> jax.Array:
    return sign(self)


@lower("aten::sign", refuses="c")
def sign(self: jax.Array) -> jax.Array:
    if self.dtype == np.bool_:
        return self
    if is_float(self.dtype):
        # torch has sign(nan) == 0, and 0 without a sign for both zeros.
        zero = lax.full_like(self, 0)
        return lax.select(lax.gt(lax.abs(self), zero), lax.sign(self), zero)
    return lax.sign(self)


@lower("aten::signbit", refuses="c")
def signbit(self: jax.Array) -> jax.Array:
    if category(self.dtype) == 0:
        return lax.full(self.shape, False)
    return jnp.signbit(self) if is_float(self.dtype) else lax.lt(self, lax.full_like(self, 0))


@lower("aten::trunc", refuses="bc")
def truncate(self: jax.Array) -> jax.Array:
    if is_integral(self.dtype):
        return self
    # Rounds towards zero and keeps the sign of zero.
    return lax.select(lax.lt(self, lax.full_like(self, 0)), lax.ceil(self), lax.floor(self))


@lower("aten::frexp.Tensor")
def frexp(self: jax.Array) -> tuple[jax.Array, jax.Array]:
    mantissa, exponent = jnp.frexp(self)
    return mantissa, exponent


@lower("aten::view_as_real", dense_operand=True)
@lower("aten::view_as_real_copy")
def view_as_real(self: jax.Array) -> jax.Array:
    return jnp.stack([lax.real(self), lax.imag(self)], axis=-1)


@lower("aten::view_as_complex", dense_operand=True)
@lower("aten::view_as_complex_copy")
def view_as_complex(self: jax.Array) -> jax.Array:
    return lax.complex(self[..., 0], self[..., 1])


def entry(name: str) -> Lowering:
    """The lowering of the one-tensor op `name`, for `_foreach_{name}`."""
    return LOWERINGS[f"aten::{name}"]
