"""Convolutions in one, two and three dimensions, forward and backward.

A transposed convolution is the gradient of the input of a plain one with the same weight. So three
functions (convolution_forms.py) suffice for six ops, where it is not torch's kernel that is called.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
from jax import lax

from torch_xla_lite.lowering.base.ffi import call_infallible
from torch_xla_lite.lowering.base.mesh import partitioned
from torch_xla_lite.lowering.base.promotion import convert, opmath
from torch_xla_lite.lowering.base.registry import lower
from torch_xla_lite.lowering.convolution_forms import (
    Form,
    Window,
    choose,
    choose_for_weight_gradient,
    forward,
    input_gradient,
    weight_gradient,
)


def _per_dim(values: list[int], rank: int) -> tuple[int, ...]:
    return tuple(values) * rank if len(values) == 1 else tuple(values)


def _window(
    rank: int, stride: list[int], padding: list[int], dilation: list[int], groups: int
) -> Window:
    pads = tuple((size, size) for size in _per_dim(padding, rank))
    return Window(_per_dim(stride, rank), pads, _per_dim(dilation, rank), groups)


def _form(weight: jax.Array, stride: list[int], result: Sequence[int], groups: int) -> Form:
    """Of a plain convolution with a result of this shape, and of its gradients."""
    return choose(weight.dtype, weight.shape, stride, result[0] * math.prod(result[2:]), groups)


def _by_aten(
    op: str, arguments: list, weight: jax.Array, shapes: Sequence[Sequence[int] | None]
) -> list[jax.Array | None]:
    """A call of torch's kernel; None for results that are not wanted."""
    wanted = [shape is not None for shape in shapes]
    structs = [jax.ShapeDtypeStruct(shape, weight.dtype) for shape in shapes if shape is not None]
    arrays = [argument for argument in arguments if isinstance(argument, jax.Array)]

    # Each device or thread has some images, and the whole weight.
    rank = weight.ndim - 2
    images = " ".join(["n", "c", *(f"h{i}" for i in range(rank))])
    results = " ".join(["n", "o", *(f"p{i}" for i in range(rank))])
    weights = " ".join(["q", "i", *(f"k{i}" for i in range(rank))])
    if op == "aten::convolution":
        takes, gives = [images, weights, "b"][: len(arrays)], [results]
    else:
        takes, gives = [results, images, weights], [images, weights, "b"]
    gives = [names for names, want in zip(gives, wanted, strict=True) if want]

    def kernel(
        operands: Sequence[jax.Array], outs: Sequence[jax.ShapeDtypeStruct]
    ) -> list[jax.Array]:
        given, some = iter(operands), iter(outs)
        computed = call_infallible(
            op,
            [next(given) if isinstance(a, jax.Array) else a for a in arguments],
            [next(some) if want else None for want in wanted],
            work_per_byte=math.prod(weight.shape[1:]),
            batched="".join("01"[names.startswith("n")] for names in [*takes, *gives]),
        )
        return [result for result in computed if result is not None]

    computed = iter(partitioned(kernel, arrays, structs, takes=takes, gives=gives, along="n"))
    return [next(computed) if want else None for want in wanted]


@lower(
    "aten::convolution",
    refuses="b",
    one_dtype="input weight bias",
    refused_if="misfit_convolution",
    shape="convolution",
    any_strides=True,
)
@lower("aten::convolution_overrideable")
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
    shape = outs[0].shape
    if 0 in shape:
        return lax.full(shape, 0, outs[0].dtype)
    form = _form(weight, stride, input.shape if transposed else shape, groups)
    if form is not Form.XLA:
        # The caller rounds the result to 16 bits.
        input, weight = opmath(input), opmath(weight)
    if form is Form.ATEN:
        bias = bias if bias is None else convert(bias, input.dtype)
        geometry = (stride, padding, dilation, transposed, output_padding, groups)
        return _by_aten("aten::convolution", [input, weight, bias, *geometry], weight, [shape])[0]
    window = _window(input.ndim - 2, stride, padding, dilation, groups)
    if transposed:
        result = input_gradient(input, weight, shape, window, form)
    else:
        result = forward(input, weight, window, form)
    return result if bias is None else lax.add(result, _per_channel(bias, result))


@lower("aten::_convolution")
def convolution_with_flags(*args: Any, outs) -> jax.Array:
    *of_convolution, _, _, _, _ = args  # The last are settings of cuDNN.
    return convolution(*of_convolution, outs=outs)


def _per_channel(values: jax.Array, like: jax.Array) -> jax.Array:
    return lax.broadcast_in_dim(convert(values, like.dtype), like.shape, (1,))


@lower(
    "aten::convolution_backward",
    any_strides=True,
    completed_by="convolution_backward",
    shape="convolution_backward",
)
@lower("aten::convolution_backward_overrideable")
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
    grad, weight = convert(grad_output, input.dtype), convert(weight, input.dtype)
    # Without input channels torch's result has no channels either, but the bias has.
    shapes = (input.shape, weight.shape, bias_sizes or grad.shape[1:2])
    wanted = [shape if want else None for shape, want in zip(shapes, output_mask, strict=True)]
    if 0 in grad.shape or 0 in input.shape:
        return tuple(shape and lax.full(shape, 0, grad.dtype) for shape in wanted)
    form = _form(weight, stride, input.shape if transposed else grad.shape, groups)
    if form is not Form.XLA:
        grad, input, weight = opmath(grad), opmath(input), opmath(weight)
    window = _window(input.ndim - 2, stride, padding, dilation, groups)
    ours, theirs = (grad, input) if transposed else (input, grad)
    form_of_weight = choose_for_weight_gradient(form, weight.shape, ours.shape, groups)
    grad_input = grad_weight = grad_bias = None
    if output_mask[1] and form_of_weight is not Form.ATEN:
        grad_weight = weight_gradient(ours, theirs, weight.shape, window, form_of_weight)
        wanted[1] = None
    if output_mask[2] and wanted[1] is None:
        # To get it, torch's kernel would compute the weight's gradient, too.
        grad_bias = lax.reduce_sum(opmath(grad), (0, *range(2, grad.ndim)))
        wanted[2] = None
    if form is Form.ATEN:
        mask = [shape is not None for shape in wanted]
        geometry = (stride, padding, dilation, transposed, output_padding, groups)
        arguments = [grad, input, weight, bias_sizes, *geometry, mask]
        if any(mask):
            results = _by_aten("aten::convolution_backward", arguments, weight, wanted)
            grad_input = results[0]
            grad_weight = results[1] if mask[1] else grad_weight
            grad_bias = results[2] if mask[2] else grad_bias
        return grad_input, grad_weight, grad_bias
    if output_mask[0] and transposed:
        grad_input = forward(grad, weight, window, form)
    elif output_mask[0]:
        grad_input = input_gradient(grad, weight, input.shape, window, form)
    return grad_input, grad_weight, grad_bias
