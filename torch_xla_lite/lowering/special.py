"""Bessel and Airy functions, and the orthogonal polynomials of `torch.special`.

XLA has none of these. The Bessel and Airy functions are split as textbooks do: a part with the
singularity or the oscillation, which is elementary, times or plus parts that are smooth. A smooth
part is interpolated at Chebyshev's nodes, where scipy gives its values while jax traces: no table
of coefficients is needed, and float32 takes fewer terms than float64.

The polynomials follow their recurrence, as torch's kernels do.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special

from torch_xla_lite.lowering.base.promotion import Operand, convert, operands, opmath_dtype
from torch_xla_lite.lowering.base.registry import lower


def _scipy() -> ModuleType:
    # Imported here, because few programs need it.
    from scipy import special

    return special


_Function = Callable[[np.ndarray], np.ndarray]


def _interpolated(function: _Function, t: jax.Array) -> jax.Array:
    """`function`, smooth on [-1, 1], at `t`: Clenshaw's sum of its Chebyshev series."""
    coefficients = np.polynomial.chebyshev.chebinterpolate(function, 32)
    # The series ends where rounding hides the rest.
    smallest = np.finfo(t.dtype).eps / 8 * np.abs(coefficients).max()
    count = int(np.nonzero(np.abs(coefficients) > smallest)[0][-1]) + 1
    last, before = jnp.zeros_like(t), jnp.zeros_like(t)
    for coefficient in coefficients[1:count][::-1]:
        last, before = 2 * t * last - before + t.dtype.type(coefficient), last
    return t * last - before + t.dtype.type(coefficients[0])


def _turned(numbers: ModuleType, x: Any) -> tuple[Any, Any]:
    """Cosine and sine of x - pi/4, without the rounding of that difference."""
    cosine, sine = numbers.cos(x), numbers.sin(x)
    root = np.sqrt(0.5).astype(x.dtype)
    return (cosine + sine) * root, (sine - cosine) * root


# Bessel functions of the first and second kind. From _LARGE on they are, with the phase u,
#   J = sqrt(2/(pi x)) (P cos u - Q sin u),  Y = sqrt(2/(pi x)) (P sin u + Q cos u),
# where P and x Q are smooth functions of 1/x².

_LARGE = 8.0


def _phase(numbers: ModuleType, order: int, x: Any) -> tuple[Any, Any]:
    cosine, sine = _turned(numbers, x)
    return (sine, -cosine) if order else (cosine, sine)


def _oscillating(order: int, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """J and Y for x of at least `_LARGE`."""

    def parts(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = _LARGE / np.sqrt((t + 1) / 2)
        first, second = _scipy().jv(order, x), _scipy().yv(order, x)
        cosine, sine = _phase(np, order, x)
        scale = np.sqrt(np.pi * x / 2)
        return scale * (first * cosine + second * sine), scale * (second * cosine - first * sine)

    inverse = _LARGE / x
    t = 2 * inverse * inverse - 1
    p = _interpolated(lambda t: parts(t)[0], t)
    q = _interpolated(lambda t: parts(t)[1] / np.sqrt((t + 1) / 2), t) * inverse
    cosine, sine = _phase(jnp, order, x)
    scale = jnp.sqrt(2 / (np.pi * x)).astype(x.dtype)
    return scale * (p * cosine - q * sine), scale * (p * sine + q * cosine)


def _from_square(t: np.ndarray, limit: float) -> np.ndarray:
    """The x in [0, limit] whose square, scaled to [-1, 1], is t."""
    return limit * np.sqrt((t + 1) / 2)


def _square(x: jax.Array, limit: float) -> jax.Array:
    return 2 * (x / limit) * (x / limit) - 1


def _first_kind_of_small(order: int, x: jax.Array) -> jax.Array:
    def smooth(t: np.ndarray) -> np.ndarray:
        x = _from_square(t, _LARGE)
        return _scipy().jv(order, x) / x**order

    return _interpolated(smooth, _square(x, _LARGE)) * x**order


def _first_kind(order: int, x: jax.Array) -> jax.Array:
    size = jnp.abs(x)
    small = _first_kind_of_small(order, jnp.minimum(size, _LARGE))
    large, _ = _oscillating(order, jnp.maximum(size, _LARGE))
    value = jnp.where(size <= _LARGE, small, large)
    return jnp.where(x < 0, -value, value) if order else value


def _second_kind(order: int, x: jax.Array) -> jax.Array:
    def smooth(t: np.ndarray) -> np.ndarray:
        x = _from_square(t, _LARGE)
        singular = np.log(x) * _scipy().jv(order, x) - order / x
        return (_scipy().yv(order, x) - singular * 2 / np.pi) / x**order

    small = jnp.minimum(x, _LARGE)
    singular = jnp.log(small) * _first_kind_of_small(order, small)
    singular = singular - 1 / small if order else singular
    near = _interpolated(smooth, _square(small, _LARGE)) * small**order + singular * (2 / np.pi)
    _, far = _oscillating(order, jnp.maximum(x, _LARGE))
    value = jnp.where(x <= _LARGE, near, far)
    return jnp.where(x == 0, -np.inf, jnp.where(x < 0, np.nan, value))


# Modified Bessel functions of the second kind. Up to 2 they have a logarithm, beyond they decay.


def _modified_second_kind(order: int, x: jax.Array, scaled: bool) -> jax.Array:
    limit = 2.0

    def near(t: np.ndarray) -> np.ndarray:
        x = _from_square(t, limit)
        log = np.log(x / 2) * (-1) ** order
        return (_scipy().kv(order, x) + log * _scipy().iv(order, x)) * x**order

    def far(t: np.ndarray) -> np.ndarray:
        x = 2 * limit / (t + 1)
        return _scipy().kve(order, x) * np.sqrt(x)

    small, large = jnp.minimum(x, limit), jnp.maximum(x, limit)
    first = special.i1(small) if order else -special.i0(small)
    value = _interpolated(near, _square(small, limit)) / small**order
    value = value + jnp.log(small / 2) * first
    value = value * jnp.exp(small) if scaled else value
    decaying = _interpolated(far, 2 * limit / large - 1) * lax.rsqrt(large)
    decaying = decaying if scaled else decaying * jnp.exp(-large)
    value = jnp.where(x <= limit, value, decaying)
    return jnp.where(x == 0, np.inf, jnp.where(x < 0, np.nan, value))


def _airy(x: jax.Array) -> jax.Array:
    low, high = -4.5, 2.0

    def exponent(x: Any) -> Any:
        return 2 / 3 * abs(x) ** 1.5

    def middle(t: np.ndarray) -> np.ndarray:
        return _scipy().airy(low + (high - low) * (t + 1) / 2)[0]

    def right(t: np.ndarray) -> np.ndarray:
        x = (1.5 * 2 * exponent(high) / (t + 1)) ** (2 / 3)
        return _scipy().airye(x)[0] * x**0.25

    def left(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        zeta = exponent(low) / np.sqrt((t + 1) / 2)
        size = (1.5 * zeta) ** (2 / 3)
        cosine, sine = _turned(np, zeta)
        first, _, second, _ = _scipy().airy(-size) * size**0.25
        return first * cosine - second * sine, first * sine + second * cosine

    center = _interpolated(middle, (jnp.clip(x, low, high) - low) * (2 / (high - low)) - 1)
    large = jnp.maximum(x, high)
    zeta = exponent(large)
    decaying = _interpolated(right, 2 * exponent(high) / zeta - 1) * jnp.exp(-zeta)
    size = jnp.maximum(-x, -low)
    zeta = exponent(size)
    inverse = exponent(low) / zeta
    t = 2 * inverse * inverse - 1
    cosine, sine = _turned(jnp, zeta)
    p = _interpolated(lambda t: left(t)[0], t)
    q = _interpolated(lambda t: left(t)[1] / np.sqrt((t + 1) / 2), t) * inverse
    waves = (p * cosine + q * sine) / size**0.25
    value = jnp.where(x < low, waves, jnp.where(x > high, decaying / large**0.25, center))
    return jnp.where(jnp.isinf(x), np.nan, value)


def _spherical(x: jax.Array) -> jax.Array:
    return jnp.where(x == 0, 1, jnp.where(jnp.isinf(x), 0, jnp.sin(x) / x))


def _register_unary(name: str, function: Callable[[jax.Array], jax.Array]) -> None:
    def lowering(self, *, outs):
        return function(convert(self, opmath_dtype(outs[0].dtype)))

    lower(f"aten::special_{name}")(lowering)


for _name, _function in {
    "airy_ai": _airy,
    "bessel_j0": lambda x: _first_kind(0, x),
    "bessel_j1": lambda x: _first_kind(1, x),
    "bessel_y0": lambda x: _second_kind(0, x),
    "bessel_y1": lambda x: _second_kind(1, x),
    "modified_bessel_i0": special.i0,
    "modified_bessel_i1": special.i1,
    "modified_bessel_k0": lambda x: _modified_second_kind(0, x, scaled=False),
    "modified_bessel_k1": lambda x: _modified_second_kind(1, x, scaled=False),
    "scaled_modified_bessel_k0": lambda x: _modified_second_kind(0, x, scaled=True),
    "scaled_modified_bessel_k1": lambda x: _modified_second_kind(1, x, scaled=True),
    "spherical_bessel_j0": _spherical,
}.items():
    _register_unary(_name, _function)


# Orthogonal polynomials.


def _polynomial(
    n: jax.Array,
    first: jax.Array,
    following: Callable[[jax.Array, jax.Array, jax.Array], jax.Array],
) -> jax.Array:
    """p_n, elementwise, of p_0 = 1, p_1 = `first` and p_(k+1) = `following(k, p_k, p_(k-1))`."""

    def is_unfinished(state: tuple[jax.Array, ...]) -> jax.Array:
        k, last, _ = state
        return jnp.any((k < n) & (last == last))

    def step(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        k, last, before = state
        going = k < n
        value = following(k, last, before)
        return k + 1, jnp.where(going, value, last), jnp.where(going, last, before)

    one = jnp.ones_like(first)
    _, value, _ = lax.while_loop(is_unfinished, step, (jnp.ones((), first.dtype), first, one))
    return jnp.where(n < 0, 0, jnp.where(n == 0, 1, value))


def _chebyshev(kind: str, x: jax.Array, n: jax.Array) -> jax.Array:
    # Inside (-1, 1) the recurrence gets less precise with n; a quotient of cosines or sines does
    # not. torch takes the quotient from the same n on.
    angle = jnp.arccos(jnp.clip(x, -1, 1))
    half = angle / 2
    first, inside, at_one, at_minus_one = {
        "t": (x, jnp.cos(n * angle), 1, 1),
        "u": (2 * x, jnp.sin((n + 1) * angle) / jnp.sin(angle), n + 1, n + 1),
        "v": (2 * x - 1, jnp.cos((n + 0.5) * angle) / jnp.cos(half), 1, 2 * n + 1),
        "w": (2 * x + 1, jnp.sin((n + 0.5) * angle) / jnp.sin(half), 2 * n + 1, 1),
    }[kind]
    is_end = jnp.abs(x) == 1
    is_inside = (jnp.abs(x) < 1) & (n > (6 if kind == "t" else 8))
    steps = jnp.where(is_end | is_inside, jnp.minimum(n, 1), n)
    value = _polynomial(steps, first, lambda k, last, before: 2 * x * last - before)
    end = jnp.where(x > 0, at_one, jnp.where(n % 2 == 0, at_minus_one, -at_minus_one))
    return jnp.where(is_inside, inside, jnp.where(is_end & (n >= 0), end, value))


def _hermite(scale: int, x: jax.Array, n: jax.Array) -> jax.Array:
    """The physicists' (scale 2) and the probabilists' (1). torch has none of a high order."""
    limit = 512 if x.dtype == np.float64 else 128
    value = _polynomial(
        jnp.minimum(n, limit),
        scale * x,
        lambda k, last, before: scale * (x * last - k * before),
    )
    return jnp.where(n > limit, np.nan, value)


def _laguerre(x: jax.Array, n: jax.Array) -> jax.Array:
    return _polynomial(
        jnp.where(x == 0, jnp.minimum(n, 1), n),
        1 - x,
        lambda k, last, before: ((2 * k + 1 - x) * last - k * before) / (k + 1),
    )


def _legendre(x: jax.Array, n: jax.Array) -> jax.Array:
    is_end = jnp.abs(x) == 1
    value = _polynomial(
        jnp.where(is_end, jnp.minimum(n, 1), n),
        x,
        lambda k, last, before: ((2 * k + 1) * x * last - k * before) / (k + 1),
    )
    return jnp.where(is_end & (n > 0) & (n % 2 == 0), 1, value)


def _register_polynomial(name: str, function: Callable[[jax.Array, jax.Array], jax.Array]) -> None:
    def lowering(x: Operand, n: Operand, *, outs):
        out = outs[0]
        x, n = operands(x, n, dtype=opmath_dtype(out.dtype), shape=out.shape)
        # torch converts an order to int64, of which no valid one is too large.
        return function(x, jnp.where(jnp.abs(n) < 2.0**63, jnp.trunc(n), -1))

    lower(*(f"aten::special_{name}{overload}" for overload in ("", ".x_scalar", ".n_scalar")))(
        lowering
    )


def _register_chebyshev(kind: str) -> None:
    _register_polynomial(f"chebyshev_polynomial_{kind}", lambda x, n: _chebyshev(kind, x, n))
    _register_polynomial(
        f"shifted_chebyshev_polynomial_{kind}", lambda x, n: _chebyshev(kind, 2 * x - 1, n)
    )


for _kind in "tuvw":
    _register_chebyshev(_kind)
_register_polynomial("hermite_polynomial_h", lambda x, n: _hermite(2, x, n))
_register_polynomial("hermite_polynomial_he", lambda x, n: _hermite(1, x, n))
_register_polynomial("laguerre_polynomial_l", _laguerre)
_register_polynomial("legendre_polynomial_p", _legendre)
