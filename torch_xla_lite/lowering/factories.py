"""Creates tensors (zeros, full, arange ...), copies them and changes their dtype.

`empty` returns zeros: XLA has no uninitialised values, and a constant costs nothing until it is
used.
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base import target
from torch_xla_lite.lowering.base.promotion import (
    Number,
    Operand,
    broadcast,
    convert,
    full,
    is_integral,
    opmath_dtype,
)
from torch_xla_lite.lowering.base.registry import lower


def _zeros(outs: list[jax.ShapeDtypeStruct]) -> jax.Array:
    return lax.full(outs[0].shape, 0, outs[0].dtype)


@lower("aten::empty.memory_format", zeros=True)
@lower("aten::new_empty", "aten::new_zeros", zeros=True, shape="new")
@lower("aten::zeros", zeros=True, shape="factory")
@lower("aten::zeros_like", zeros=True, shape="like")
@lower("aten::empty_like", zeros=True, shape="like")
@lower("aten::empty_permuted", zeros=True, by_value=False)
@lower("aten::empty_strided", zeros=True, strides="stride")
@lower("aten::new_empty_strided", zeros=True, strides="stride", by_value=False)
@lower("aten::zero", "aten::_efficientzerotensor")
def zeros(*args: object, outs: list[jax.ShapeDtypeStruct], **kwargs: object) -> jax.Array:
    return _zeros(outs)


@lower("aten::new_ones", shape="new")
@lower("aten::ones", shape="factory")
@lower("aten::ones_like", shape="like")
def ones(*args: object, outs: list[jax.ShapeDtypeStruct], **kwargs: object) -> jax.Array:
    return lax.full(outs[0].shape, 1, outs[0].dtype)


@lower("aten::full")
def full_(size: list[int], fill_value: Operand, *, dtype=None, outs) -> jax.Array:
    return full(outs[0].shape, fill_value, outs[0].dtype)


@lower("aten::fill.Scalar", "aten::fill.Tensor")
@lower("aten::full_like", shape="like")
def full_like(self: jax.Array, value: Operand, *, dtype=None, outs) -> jax.Array:
    return full(outs[0].shape, value, outs[0].dtype)


@lower("aten::new_full", shape="new")
def new_full(
    self: jax.Array, size: list[int], fill_value: Operand, *, dtype=None, outs
) -> jax.Array:
    return full(outs[0].shape, fill_value, outs[0].dtype)


@lower("aten::scalar_tensor")
def scalar_tensor(s: Operand, *, dtype=None, outs) -> jax.Array:
    return full((), s, outs[0].dtype)


@lower("aten::arange", constants=True, refuses="bc", shape="range")
def arange_end(end: Number, *, dtype=None, outs) -> jax.Array:
    return _steps(0, 1, outs[0])


@lower("aten::arange.start", constants=True, refuses="bc", shape="range")
def arange_start(start: Number, end: Number, *, dtype=None, outs) -> jax.Array:
    return _steps(start, 1, outs[0])


@lower("aten::arange.start_step", constants=True, refuses="bc", shape="range")
def arange(start: Number, end: Number, step: Number = 1, *, dtype=None, outs) -> jax.Array:
    return _steps(start, step, outs[0])


@lower("aten::range", "aten::range.step", constants=True)
def range_(start: Number, end: Number, step: Number = 1, *, dtype=None, outs) -> jax.Array:
    return _steps(start, step, outs[0])


def _steps(start: Number, step: Number, out: jax.ShapeDtypeStruct) -> jax.Array:
    dtype = opmath_dtype(out.dtype)
    if is_integral(dtype):
        start, step = int(start), int(step)
    counted = lax.iota(dtype, out.shape[0])
    if step != 1:
        counted = lax.mul(counted, lax.full_like(counted, step))
    return lax.add(counted, lax.full_like(counted, start)) if start else counted


_WITH_TENSORS = (".Tensor_Tensor", ".Tensor_Scalar", ".Scalar_Tensor")


@lower(
    "aten::linspace",
    *(f"aten::linspace{overload}" for overload in _WITH_TENSORS),
    constants=True,
    refuses="b",
)
def linspace(start: Operand, end: Operand, steps: int, *, dtype=None, outs) -> jax.Array:
    # As torch does: computed from both ends, so that the last value is exactly `end`.
    out = outs[0]
    ends = _as_elements(start, end, out.dtype)
    compute = np.dtype(np.float64) if is_integral(out.dtype) else opmath_dtype(out.dtype)
    if steps == 1:
        return full(out.shape, ends[0], out.dtype)
    return convert(evenly_spaced(*ends, steps, compute), out.dtype)


def _as_elements(start: Operand, end: Operand, dtype: np.dtype) -> tuple[Operand, Operand]:
    """Both ends as torch reads them: as integers, for an integer dtype."""
    if not is_integral(dtype):
        return start, end
    if isinstance(start, (int, float)) and isinstance(end, (int, float)):
        return tuple(np.asarray([int(start), int(end)]).astype(dtype).tolist())
    return convert(start, dtype), convert(end, dtype)


def evenly_spaced(start: Operand, end: Operand, steps: int, dtype: np.dtype) -> jax.Array:
    """Numbers from `start` to `end`, computed in the graph: constants would be part of its text."""
    first, last = (convert(x, dtype) for x in (start, end))
    if steps < 2:
        return jnp.full((steps,), first, dtype)
    step = target.divide(last - first, jnp.asarray(steps - 1, dtype))
    index = lax.iota(np.int64, steps)
    rising = first + step * index.astype(dtype)
    falling = last - step * (steps - index - 1).astype(dtype)
    return jnp.where(index < steps // 2, rising, falling)


@lower(
    "aten::logspace",
    *(f"aten::logspace{overload}" for overload in _WITH_TENSORS),
    constants=True,
    refuses="b",
)
def logspace(
    start: Operand, end: Operand, steps: int, base: float = 10.0, *, dtype=None, outs
) -> jax.Array:
    ends = _as_elements(start, end, outs[0].dtype)
    exponents = evenly_spaced(*ends, steps, np.dtype(np.float64))
    return convert(base**exponents, outs[0].dtype)


@lower("aten::eye", "aten::eye.m", shape="eye")
def eye(*args: object, dtype=None, outs: list[jax.ShapeDtypeStruct]) -> jax.Array:
    shape = outs[0].shape
    same = lax.eq(
        lax.broadcasted_iota(np.int32, shape, 0), lax.broadcasted_iota(np.int32, shape, 1)
    )
    return convert(same, outs[0].dtype)


@lower("aten::tril_indices")
def tril_indices(row: int, col: int, offset: int = 0, *, dtype=None, outs) -> jax.Array:
    rows = jnp.arange(row)
    return _indices(rows, jnp.zeros_like(rows), jnp.clip(rows + offset + 1, 0, col), outs[0])


@lower("aten::triu_indices")
def triu_indices(row: int, col: int, offset: int = 0, *, dtype=None, outs) -> jax.Array:
    rows = jnp.arange(row)
    first = jnp.clip(rows + offset, 0, col)
    return _indices(rows, first, col - first, outs[0])


def _indices(
    rows: jax.Array, first: jax.Array, counts: jax.Array, out: jax.ShapeDtypeStruct
) -> jax.Array:
    """Row and column of each element, where a row has `counts` elements from column `first` on.

    Computed in the graph: as a constant they would be part of its text.
    """
    total = out.shape[1]
    of_element = jnp.repeat(rows, counts, total_repeat_length=total)
    shift = first - (jnp.cumsum(counts) - counts)
    columns = jnp.arange(total) + jnp.repeat(shift, counts, total_repeat_length=total)
    return convert(jnp.stack([of_element, columns]), out.dtype)


@lower(
    "aten::alias",
    "aten::alias_copy",
    "aten::detach",
    "aten::detach_copy",
    "aten::lift",
    "aten::lift_fresh",
    "aten::lift_fresh_copy",
    "aten::_lazy_clone",
    "aten::_fw_primal",
    "aten::_fw_primal_copy",
)
@lower("aten::clone", shares="", any_strides=True)
def identity(self: jax.Array, *args: object) -> jax.Array:
    return self


@lower("aten::copy", "aten::_copy_from")
def copy(self: jax.Array, src: Operand, *, outs) -> jax.Array:
    return broadcast(convert(src, outs[0].dtype), outs[0].shape)


@lower("aten::_to_copy", any_strides=True)
def to_copy(self: jax.Array, *, dtype=None, outs) -> jax.Array:
    return convert(self, outs[0].dtype)


# Windows and frequencies, computed in the graph for the same reason, by torch's formulas.


def _numbers(out: jax.ShapeDtypeStruct) -> jax.Array:
    """0, 1, 2 and so on, in the dtype in which the elements are computed."""
    return lax.iota(np.promote_types(opmath_dtype(out.dtype), np.float32), out.shape[0])


def _last(out: jax.ShapeDtypeStruct, periodic: bool) -> int:
    """The number of the last element; of a periodic window that is the first of the next one."""
    return max(out.shape[0] - 1 + periodic, 1)


def _cosine_window(
    out: jax.ShapeDtypeStruct, periodic: bool, coefficients: Sequence[float]
) -> jax.Array:
    """c[0] + c[1] cos(angle) + c[2] cos(2 angle) + ..."""
    numbers = _numbers(out)
    if out.shape == (1,):
        return jnp.ones_like(numbers)
    total = jnp.zeros_like(numbers)
    for multiple, coefficient in reversed([*enumerate(coefficients)]):
        total += coefficient * lax.cos(numbers * (2 * np.pi * multiple / _last(out, periodic)))
    return total


@lower("aten::hann_window", "aten::hann_window.periodic", refuses="biu")
def hann_window(window_length: int, periodic: bool = True, *, dtype=None, outs) -> jax.Array:
    return _cosine_window(outs[0], periodic, (0.5, -0.5))


@lower(
    *("aten::hamming_window", "aten::hamming_window.periodic"),
    *("aten::hamming_window.periodic_alpha", "aten::hamming_window.periodic_alpha_beta"),
    refuses="biu",
)
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype=None,
    outs,
) -> jax.Array:
    return _cosine_window(outs[0], periodic, (alpha, -beta))


@lower("aten::blackman_window", "aten::blackman_window.periodic", refuses="biu")
def blackman_window(window_length: int, periodic: bool = True, *, dtype=None, outs) -> jax.Array:
    return _cosine_window(outs[0], periodic, (0.42, -0.5, 0.08))


@lower("aten::bartlett_window", "aten::bartlett_window.periodic", refuses="biu")
def bartlett_window(window_length: int, periodic: bool = True, *, dtype=None, outs) -> jax.Array:
    numbers, last = _numbers(outs[0]), _last(outs[0], periodic)
    if outs[0].shape == (1,):
        return jnp.ones_like(numbers)
    rising = numbers * (2 / last)
    return jnp.where(numbers <= last // 2, rising, 2 - rising)


@lower(
    "aten::kaiser_window", "aten::kaiser_window.periodic", "aten::kaiser_window.beta", refuses="biu"
)
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype=None, outs
) -> jax.Array:
    numbers, last = _numbers(outs[0]), _last(outs[0], periodic)
    if outs[0].shape == (1,):
        return jnp.ones_like(numbers)

    def i0(x: jax.Array) -> jax.Array:
        return lax.exp(lax.abs(x)) * lax.bessel_i0e(x)

    x = numbers * (2 / last) - 1
    arch = lax.sqrt(lax.max(1 - x * x, jnp.zeros_like(x)))
    return target.divide(i0(beta * arch), i0(lax.full_like(x, beta)))


def _inverse(x: float) -> float:
    return 1 / x if x else math.copysign(math.inf, x)


@lower("aten::fft_fftfreq")
def fft_fftfreq(n: int, d: float = 1.0, *, dtype=None, outs) -> jax.Array:
    numbers = _numbers(outs[0])
    return jnp.where(numbers < (n + 1) // 2, numbers, numbers - n) * _inverse(n * d)


@lower("aten::fft_rfftfreq")
def fft_rfftfreq(n: int, d: float = 1.0, *, dtype=None, outs) -> jax.Array:
    return _numbers(outs[0]) * _inverse(n * d)
