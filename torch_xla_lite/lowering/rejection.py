"""Gamma, Poisson and binomial numbers, by rejection of candidates that are drawn in rounds.

    sample = log_gamma(key, jnp.full((8,), 2.5))

Each number depends on the key, on its own parameters and on its index in row-major order alone: a
call for more numbers begins with those of a call for fewer. jax's samplers go on with numbers that
are accepted already while others are not, and their programs take two to three times as long to
compile.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

# From uniform numbers, `[..., draws]`: a number for each element, and which are accepted.
Attempt = Callable[[jax.Array], tuple[jax.Array, jax.Array]]


def open_uniform(key: jax.Array, shape: tuple[int, ...], dtype: np.dtype) -> jax.Array:
    """Uniform numbers in (0, 1). They are multiples of twice the least one, which stands for 0."""
    u = jax.random.uniform(key, shape, dtype)
    return lax.max(u, lax.full_like(u, np.finfo(dtype).epsneg))


def _until_accepted(
    key: jax.Array, shape: tuple[int, ...], dtype: np.dtype, draws: int, attempt: Attempt
) -> jax.Array:
    """The first accepted number of each element."""
    words, impl = jax.random.key_data(key), jax.random.key_impl(key)

    def round_of(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        number, waiting, sample = state
        # Another key for each round. Hashing one, as fold_in does, would add to what is compiled.
        key = jax.random.wrap_key_data(words.at[-1].add(number), impl=impl)
        # The draws of an element are neighbours: their places do not depend on the size.
        u = open_uniform(key, (*shape, draws), dtype)
        candidate, accepted = attempt(u)
        sample = jnp.where(waiting & accepted, candidate, sample)
        return number + 1, waiting & ~accepted, sample

    start = (jnp.zeros((), words.dtype), jnp.ones(shape, bool), jnp.zeros(shape, dtype))
    return lax.while_loop(lambda state: jnp.any(state[1]), round_of, start)[2]


def log_gamma(key: jax.Array, shape: jax.Array) -> jax.Array:
    """Logarithms of numbers of the gamma distribution with these shape parameters; that of a
    parameter itself which is negative, 0, infinite or NaN.

    Source: Marsaglia and Tsang, "A simple method for generating gamma variables".
    """
    dtype = shape.dtype
    is_valid = (shape > 0) & (shape < np.inf)
    is_boosted = shape < 1
    d = jnp.where(is_valid, jnp.where(is_boosted, shape + 1, shape), 1) - 1 / 3
    c = lax.rsqrt(9 * d)

    def attempt(u: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = lax.erf_inv(2 * u[..., 0] - 1) * np.sqrt(2).astype(dtype)
        cube = (1 + c * x) ** 3
        log_cube = jnp.log(cube)
        logs = jnp.log(u[..., 1:])
        is_under = logs[..., 0] < x * x / 2 + d * (1 - cube + log_cube)
        return log_cube + jnp.where(is_boosted, logs[..., 1] / shape, 0), (cube > 0) & is_under

    sample = jnp.log(d) + _until_accepted(key, shape.shape, dtype, 3, attempt)
    return jnp.where(is_valid, sample, jnp.log(shape))


def _invert(u: jax.Array, first: jax.Array, next_: Callable) -> jax.Array:
    """The smallest k whose cumulative probability exceeds `u`.

    Args:
      first: the probability of 0.
      next_: from k and the probability of k - 1, that of k.
    """

    def is_below(state: tuple[jax.Array, ...]) -> jax.Array:
        _, probability, cumulative = state
        return (u >= cumulative) & (probability > 0)

    def step(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        k, probability, cumulative = state
        is_open = is_below(state)
        k = jnp.where(is_open, k + 1, k)
        probability = jnp.where(is_open, next_(k, probability), probability)
        return k, probability, jnp.where(is_open, cumulative + probability, cumulative)

    start = (jnp.zeros_like(u), first, first)
    return lax.while_loop(lambda state: jnp.any(is_below(state)), step, start)[0]


def poisson(key: jax.Array, rate: jax.Array) -> jax.Array:
    """Numbers of the Poisson distribution with these rates, as floats.

    Source: Hoermann, "The transformed rejection method for generating Poisson random variables".
    """
    is_small = ~(rate >= 10)  # Also NaN.
    small = jnp.where(is_small, rate, 0)
    large = jnp.where(is_small, 10, jnp.minimum(rate, _largest(rate)))
    b = 0.931 + 2.53 * jnp.sqrt(large)
    a = -0.059 + 0.02483 * b
    scale = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def attempt(u: jax.Array) -> tuple[jax.Array, jax.Array]:
        inverted = _invert(u[..., 0], jnp.exp(-small), lambda k, before: before * small / k)
        k, bound, is_inside = _transformed(u, a, b, large + 0.43, scale, v_r)
        log_probability = k * jnp.log(large / (k + 1)) - jnp.log(k + 1) / 2 - large + k + 1
        is_accepted = is_inside | (bound <= log_probability - _HALF_LOG_2_PI - _stirling_tail(k))
        return jnp.where(is_small, inverted, k), is_small | ((k >= 0) & is_accepted)

    return _until_accepted(key, rate.shape, rate.dtype, 2, attempt)


def _largest(x: jax.Array) -> float:
    """Far beyond all integers that the dtype holds: nothing is accepted for an infinite number."""
    return float(np.finfo(x.dtype).max) / 16


def _transformed(
    u: jax.Array, a: jax.Array, b: jax.Array, center: jax.Array, scale: jax.Array, v_r: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """A candidate, the logarithm that its probability must reach, and whether it surely does."""
    x, v = u[..., 0] - 0.5, u[..., 1]
    distance = 0.5 - jnp.abs(x)
    slope = a / distance
    k = jnp.floor((2 * slope + b) * x + center)
    bound = jnp.log(v * scale / (slope / distance + b))
    return k, bound, (distance >= 0.07) & (v <= v_r)


_HALF_LOG_2_PI = float(np.log(2 * np.pi) / 2)
_FEW = np.arange(10)
_LOG_FACTORIALS = np.cumsum(np.log(np.maximum(_FEW, 1)))
_TAILS = _LOG_FACTORIALS - (_FEW + 0.5) * np.log(_FEW + 1.0) + (_FEW + 1) - _HALF_LOG_2_PI


def _stirling_tail(k: jax.Array) -> jax.Array:
    """What Stirling's formula lacks: log(k!) - (k + 1/2) log(k + 1) + (k + 1) - log(2 pi) / 2."""
    n = k + 1
    series = (1 / 12 - (1 / 360 - 1 / 1260 / (n * n)) / (n * n)) / n
    few = jnp.asarray(_TAILS, k.dtype)[jnp.clip(k, 0, 9).astype(np.int32)]
    return jnp.where(k < len(_TAILS), few, series)


def binomial(key: jax.Array, count: jax.Array, probability: jax.Array) -> jax.Array:
    """Numbers of the binomial distribution, as floats; NaN where the probability is NaN.

    Source: Hoermann, "The generation of binomial random variates".
    """
    count = jnp.minimum(count, _largest(count))
    is_flipped = probability > 0.5
    p = jnp.where(is_flipped, 1 - probability, probability)
    is_small = ~(count * p >= 10)  # Also NaN.
    small_p = jnp.where(is_small, p, 0)
    odds = small_p / (1 - small_p)
    none = jnp.exp(count * jnp.log1p(-small_p))

    n, p = jnp.where(is_small, 20, count), jnp.where(is_small, 0.5, p)
    deviation = jnp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    scale = (2.83 + 5.1 / b) * deviation
    v_r = 0.92 - 4.2 / b
    mode = jnp.floor((n + 1) * p)
    ratio = p / (1 - p)

    def log_weight(k: jax.Array) -> jax.Array:
        """The logarithm of the probability of k, relative to that of the mode."""
        return (
            (mode + 0.5) * jnp.log((mode + 1) / (k + 1))
            + (n - mode + 0.5) * jnp.log((n - mode + 1) / (n - k + 1))
            + (k - mode) * jnp.log(ratio * (n - k + 1) / (k + 1))
            + (_stirling_tail(mode) + _stirling_tail(n - mode))
            - (_stirling_tail(k) + _stirling_tail(n - k))
        )

    def attempt(u: jax.Array) -> tuple[jax.Array, jax.Array]:
        def next_(k: jax.Array, before: jax.Array) -> jax.Array:
            return before * (count - k + 1) / k * odds

        inverted = jnp.minimum(_invert(u[..., 0], none, next_), count)
        k, bound, is_inside = _transformed(u, a, b, n * p + 0.5, scale, v_r)
        is_possible = (k >= 0) & (k <= n)
        is_accepted = is_possible & (is_inside | (bound <= log_weight(jnp.clip(k, 0, n))))
        return jnp.where(is_small, inverted, k), is_small | is_accepted

    sample = _until_accepted(key, count.shape, count.dtype, 2, attempt)
    sample = jnp.where(is_flipped, count - sample, sample)
    return jnp.where(jnp.isnan(probability) | jnp.isnan(count), np.nan, sample)
