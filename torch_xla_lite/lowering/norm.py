"""Batch, layer, group and weight normalisation, forward and backward.

Statistics of 16-bit floats are computed in float32. Variances take two passes: the mean of squares
minus the square of the mean would lose all digits if the mean is large. Of bfloat16, values whose
variance would be lost have no digits of it, either.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from torch_xla_lite.lowering.base.promotion import convert, opmath, opmath_dtype
from torch_xla_lite.lowering.base.registry import lower
from torch_xla_lite.lowering.reduction import mean_over, vector_norm

Triple = tuple[jax.Array | None, jax.Array | None, jax.Array | None]


def _at(values: jax.Array, like: jax.Array, dims: tuple[int, ...]) -> jax.Array:
    """Broadcasts `values`, whose dimensions are `dims`, to the shape and dtype of `like`."""
    return lax.broadcast_in_dim(convert(values, like.dtype), like.shape, dims)


def _channel(values: jax.Array, like: jax.Array) -> jax.Array:
    return _at(values, like, (1,))


def _but_channel(x: jax.Array) -> tuple[int, ...]:
    return (0, *range(2, x.ndim))


def _rsqrt(variance: jax.Array, eps: float) -> jax.Array:
    return lax.rsqrt(lax.add(variance, lax.full_like(variance, eps)))


def _affine(
    x: jax.Array, weight: jax.Array | None, bias: jax.Array | None, dims: tuple[int, ...]
) -> jax.Array:
    if weight is not None:
        x = lax.mul(x, _at(weight, x, dims))
    return x if bias is None else lax.add(x, _at(bias, x, dims))


# Batch norm.


def batch_statistics(x: jax.Array, *, one_pass: bool = False) -> tuple[jax.Array, jax.Array]:
    """Mean and biased variance per channel."""
    dims = _but_channel(x)
    center = mean_over(x, dims)
    if one_pass:
        difference = lax.sub(mean_over(lax.mul(x, x), dims), lax.mul(center, center))
        return center, lax.max(difference, lax.full_like(difference, 0))
    offset = lax.sub(x, _channel(center, x))
    return center, mean_over(lax.mul(offset, offset), dims)


def _centered(
    x: jax.Array,
    weight: jax.Array | None,
    bias: jax.Array | None,
    center: jax.Array,
    invstd: jax.Array,
) -> jax.Array:
    scale = invstd if weight is None else lax.mul(invstd, convert(weight, invstd.dtype))
    scaled = lax.mul(lax.sub(x, _channel(center, x)), _channel(scale, x))
    return scaled if bias is None else lax.add(scaled, _channel(bias, x))


def ema_update(running: jax.Array, batch: jax.Array, momentum: float) -> jax.Array:
    """Updates a running statistic: an exponential moving average."""
    old, new = opmath(running), convert(batch, opmath_dtype(running.dtype))
    keep = lax.mul(lax.full_like(old, 1 - momentum), old)
    return lax.add(keep, lax.mul(lax.full_like(old, momentum), new))


def _batch_norm(
    input: jax.Array,
    weight: jax.Array | None,
    bias: jax.Array | None,
    running_mean: jax.Array | None,
    running_var: jax.Array | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array | None, jax.Array | None]:
    """Output, mean, 1/std, and the updated running statistics."""
    x = opmath(input)
    if not training:
        center, variance = opmath(running_mean), opmath(running_var)
        invstd = _rsqrt(variance, eps)
        output = _centered(x, weight, bias, convert(center, x.dtype), convert(invstd, x.dtype))
        return output, center, invstd, running_mean, running_var
    center, variance = batch_statistics(x, one_pass=input.dtype == jnp.bfloat16)
    invstd = _rsqrt(variance, eps)
    output = _centered(x, weight, bias, center, invstd)
    if running_mean is not None:
        running_mean = ema_update(running_mean, center, momentum)
    if running_var is not None:
        count = x.size // x.shape[1] if x.shape[1] else 0
        unbiased = lax.mul(variance, lax.full_like(variance, count / max(count - 1, 1)))
        running_var = ema_update(running_var, unbiased, momentum)
    return output, center, invstd, running_mean, running_var


def _saved(value: jax.Array, out: jax.ShapeDtypeStruct | None) -> jax.Array | None:
    """The saved statistics, or an empty tensor where torch expects one (evaluation)."""
    if out is None or value.shape == out.shape:
        return value
    return lax.full(out.shape, 0, out.dtype)


@lower(
    "aten::native_batch_norm",
    refuses="biuc",
    writes_statistics=True,
    dtype_of_input="weight bias running_mean running_var",
    channels_last=True,
    shape="batch_norm",
)
def native_batch_norm(
    input: jax.Array,
    weight: jax.Array | None,
    bias: jax.Array | None,
    running_mean: jax.Array | None,
    running_var: jax.Array | None,
    training: bool,
    momentum: float,
    eps: float,
    *,
    outs,
) -> tuple[jax.Array | None, ...]:
    output, center, invstd, *_ = _batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )
    return output, _saved(center, outs[1]), _saved(invstd, outs[2])


@lower("aten::_native_batch_norm_legit.no_stats", shape="batch_norm", channels_last=True)
def native_batch_norm_no_stats(*args: Any, outs) -> tuple[jax.Array | None, ...]:
    input, weight, bias, _, momentum, eps = args
    return native_batch_norm(input, weight, bias, None, None, True, momentum, eps, outs=outs)


@lower(
    "aten::_native_batch_norm_legit_no_training",
    dtype_of_input="weight bias running_mean running_var",
    channels_last=True,
)
def native_batch_norm_no_training(*args: Any, outs) -> tuple[jax.Array | None, ...]:
    *tensors, momentum, eps = args
    return native_batch_norm(*tensors, False, momentum, eps, outs=outs)


@lower(
    "aten::_native_batch_norm_legit_functional",
    dtype_of_input="weight bias running_mean running_var",
    channels_last=True,
    shape="batch_norm",
)
def native_batch_norm_functional(*args: Any, outs) -> tuple[jax.Array | None, ...]:
    output, center, invstd, new_mean, new_var = _batch_norm(*args)
    return output, _saved(center, outs[1]), _saved(invstd, outs[2]), new_mean, new_var


@lower("aten::_batch_norm_no_update")
def batch_norm_no_update(*args: Any, outs) -> tuple[jax.Array | None, ...]:
    """torch's meta function says that there are statistics, which its decomposition leaves out."""
    reserve = None if outs[3] is None else lax.full(outs[3].shape, 0, outs[3].dtype)
    return *native_batch_norm_no_training(*args, outs=outs), reserve


@lower("aten::native_batch_norm_backward", shape="batch_norm_backward", channels_last=True)
def native_batch_norm_backward(
    grad_out: jax.Array,
    input: jax.Array,
    weight: jax.Array | None,
    running_mean: jax.Array | None,
    running_var: jax.Array | None,
    save_mean: jax.Array | None,
    save_invstd: jax.Array | None,
    train: bool,
    eps: float,
    output_mask: list[bool],
) -> Triple:
    x, grad = opmath(input), opmath(grad_out)
    if train:
        center, invstd = save_mean, save_invstd
    else:
        center, invstd = running_mean, _rsqrt(opmath(running_var), eps)
    center, invstd = convert(center, x.dtype), convert(invstd, x.dtype)
    dims = _but_channel(x)
    offset = lax.sub(x, _channel(center, x))
    grad_sum = lax.reduce_sum(grad, dims)
    projection = lax.reduce_sum(lax.mul(grad, offset), dims)
    scale = invstd if weight is None else lax.mul(invstd, convert(weight, x.dtype))
    if train:
        count = lax.full_like(center, x.size // x.shape[1])
        share = lax.div(lax.mul(lax.mul(projection, invstd), invstd), count)
        inner = lax.sub(grad, lax.mul(offset, _channel(share, x)))
        inner = lax.sub(inner, _channel(lax.div(grad_sum, count), x))
    else:
        inner = grad
    return (
        # Also where it is not wanted: torch's meta function promises it.
        lax.mul(inner, _channel(scale, x)),
        lax.mul(projection, invstd) if output_mask[1] else None,
        grad_sum if output_mask[2] else None,
    )


# Layer norm: normalises the last dimensions of each row.


def _rows(x: jax.Array, lead: int) -> tuple[int, ...]:
    return tuple(range(lead, x.ndim))


@lower("aten::native_layer_norm", dtype_of_input="weight bias", shape="layer_norm")
def native_layer_norm(
    input: jax.Array,
    normalized_shape: list[int],
    weight: jax.Array | None,
    bias: jax.Array | None,
    eps: float,
    *,
    outs,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    x = opmath(input)
    lead = x.ndim - len(normalized_shape)
    output, center, rstd = layer_norm(x, lead, weight, bias, eps)
    return output, lax.reshape(center, outs[1].shape), lax.reshape(rstd, outs[2].shape)


def layer_norm(
    x: jax.Array, lead: int, weight: jax.Array | None, bias: jax.Array | None, eps: float
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Normalises all but the first `lead` dimensions. Mean and 1/std have only these."""
    rows, outer = _rows(x, lead), tuple(range(lead))
    center = mean_over(x, rows)
    offset = lax.sub(x, _at(center, x, outer))
    rstd = _rsqrt(mean_over(lax.mul(offset, offset), rows), eps)
    return _affine(lax.mul(offset, _at(rstd, x, outer)), weight, bias, rows), center, rstd


@lower("aten::native_layer_norm_backward", shape="layer_norm_backward")
def native_layer_norm_backward(
    grad_out: jax.Array,
    input: jax.Array,
    normalized_shape: list[int],
    mean: jax.Array,
    rstd: jax.Array,
    weight: jax.Array | None,
    bias: jax.Array | None,
    output_mask: list[bool],
) -> Triple:
    x, grad = opmath(input), opmath(grad_out)
    lead = x.ndim - len(normalized_shape)
    rows, outer = _rows(x, lead), tuple(range(lead))
    outer_shape = x.shape[:lead]
    center = convert(lax.reshape(mean, outer_shape), x.dtype)
    scale = convert(lax.reshape(rstd, outer_shape), x.dtype)
    unit = lax.mul(lax.sub(x, _at(center, x, outer)), _at(scale, x, outer))
    scaled = grad if weight is None else lax.mul(grad, _at(weight, grad, rows))
    mean_scaled = mean_over(scaled, rows)
    mean_projected = mean_over(lax.mul(scaled, unit), rows)
    inner = lax.sub(scaled, _at(mean_scaled, x, outer))
    inner = lax.sub(inner, lax.mul(unit, _at(mean_projected, x, outer)))
    return (
        lax.mul(inner, _at(scale, x, outer)) if output_mask[0] else None,
        lax.reduce_sum(lax.mul(grad, unit), outer) if output_mask[1] else None,
        lax.reduce_sum(grad, outer) if output_mask[2] else None,
    )


# Group norm: [N, C, *spatial] viewed as [N, groups, C / groups · spatial].


@lower("aten::native_group_norm", refuses="c", dtype_of_input="weight bias", shape="group_norm")
def native_group_norm(
    input: jax.Array,
    weight: jax.Array | None,
    bias: jax.Array | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    grouped = lax.reshape(opmath(input), (N, group, C // group * HxW))
    output, center, rstd = layer_norm(grouped, 2, None, None, eps)
    output = _affine(lax.reshape(output, (N, C, HxW)), weight, bias, (1,))
    return lax.reshape(output, input.shape), center, rstd


@lower("aten::native_group_norm_backward", shape="group_norm_backward")
def native_group_norm_backward(
    grad_out: jax.Array,
    input: jax.Array,
    mean: jax.Array,
    rstd: jax.Array,
    weight: jax.Array | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: list[bool],
) -> Triple:
    flat, grouped = (N, C, HxW), (N, group, C // group * HxW)
    x, grad = lax.reshape(opmath(input), grouped), lax.reshape(opmath(grad_out), flat)
    center, scale = convert(mean, x.dtype), convert(rstd, x.dtype)
    unit = lax.mul(lax.sub(x, _at(center, x, (0, 1))), _at(scale, x, (0, 1)))
    scaled = grad if weight is None else lax.mul(grad, _channel(weight, grad))
    scaled = lax.reshape(scaled, grouped)
    inner = lax.sub(scaled, _at(mean_over(scaled, (2,)), x, (0, 1)))
    projected = mean_over(lax.mul(scaled, unit), (2,))
    inner = lax.sub(inner, lax.mul(unit, _at(projected, x, (0, 1))))
    grad_input = lax.reshape(lax.mul(inner, _at(scale, x, (0, 1))), input.shape)
    unit = lax.reshape(unit, flat)
    return (
        grad_input if output_mask[0] else None,
        lax.reduce_sum(lax.mul(grad, unit), (0, 2)) if output_mask[1] else None,
        lax.reduce_sum(grad, (0, 2)) if output_mask[2] else None,
    )


# Weight norm: w = g · v / |v|, the norm over all dimensions but `dim`.


@lower("aten::_weight_norm_interface")
def weight_norm_interface(v: jax.Array, g: jax.Array, dim: int = 0) -> tuple[jax.Array, jax.Array]:
    rest = [i for i in range(v.ndim) if i != dim % v.ndim]
    norm = vector_norm(v, 2, rest, True)
    scale = lax.div(convert(g, norm.dtype), norm)
    return lax.mul(opmath(v), lax.broadcast_in_dim(scale, v.shape, range(v.ndim))), norm


@lower("aten::_weight_norm_interface_backward")
def weight_norm_interface_backward(
    grad_w: jax.Array, saved_v: jax.Array, saved_g: jax.Array, saved_norms: jax.Array, dim: int
) -> tuple[jax.Array, jax.Array]:
    _, pull = jax.vjp(lambda v, g: weight_norm_interface(v, g, dim)[0], saved_v, saved_g)
    return pull(opmath(grad_w))
