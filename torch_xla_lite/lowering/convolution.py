"""Convolutions in one, two and three dimensions, forward and backward.

A transposed convolution is the gradient of the input of a plain one with the same weight. So three
functions (convolution_forms.py) suffice for six ops.
"""

import jax
import numpy as np
from jax import lax

from torch_xla_lite.lowering.convolution_forms import (
    Window,
    forward,
    input_gradient,
    weight_gradient,
)
from torch_xla_lite.lowering.promotion import convert, opmath
from torch_xla_lite.lowering.registry import lower


def _per_dim(values: list[int], rank: int) -> tuple[int, ...]:
    return tuple(values) * rank if len(values) == 1 else tuple(values)


def _window(
    rank: int, stride: list[int], padding: list[int], dilation: list[int], groups: int
) -> Window:
    pads = tuple((size, size) for size in _per_dim(padding, rank))
    return Window(_per_dim(stride, rank), pads, _per_dim(dilation, rank), groups)


@lower("aten::convolution", "aten::convolution_overrideable")
def convolution(
    input: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
    *,
    outs,
) -> jax.Array:
    if outs[0].shape and np.prod(outs[0].shape) == 0:
        return lax.full(outs[0].shape, 0, outs[0].dtype)
    window = _window(input.ndim - 2, stride, padding, dilation, groups)
    if transposed:
        result = input_gradient(input, weight, outs[0].shape, window)
    else:
        result = forward(input, weight, window)
    return result if bias is None else lax.add(result, _per_channel(bias, result))


@lower("aten::_convolution")
def convolution_with_flags(
    input: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
    *flags: bool,
    outs,
) -> jax.Array:
    return convolution(
        input,
        weight,
        bias,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        outs=outs,
    )


def _per_channel(values: jax.Array, like: jax.Array) -> jax.Array:
    return lax.broadcast_in_dim(convert(values, like.dtype), like.shape, (1,))


@lower("aten::convolution_backward", "aten::convolution_backward_overrideable")
def convolution_backward(
    grad_output: jax.Array,
    input: jax.Array,
    weight: jax.Array,
    bias_sizes: list[int] | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
    output_mask: list[bool],
) -> tuple[jax.Array | None, jax.Array | None, jax.Array | None]:
    window = _window(input.ndim - 2, stride, padding, dilation, groups)
    grad = convert(grad_output, input.dtype)
    grad_input = grad_weight = grad_bias = None
    is_empty = 0 in grad.shape or 0 in input.shape
    if output_mask[0] and is_empty:
        grad_input = lax.full_like(input, 0)
    elif output_mask[0] and transposed:
        grad_input = forward(grad, weight, window)
    elif output_mask[0]:
        grad_input = input_gradient(grad, weight, input.shape, window)
    if output_mask[1] and is_empty:
        grad_weight = lax.full_like(weight, 0)
    elif output_mask[1]:
        ours, theirs = (grad, input) if transposed else (input, grad)
        grad_weight = weight_gradient(ours, theirs, weight.shape, window)
    if output_mask[2]:
        wide = opmath(grad)
        grad_bias = lax.reduce_sum(wide, (0, *range(2, wide.ndim)))
    return grad_input, grad_weight, grad_bias
