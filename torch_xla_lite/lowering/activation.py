"""Activation functions and their gradients.

Formulas and their edge cases (the value exactly at a kink) are those of torch; 16-bit floats are
computed in float32, unless torch rounds numbers to 16 bits, too.
"""

import jax
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base.promotion import (
    Operand,
    broadcasting,
    convert,
    full,
    opmath,
)
from torch_xla_lite.lowering.base.registry import lower
from torch_xla_lite.lowering.loss import softplus as log1p_exp


def _like(x: jax.Array, value: Operand) -> jax.Array:
    return full(x.shape, value, x.dtype)


@lower("aten::threshold", refuses="bc", shares="")
def threshold(self: jax.Array, threshold: Operand, value: Operand) -> jax.Array:
    x = opmath(self)
    return lax.select(lax.le(x, _like(x, threshold)), _like(x, value), x)


@lower("aten::threshold_backward")
@broadcasting()
def threshold_backward(
    grad_output: jax.Array, self: jax.Array, threshold: Operand, *, outs
) -> jax.Array:
    x, grad = opmath(self), convert(grad_output, outs[0].dtype)
    return lax.select(lax.le(x, _like(x, threshold)), _like(grad, 0), grad)


@lower("aten::tanh_backward")
@broadcasting()
def tanh_backward(grad_output: jax.Array, output: jax.Array) -> jax.Array:
    grad, y = opmath(grad_output), opmath(output)
    square = lax.mul(y, y)
    if y.dtype.kind == "c":
        square = lax.conj(square)
    return lax.mul(grad, lax.sub(_like(y, 1), square))


@lower("aten::gelu", refuses="biuc", refused_if="unknown_approximation")
def gelu(self: jax.Array, *, approximate: str = "none") -> jax.Array:
    x = opmath(self)
    half = lax.mul(_like(x, 0.5), x)
    if approximate == "tanh":
        return lax.mul(half, lax.add(_like(x, 1), lax.tanh(_tanh_argument(x))))
    return lax.mul(half, lax.add(_like(x, 1), lax.erf(lax.mul(x, _like(x, np.sqrt(0.5))))))


_KAPPA = 0.044715
_BETA = float(np.sqrt(2 / np.pi))


def _tanh_argument(x: jax.Array) -> jax.Array:
    cube = lax.mul(lax.mul(x, x), x)
    return lax.mul(_like(x, _BETA), lax.add(x, lax.mul(_like(x, _KAPPA), cube)))


@lower("aten::gelu_backward", refused_if="unknown_approximation")
@broadcasting()
def gelu_backward(
    grad_output: jax.Array, self: jax.Array, *, approximate: str = "none"
) -> jax.Array:
    x, grad = opmath(self), opmath(grad_output)
    half, one = _like(x, 0.5), _like(x, 1)
    if approximate == "tanh":
        inner = lax.tanh(_tanh_argument(x))
        left = lax.mul(half, lax.add(one, inner))
        growth = lax.add(one, lax.mul(_like(x, 3 * _KAPPA), lax.mul(x, x)))
        slope = lax.mul(lax.sub(one, lax.mul(inner, inner)), lax.mul(_like(x, _BETA), growth))
        return lax.mul(grad, lax.add(left, lax.mul(lax.mul(half, x), slope)))
    cdf = lax.mul(half, lax.add(one, lax.erf(lax.mul(x, _like(x, np.sqrt(0.5))))))
    pdf = lax.mul(lax.exp(lax.mul(lax.mul(x, x), _like(x, -0.5))), _like(x, 1 / np.sqrt(2 * np.pi)))
    return lax.mul(grad, lax.add(cdf, lax.mul(x, pdf)))


@lower("aten::silu", refuses="biu")
def silu(self: jax.Array) -> jax.Array:
    x = opmath(self)
    return lax.mul(x, lax.logistic(x))


@lower("aten::silu_backward", kernel="recorder")
@broadcasting()
def silu_backward(grad_output: jax.Array, self: jax.Array) -> jax.Array:
    x, grad = opmath(self), opmath(grad_output)
    s, one = lax.logistic(x), _like(x, 1)
    return lax.mul(grad, lax.mul(s, lax.add(one, lax.mul(x, lax.sub(one, s)))))


@lower("aten::mish", refuses="biuc")
def mish(self: jax.Array) -> jax.Array:
    x = opmath(self)
    return lax.mul(x, lax.tanh(log1p_exp(x)))


@lower("aten::mish_backward", kernel="recorder", shape="elementwise")
@broadcasting()
def mish_backward(grad_output: jax.Array, self: jax.Array) -> jax.Array:
    x, grad = opmath(self), opmath(grad_output)
    inner, one = lax.tanh(log1p_exp(x)), _like(x, 1)
    slope = lax.mul(lax.mul(x, lax.logistic(x)), lax.sub(one, lax.mul(inner, inner)))
    return lax.mul(grad, lax.add(inner, slope))


@lower("aten::softplus", refuses="biuc")
def softplus(self: jax.Array, beta: Operand = 1, threshold: Operand = 20) -> jax.Array:
    x = opmath(self)
    scaled = lax.mul(x, _like(x, beta))
    is_linear = lax.gt(scaled, _like(x, threshold))
    # Not where it is infinite, because its derivative is no number there.
    exponential = lax.exp(lax.select(is_linear, _like(x, 0), scaled))
    return lax.select(is_linear, x, lax.div(lax.log1p(exponential), _like(x, beta)))


@lower("aten::softplus_backward")
@broadcasting()
def softplus_backward(
    grad_output: jax.Array, self: jax.Array, beta: Operand, threshold: Operand
) -> jax.Array:
    x, grad = opmath(self), opmath(grad_output)
    scaled = lax.mul(x, _like(x, beta))
    linear = lax.gt(scaled, _like(x, threshold))
    return lax.select(linear, grad, lax.mul(grad, lax.logistic(scaled)))


@lower("aten::log_sigmoid_forward", refuses="biuc", shape="like_both")
def log_sigmoid_forward(self: jax.Array, *, outs) -> tuple[jax.Array, jax.Array]:
    # The second output is a buffer for the CPU kernel; the backward below does not need it.
    return lax.neg(log1p_exp(lax.neg(opmath(self)))), lax.full(outs[1].shape, 0, outs[1].dtype)


@lower("aten::log_sigmoid_backward", shape="like_all")
@broadcasting()
def log_sigmoid_backward(grad_output: jax.Array, self: jax.Array, buffer: jax.Array) -> jax.Array:
    return lax.mul(opmath(grad_output), lax.logistic(lax.neg(opmath(self))))


@lower("aten::elu", refuses="biuc")
def elu(
    self: jax.Array, alpha: Operand = 1, scale: Operand = 1, input_scale: Operand = 1
) -> jax.Array:
    x = opmath(self)
    is_negative, low = _negative_part(x)
    negative = lax.mul(lax.expm1(lax.mul(low, _like(x, input_scale))), _like(x, alpha))
    return lax.mul(lax.select(is_negative, negative, x), _like(x, scale))


def _negative_part(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Where `x` is negative, and `x` there, 0 elsewhere: the derivative of an exponential function
    that overflows is no number."""
    zero = _like(x, 0)
    is_negative = lax.lt(x, zero)
    return is_negative, lax.select(is_negative, x, zero)


@lower("aten::celu", shape="elementwise", refuses="biuc", divides="all", shares="")
def celu(self: jax.Array, alpha: Operand = 1.0) -> jax.Array:
    x = opmath(self)
    height = _like(x, alpha)
    is_negative, low = _negative_part(x)
    return lax.select(is_negative, lax.mul(height, lax.expm1(lax.div(low, height))), x)


@lower("aten::leaky_relu", refuses="biuc")
def leaky_relu(self: jax.Array, negative_slope: Operand = 0.01) -> jax.Array:
    x = opmath(self)
    return lax.select(lax.gt(x, _like(x, 0)), x, lax.mul(x, _like(x, negative_slope)))


@lower("aten::leaky_relu_backward", negative="negative_slope")
@broadcasting()
def leaky_relu_backward(
    grad_output: jax.Array, self: jax.Array, negative_slope: Operand, self_is_result: bool
) -> jax.Array:
    x, grad = opmath(self), opmath(grad_output)
    return lax.select(lax.gt(x, _like(x, 0)), grad, lax.mul(grad, _like(x, negative_slope)))


@lower("aten::hardtanh", refuses="c", shape="elementwise")
def hardtanh(self: jax.Array, min_val: Operand = -1, max_val: Operand = 1) -> jax.Array:
    return lax.min(lax.max(self, _like(self, min_val)), _like(self, max_val))


@lower("aten::hardtanh_backward", shape="elementwise")
@broadcasting()
def hardtanh_backward(
    grad_output: jax.Array, self: jax.Array, min_val: Operand, max_val: Operand
) -> jax.Array:
    x = opmath(self)
    # NaN is not outside.
    outside = lax.bitwise_or(lax.le(x, _like(x, min_val)), lax.ge(x, _like(x, max_val)))
    return lax.select(outside, _like(grad_output, 0), grad_output)


def _gate(x: jax.Array) -> jax.Array:
    return lax.clamp(np.array(0, x.dtype), lax.add(x, _like(x, 3)), np.array(6, x.dtype))


@lower("aten::hardsigmoid", refuses="biuc")
def hardsigmoid(self: jax.Array) -> jax.Array:
    x = opmath(self)
    return lax.div(_gate(x), _like(x, 6))


@lower("aten::hardsigmoid_backward")
@broadcasting()
def hardsigmoid_backward(grad_output: jax.Array, self: jax.Array) -> jax.Array:
    x, grad = opmath(self), opmath(grad_output)
    inside = lax.bitwise_and(lax.gt(x, _like(x, -3)), lax.lt(x, _like(x, 3)))
    # torch rounds the slope to float32, for float64 too.
    slope = _like(x, float(np.float32(1 / 6)))
    return lax.select(inside, lax.mul(grad, slope), _like(x, 0))


@lower("aten::hardswish", refuses="biuc", shape="elementwise")
def hardswish(self: jax.Array) -> jax.Array:
    x = opmath(self)
    return lax.div(lax.mul(x, _gate(x)), _like(x, 6))


@lower("aten::hardswish_backward", shape="elementwise")
@broadcasting()
def hardswish_backward(grad_output: jax.Array, self: jax.Array) -> jax.Array:
    x, grad = opmath(self), opmath(grad_output)
    middle = lax.mul(grad, lax.add(lax.div(x, _like(x, 3)), _like(x, 0.5)))
    inner = lax.select(lax.lt(x, _like(x, 3)), middle, grad)
    return lax.select(lax.le(x, _like(x, -3)), _like(x, 0), inner)


def _within(x: jax.Array, lambd: Operand) -> jax.Array:
    """Here torch's kernels round the number to halves first."""
    edge = _like(x, lambd)
    return lax.bitwise_and(lax.ge(x, lax.neg(edge)), lax.le(x, edge))


@lower("aten::hardshrink_backward", negative="lambd")
@broadcasting()
def hardshrink_backward(grad_out: jax.Array, self: jax.Array, lambd: Operand) -> jax.Array:
    return lax.select(_within(self, lambd), _like(grad_out, 0), grad_out)


@lower("aten::softshrink", refuses="c", negative="lambd")
def softshrink(self: jax.Array, lambd: Operand = 0.5) -> jax.Array:
    x = opmath(self)
    edge = _like(x, lambd)
    above = lax.sub(x, edge)
    below = lax.add(x, edge)
    # Multiplying by zero propagates NaN.
    middle = lax.mul(x, _like(x, 0))
    inner = lax.select(lax.lt(x, lax.neg(edge)), below, middle)
    return lax.select(lax.gt(x, edge), above, inner)


@lower("aten::softshrink_backward", negative="lambd")
@broadcasting()
def softshrink_backward(grad_output: jax.Array, self: jax.Array, lambd: Operand) -> jax.Array:
    return lax.select(_within(self, lambd), _like(grad_output, 0), grad_output)
