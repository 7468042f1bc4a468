"""Random numbers.

Each op gets a key that the recorder derives from the generator's seed and offset, as a runtime
parameter: a new seed compiles nothing. The numbers differ from those of torch's CPU generator, but
their distributions are the same, and equal seeds give equal numbers.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering import rejection, sort
from torch_xla_lite.lowering.base import ffi, target
from torch_xla_lite.lowering.base.checks import check
from torch_xla_lite.lowering.base.ffi import Distribution
from torch_xla_lite.lowering.base.promotion import (
    Operand,
    broadcast,
    convert,
    full,
    is_complex,
    is_integral,
    is_number,
    opmath,
    opmath_dtype,
    real_dtype,
)
from torch_xla_lite.lowering.base.registry import lower

Outs = list[jax.ShapeDtypeStruct]


def keep_mask(key: jax.Array, probability: float, shape: tuple[int, ...]) -> jax.Array:
    """True with the given probability: 32 random bits compared, never converted to floats."""
    if probability >= 1:
        return lax.full(shape, True)
    threshold = np.uint32(min(int(probability * 2**32), 2**32 - 1))
    if target.draws_by_kernels():
        return ffi.keep_mask(key, threshold, shape)
    return lax.lt(jax.random.bits(key, shape, np.uint32), lax.full(shape, threshold, np.uint32))


@lower("aten::_fused_dropout")
@lower("aten::native_dropout", draw="dropout", shape="dropout", refuses="biu", numbers="p>=0 p<=1")
def native_dropout(
    input: jax.Array, p: float, train: bool | None = True, *, key: jax.Array
) -> tuple[jax.Array, jax.Array]:
    if train is False or p == 0:
        return input, lax.full(input.shape, True)
    if p == 1:
        return lax.full_like(input, 0), lax.full(input.shape, False)
    mask = keep_mask(key, 1 - p, input.shape)
    scaled = lax.mul(opmath(input), lax.full_like(opmath(input), 1 / (1 - p)))
    return lax.select(mask, scaled, lax.full_like(scaled, 0)), mask


@lower("aten::native_dropout_backward", shape="dropout_backward")
def native_dropout_backward(
    grad_output: jax.Array, mask: jax.Array, scale: float, *, outs: Outs
) -> jax.Array:
    # A product, because torch keeps a NaN of what was dropped.
    grad = convert(grad_output, opmath_dtype(outs[0].dtype))
    return lax.mul(lax.mul(grad, convert(mask, grad.dtype)), lax.full_like(grad, scale))


# Distributions over the shape of the output. `_uniform` is in [0, 1), `_open_uniform` in (0, 1).


def _wide(out: jax.ShapeDtypeStruct) -> np.dtype:
    return np.dtype(np.float32) if is_integral(out.dtype) else opmath_dtype(out.dtype)


def _struct(out: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(out.shape, _wide(out))


def _parts(key: jax.Array, out: jax.ShapeDtypeStruct, make: Callable) -> tuple[jax.Array, ...]:
    """make(key, out) of the two parts of complex numbers."""
    part = jax.ShapeDtypeStruct(out.shape, real_dtype(out.dtype))
    return tuple(make(each, part) for each in jax.random.split(key))


def _uniform(key: jax.Array, out: jax.ShapeDtypeStruct) -> jax.Array:
    if is_complex(out.dtype):
        return lax.complex(*_parts(key, out, _uniform))
    return jax.random.uniform(key, out.shape, _wide(out))


def _open_uniform(key: jax.Array, out: jax.ShapeDtypeStruct) -> jax.Array:
    return rejection.open_uniform(key, out.shape, _wide(out))


def _normal(key: jax.Array, out: jax.ShapeDtypeStruct) -> jax.Array:
    if is_complex(out.dtype):
        half = [lax.mul(x, lax.full_like(x, np.sqrt(0.5))) for x in _parts(key, out, _normal)]
        return lax.complex(*half)
    if target.draws_by_kernels():
        return ffi.draw(Distribution.NORMAL, key, _struct(out))
    return jax.random.normal(key, out.shape, _wide(out))


def _exponential(key: jax.Array, out: jax.ShapeDtypeStruct) -> jax.Array:
    if target.draws_by_kernels():
        return ffi.draw(Distribution.EXPONENTIAL, key, _struct(out))
    return lax.neg(lax.log(_open_uniform(key, out)))


@lower("aten::rand", draw="rand", refuses_results="biu", shape="random")
@lower("aten::rand.generator", draw="rand", refuses_results="biu")
@lower(
    "aten::rand_like",
    "aten::rand_like.generator",
    draw="rand",
    refuses_results="biu",
    shape="like",
)
def rand(*args: object, outs: Outs, key: jax.Array, **kwargs: object) -> jax.Array:
    return _below_one(_uniform(key, outs[0]), outs[0].dtype)


def _below_one(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """Keeps values below 1: rounding to a 16-bit float may reach 1, which the interval excludes."""
    if dtype == x.dtype:
        return x
    return lax.min(x, lax.full_like(x, float(1 - jnp.finfo(dtype).epsneg)))


@lower("aten::randn", draw="normal", shape="random")
@lower("aten::randn.generator", draw="normal")
@lower(
    "aten::randn_like",
    "aten::randn_like.generator",
    draw="normal",
    refuses_results="biu",
    shape="like",
)
def randn(*args: object, outs: Outs, key: jax.Array, **kwargs: object) -> jax.Array:
    return _normal(key, outs[0])


@lower(
    "aten::uniform",
    draw="uniform",
    refuses="biu",
    refused_if="bad_interval",
)
def uniform(self: jax.Array, from_: float = 0, to: float = 1, *, outs, key) -> jax.Array:
    unit = _below_one(_uniform(key, outs[0]), outs[0].dtype)
    if (from_, to) == (0, 1):
        return unit
    low = complex(from_, from_) if is_complex(unit.dtype) else from_
    return _between(low, to - from_, unit)


def _between(low: Operand, width: Operand, unit: jax.Array) -> jax.Array:
    """`low + width * unit`, whether or not XLA fuses the sum with a product that is not rounded."""
    low, width = (full(unit.shape, number, unit.dtype) for number in (low, width))
    if unit.dtype != np.float32:
        product = lax.mul(unit, width)
        return lax.add(ffi.store(product) if target.draws_by_kernels() else product, low)
    # The product of two floats is exact.
    wide = (lax.convert_element_type(x, np.float64) for x in (unit, width, low))
    return convert(next(wide) * next(wide) + next(wide), unit.dtype)


@lower(
    "aten::normal_functional",
    draw="normal_1",
    shape="elementwise",
    numbers="std>=0",
    runtime_floats="mean std",
    negative="std",
)
def normal(self: object, mean: Operand = 0.0, std: Operand = 1.0, *, outs, key) -> jax.Array:
    x = _normal(key, outs[0])
    if is_number(mean, 0) and is_number(std, 1):
        return x
    return _between(mean, std, x)


@lower(
    "aten::normal.float_float",
    draw="normal_0",
    runtime_floats="mean std",
    negative="std",
    shares="mean=same std=same",
)
def normal_of_size(
    mean: Operand, std: Operand, size: list[int], *, outs, key, **kwargs: object
) -> jax.Array:
    return normal(None, mean, std, outs=outs, key=key)


@lower(
    "aten::normal.Tensor_float",
    "aten::normal.float_Tensor",
    "aten::normal.Tensor_Tensor",
    draw="normal_of",
    shape="elementwise",
    refuses="biuc",
    shares="mean=same std=same",
)
def normal_of(mean: Operand, std: Operand = 1.0, *, outs, key) -> jax.Array:
    x = _normal(key, outs[0])
    if isinstance(std, jax.Array) and not is_complex(std.dtype):
        check(~jnp.all(std >= 0), "normal expects all elements of std >= 0.0", RuntimeError)
    return _between(mean, std, x)


@lower(
    "aten::log_normal",
    draw="log_normal",
    shape="elementwise",
    numbers="std>0",
    runtime_floats="mean std",
    negative="std",
)
def log_normal(self: jax.Array, mean: Operand = 1.0, std: Operand = 2.0, *, outs, key) -> jax.Array:
    if target.draws_by_kernels():
        out = _struct(outs[0])
        parameters = (full(out.shape, x, out.dtype) for x in (mean, std))
        return ffi.draw(Distribution.LOG_NORMAL, key, out, *parameters)
    return lax.exp(normal(self, mean, std, outs=outs, key=key))


@lower(
    "aten::exponential",
    draw="exponential",
    shape="elementwise",
    numbers="lambd>0",
    runtime_floats="lambd",
    negative="lambd",
)
def exponential(self: jax.Array, lambd: Operand = 1.0, *, outs, key) -> jax.Array:
    x = _exponential(key, outs[0])
    # XLA would make this of a quotient.
    scale = lax.div(full((), 1, x.dtype), full((), lambd, x.dtype))
    return lax.mul(x, full(x.shape, scale, x.dtype))


@lower("aten::geometric", draw="geometric", shape="elementwise", numbers="p>0 p<1")
def geometric(self: jax.Array, p: float, *, outs, key) -> jax.Array:
    x = _exponential(key, outs[0])
    return lax.ceil(lax.mul(x, lax.full_like(x, np.divide(-1, np.log1p(-p)))))


@lower(
    "aten::cauchy",
    draw="cauchy",
    shape="elementwise",
    numbers="sigma>0",
    runtime_floats="median sigma",
    negative="sigma",
)
def cauchy(self: jax.Array, median: Operand = 0.0, sigma: Operand = 1.0, *, outs, key) -> jax.Array:
    if target.draws_by_kernels():
        return _between(median, sigma, ffi.draw(Distribution.CAUCHY, key, _struct(outs[0])))
    u = _open_uniform(key, outs[0])
    angle = lax.mul(lax.sub(u, lax.full_like(u, 0.5)), lax.full_like(u, np.pi))
    return _between(median, sigma, lax.tan(angle))


@lower("aten::bernoulli", draw="bernoulli", refuses="biuc", shares="self=same p=same")
@lower(
    "aten::bernoulli.Tensor",
    draw="bernoulli",
    refuses="c",
    shares="self=same p=same",
)
def bernoulli(self: jax.Array, p: jax.Array | None = None, *, outs, key) -> jax.Array:
    probability = opmath(self if p is None else p)
    good = (probability >= 0) & (probability <= 1)
    check(
        ~jnp.all(good), "Expected p_in >= 0 && p_in <= 1 to be true, but got false.", RuntimeError
    )
    u = jax.random.uniform(key, outs[0].shape, np.float32)
    return lax.lt(convert(u, probability.dtype), broadcast(probability, outs[0].shape))


@lower(
    "aten::bernoulli.p",
    draw="bernoulli_p",
    refuses="c",
    shares="self=same p=same",
    numbers="p>=0 p<=1",
)
def bernoulli_p(self: jax.Array, p: float = 0.5, *, outs, key) -> jax.Array:
    return keep_mask(key, p, outs[0].shape)


# Integers.


def _integers(key: jax.Array, out: jax.ShapeDtypeStruct, low: int, high: int) -> jax.Array:
    return jax.random.randint(key, out.shape, low, high, np.int64)


@lower(
    "aten::randint",
    draw="below_0",
    refuses_results="c",
    refused_if="empty_range",
    shape="factory",
)
@lower("aten::randint.generator", draw="below_0", refuses_results="c", refused_if="empty_range")
def randint(high: int, size: list[int], *, dtype=None, outs, key) -> jax.Array:
    return _integers(key, outs[0], 0, high)


@lower(
    "aten::randint.low",
    draw="from_0",
    refuses_results="c",
    refused_if="empty_range",
    shape="factory",
)
@lower("aten::randint.low_generator", draw="from_0", refuses_results="c", refused_if="empty_range")
def randint_low(low: int, high: int, size: list[int], *, dtype=None, outs, key) -> jax.Array:
    return _integers(key, outs[0], low, high)


@lower(
    "aten::randint_like",
    "aten::randint_like.generator",
    shape="like",
    draw="below_1",
    refuses_results="c",
    refused_if="empty_range",
)
def randint_like(self: jax.Array, high: int, *, dtype=None, outs, key) -> jax.Array:
    return _integers(key, outs[0], 0, high)


@lower(
    "aten::randint_like.low_dtype",
    "aten::randint_like.low_generator_dtype",
    shape="like",
    draw="from_1",
    refuses_results="c",
    refused_if="empty_range",
)
def randint_like_low(self: jax.Array, low: int, high: int, *, dtype=None, outs, key) -> jax.Array:
    return _integers(key, outs[0], low, high)


@lower("aten::random.from", draw="from_1", refuses="c", refused_if="empty_range")
def random_from(self: jax.Array, from_: int, to: int | None, *, outs, key) -> jax.Array:
    return _integers(key, outs[0], from_, _default_end(outs[0].dtype) if to is None else to)


@lower("aten::random.to", draw="below_1", refuses="c", refused_if="empty_range")
def random_to(self: jax.Array, to: int, *, outs, key) -> jax.Array:
    return _integers(key, outs[0], 0, to)


@lower("aten::random", draw="random", refuses="c")
def random(self: jax.Array, *, outs, key) -> jax.Array:
    return _integers(key, outs[0], 0, _default_end(outs[0].dtype))


def _default_end(dtype: np.dtype) -> int:
    """The largest n such that all integers up to n are exact in `dtype`."""
    if dtype == np.bool_:
        return 2
    if is_integral(dtype):
        return min(int(np.iinfo(dtype).max) + 1, 2**63 - 1)
    return 2 ** (jnp.finfo(dtype).nmant + 1)


@lower(
    "aten::randperm",
    "aten::randperm.generator",
    draw="permutation",
    refuses_results="bc",
    refused_if="inexact_numbers",
)
def randperm(n: int, *, dtype=None, outs, key) -> jax.Array:
    if n == 0:
        return lax.full((0,), 0, outs[0].dtype)
    return jax.random.permutation(key, n)


@lower(
    "aten::multinomial",
    draw="multinomial",
    shape="multinomial",
    refused_if="misfit_sample",
)
def multinomial(
    self: jax.Array, num_samples: int, replacement: bool = False, *, outs: Outs, key: jax.Array
) -> jax.Array:
    """As in torch's kernel: the categories whose events come first, if their weights are rates."""
    weights = opmath(self)
    draws_once = not replacement or num_samples == 1
    is_bad, is_infinite = ~jnp.all(weights >= 0), ~jnp.all(weights < np.inf)
    if draws_once:
        message = "probability tensor contains either `inf`, `nan` or element < 0"
        check(is_bad | is_infinite, message, RuntimeError)
    else:
        of_entries = "invalid multinomial distribution (encountering probability entry"
        check(is_bad, f"{of_entries} < 0)", RuntimeError)
        check(~is_bad & is_infinite, f"{of_entries} = infinity or NaN)", RuntimeError)
    is_empty = ~is_bad & ~jnp.all(jnp.any(weights > 0, -1))
    check(is_empty, "invalid multinomial distribution (sum of probabilities <= 0)", RuntimeError)
    if draws_once:
        rates = weights / _exponential(key, weights)
        if num_samples == 1:
            return lax.argmax(rates, self.ndim - 1, np.int64)[..., None]
        return convert(lax.top_k(rates, num_samples)[1], np.dtype(np.int64))
    cumulative = jnp.cumsum(weights, -1)
    u = _uniform(key, jax.ShapeDtypeStruct(outs[0].shape, weights.dtype))
    return sort.searchsorted(cumulative, u * cumulative[..., -1:], right=True)


@lower("aten::poisson", draw="poisson", shape="elementwise", refuses="biuc")
def poisson(self: jax.Array, *, outs, key) -> jax.Array:
    message = "invalid Poisson rate, expected rate to be non-negative"
    check(~jnp.all(self >= 0), message, RuntimeError)
    rate = opmath(self)
    if target.draws_by_kernels():
        return ffi.draw(Distribution.POISSON, key, rate, lax.stop_gradient(rate))
    return rejection.poisson(key, rate)


@lower(
    "aten::binomial",
    draw="binomial",
    refuses="biuc",
    one_dtype="count prob",
    shape="elementwise",
)
def binomial(count: jax.Array, prob: jax.Array, *, outs, key) -> jax.Array:
    # torch draws 0 of a negative count, and takes the nearest probability for one out of range.
    trials, p = jnp.maximum(opmath(count), 0), jnp.clip(opmath(prob), 0, 1)
    parameters = [broadcast(x, outs[0].shape) for x in (trials, p)]
    if target.draws_by_kernels():
        constants = map(lax.stop_gradient, parameters)
        return ffi.draw(Distribution.BINOMIAL, key, _struct(outs[0]), *constants)
    return rejection.binomial(key, *parameters)


@lower("aten::_standard_gamma", draw="gamma", shape="elementwise", refuses="biuc")
def standard_gamma(self: jax.Array, *, key) -> jax.Array:
    shape = opmath(self)
    if target.draws_by_kernels():
        sample = ffi.draw(Distribution.GAMMA, key, shape, shape)
    else:
        sample = lax.exp(rejection.log_gamma(key, shape))
    # As in torch, no sample is zero or NaN: programs take the logarithm of samples.
    least = lax.full_like(sample, jnp.finfo(self.dtype).tiny)
    return lax.select(lax.gt(sample, least), sample, least)


@lower("torch_xla_lite::log_gamma", draw="log_gamma", shape="elementwise")
def log_gamma(self: jax.Array, generator: None = None, *, key) -> jax.Array:
    if target.draws_by_kernels():
        return ffi.draw(Distribution.LOG_GAMMA, key, self, self)
    return rejection.log_gamma(key, self)


@lower(
    "aten::rrelu_with_noise_functional",
    draw="rrelu",
    refuses="biuc",
    refused_if="misfit_noise",
)
def rrelu_with_noise(
    self: jax.Array,
    noise: jax.Array,
    lower_: Operand = 0.125,
    upper: Operand = 1 / 3,
    training: bool = False,
    *,
    key,
) -> tuple[jax.Array, jax.Array]:
    x = opmath(self)
    low, high = full(x.shape, lower_, x.dtype), full(x.shape, upper, x.dtype)
    negative = lax.le(x, lax.full_like(x, 0))
    if not training:
        slope = lax.div(lax.add(low, high), lax.full_like(x, 2))
        return lax.select(negative, lax.mul(x, slope), x), noise
    u = jax.random.uniform(key, x.shape, x.dtype)
    drawn = _between(low, lax.sub(high, low), u)
    slope = lax.select(negative, drawn, lax.full_like(x, 1))
    return lax.mul(x, slope), slope
