"""Convolutions in one, two and three dimensions, forward and backward.

Each op is one XLA convolution. Convolutions are linear, so all gradients are computed by
`jax.linear_transpose` and need no formulas.
"""

import dataclasses
import functools

import jax
import numpy as np
from jax import lax

from torch_xla_lite.lowering.promotion import convert, opmath
from torch_xla_lite.lowering.registry import lower


@dataclasses.dataclass(frozen=True, slots=True)
class Geometry:
    """The parameters of a convolution, one number per spatial dimension."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int


def _per_dim(values: list[int], rank: int) -> tuple[int, ...]:
    return tuple(values) * rank if len(values) == 1 else tuple(values)


def _geometry(
    rank: int,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
) -> Geometry:
    return Geometry(
        _per_dim(stride, rank),
        _per_dim(padding, rank),
        _per_dim(dilation, rank),
        transposed,
        _per_dim(output_padding, rank),
        groups,
    )


def convolve(x: jax.Array, weight: jax.Array, geometry: Geometry) -> jax.Array:
    """One convolution.

    Args:
      x: `[batch, in, *spatial]`.
      weight: `[out, in / groups, *window]`; transposed `[in, out / groups, *window]`.
      geometry: all other parameters.
    """
    return _transposed(x, weight, geometry) if geometry.transposed else _plain(x, weight, geometry)


def _plain(x: jax.Array, weight: jax.Array, geometry: Geometry) -> jax.Array:
    layout = tuple(range(x.ndim))
    return lax.conv_general_dilated(
        x,
        weight,
        geometry.stride,
        [(pad, pad) for pad in geometry.padding],
        rhs_dilation=geometry.dilation,
        dimension_numbers=lax.ConvDimensionNumbers(layout, layout, layout),
        feature_group_count=geometry.groups,
    )


def _transposed(x: jax.Array, weight: jax.Array, geometry: Geometry) -> jax.Array:
    groups = geometry.groups
    channels, per_group, *window = weight.shape
    # [in, out / groups] -> [out, in / groups], the window mirrored.
    grouped = lax.reshape(weight, (groups, channels // groups, per_group, *window))
    swapped = lax.transpose(grouped, (0, 2, 1, *range(3, grouped.ndim)))
    kernel = lax.reshape(swapped, (groups * per_group, channels // groups, *window))
    kernel = lax.rev(kernel, tuple(range(2, kernel.ndim)))
    padding = []
    for size, pad, dilation, extra in zip(
        window, geometry.padding, geometry.dilation, geometry.output_padding, strict=True
    ):
        reach = dilation * (size - 1) - pad
        padding.append((reach, reach + extra))
    layout = tuple(range(x.ndim))
    return lax.conv_general_dilated(
        x,
        kernel,
        (1,) * len(window),
        padding,
        lhs_dilation=geometry.stride,
        rhs_dilation=geometry.dilation,
        dimension_numbers=lax.ConvDimensionNumbers(layout, layout, layout),
        feature_group_count=groups,
    )


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
    rank = input.ndim - 2
    geometry = _geometry(rank, stride, padding, dilation, transposed, output_padding, groups)
    result = convolve(input, weight, geometry)
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
    geometry = _geometry(
        input.ndim - 2, stride, padding, dilation, transposed, output_padding, groups
    )
    grad = convert(grad_output, input.dtype)
    grad_input = grad_weight = grad_bias = None
    if output_mask[0]:
        of_input = functools.partial(convolve, weight=weight, geometry=geometry)
        grad_input = _pull_back(of_input, input, grad)
    if output_mask[1]:
        grad_weight = _pull_back(lambda w: convolve(input, w, geometry), weight, grad)
    if output_mask[2]:
        wide = opmath(grad)
        grad_bias = lax.reduce_sum(wide, (0, *range(2, wide.ndim)))
    return grad_input, grad_weight, grad_bias


def _pull_back(linear, of: jax.Array, grad: jax.Array) -> jax.Array:
    if 0 in grad.shape or 0 in of.shape:
        return lax.full_like(of, 0)
    return jax.linear_transpose(linear, jax.ShapeDtypeStruct(of.shape, of.dtype))(grad)[0]
