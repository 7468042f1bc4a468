"""Isotonic regression: the monotonic sequence that is nearest to a sequence, with gradient.

    scores = torch.tensor([1.0, 3.0, 2.0, 4.0], device="jax")
    xla_isotonic.fit(scores)                # 1, 2.5, 2.5, 4
    xla_isotonic.fit(scores, upper=3.0)     # 1, 2.5, 2.5, 3

How far a block of equal values reaches depends on the data. XLA, which must know shapes and trip
counts, needs n² operations for what a stack does in one pass over n. So on device 'jax' the op
calls C++ or CUDA code (isotonic.h), in the same graph as its neighbours.
"""

import importlib.util
import math

import jax
import torch

import torch_xla_lite
from torch_xla_lite.utils import cpp_extension

__all__ = ["fit", "pool"]

_HANDLERS = {"xla_isotonic.fit": "XlaIsotonicFit", "xla_isotonic.pool": "XlaIsotonicPool"}
cpp_extension.register_ffi_library("xla_isotonic._handlers", _HANDLERS)
# It is part of the package if it was built where there was a CUDA toolkit, and loads without CUDA.
if importlib.util.find_spec("xla_isotonic._cuda_handlers"):
    cpp_extension.register_ffi_library("xla_isotonic._cuda_handlers", _HANDLERS, platform="CUDA")


@torch.library.custom_op("xla_isotonic::fit", mutates_args=(), device_types="cpu")
def fit(
    values: torch.Tensor,
    increasing: bool = True,
    lower: float | None = None,
    upper: float | None = None,
) -> torch.Tensor:
    """The non-decreasing sequence nearest to each row, in the sum of squares.

    Args:
      values: `[..., n]`, float32 or float64.
      increasing: False for the nearest non-increasing sequence.
      lower, upper: limits of the result.

    Returns:
      `[..., n]`, the dtype of `values`.
    """
    _check(values.dtype, values.dim())
    if not increasing:
        return -fit(-values, lower=_negated(upper), upper=_negated(lower))
    # Element i is the largest, over starts up to i, of the smallest mean of the values from that
    # start to i or beyond.
    count = values.shape[-1]
    sums = torch.nn.functional.pad(values.cumsum(-1), (1, 0))
    lengths = torch.arange(1, count + 1) - torch.arange(count)[:, None]
    means = (sums[..., None, 1:] - sums[..., :-1, None]) / lengths
    smallest = means.masked_fill(lengths < 1, torch.inf).flip(-1).cummin(-1).values.flip(-1)
    fitted = smallest.masked_fill(lengths < 1, -torch.inf).amax(-2)
    return fitted.clamp(*_limits(lower, upper))


@torch.library.custom_op("xla_isotonic::pool", mutates_args=(), device_types="cpu")
def pool(values: torch.Tensor, fitted: torch.Tensor) -> torch.Tensor:
    """Each value replaced by the mean of its block: the neighbours for which `fitted` is the same.

    Args:
      values: `[..., n]`, float32 or float64.
      fitted: from `fit`, with the shape and dtype of `values`.
    """
    starts = torch.ones_like(fitted, dtype=torch.bool)
    starts[..., 1:] = fitted[..., 1:] != fitted[..., :-1]
    block = starts.flatten().cumsum(0) - 1
    sums = values.new_zeros(block.numel()).index_add(0, block, values.flatten())
    return (sums[block] / block.bincount()[block]).view_as(values)


def _check(dtype: torch.dtype, dim: int) -> None:
    if dtype not in (torch.float32, torch.float64) or dim == 0:
        raise TypeError(
            f"xla_isotonic takes rows of float32 or float64, not {dtype} with {dim} dimensions."
        )


def _limits(lower: float | None, upper: float | None) -> tuple[float, float]:
    return -math.inf if lower is None else lower, math.inf if upper is None else upper


def _negated(limit: float | None) -> float | None:
    return None if limit is None else -limit


# Shapes and dtypes.


@fit.register_fake
def _fit_fake(
    values: torch.Tensor,
    increasing: bool = True,
    lower: float | None = None,
    upper: float | None = None,
) -> torch.Tensor:
    _check(values.dtype, values.dim())
    return torch.empty_like(values, memory_format=torch.contiguous_format)


@pool.register_fake
def _pool_fake(values: torch.Tensor, fitted: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(values, memory_format=torch.contiguous_format)


# XLA: calls of the handlers.


@torch_xla_lite.register_lowering("xla_isotonic::fit")
def _fit_lowering(
    values: jax.Array, increasing: bool, lower: float | None, upper: float | None
) -> jax.Array:
    lowest, highest = _limits(lower, upper)
    call = jax.ffi.ffi_call("xla_isotonic.fit", jax.ShapeDtypeStruct(values.shape, values.dtype))
    return call(values, increasing=increasing, lower=lowest, upper=highest)


@torch_xla_lite.register_lowering("xla_isotonic::pool")
def _pool_lowering(values: jax.Array, fitted: jax.Array) -> jax.Array:
    call = jax.ffi.ffi_call("xla_isotonic.pool", jax.ShapeDtypeStruct(values.shape, values.dtype))
    return call(values, fitted)


# Gradients.


def _save_fit(ctx, inputs, output: torch.Tensor) -> None:
    _, _, ctx.lower, ctx.upper = inputs
    ctx.save_for_backward(output)


def _fit_backward(ctx, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
    (fitted,) = ctx.saved_tensors
    lowest, highest = _limits(ctx.lower, ctx.upper)
    # A value moves its whole block, by its share; what a limit holds does not move.
    moves = (fitted > lowest) & (fitted < highest)
    return pool(gradient * moves, fitted), None, None, None


def _save_pool(ctx, inputs, output: torch.Tensor) -> None:
    ctx.save_for_backward(inputs[1])


def _pool_backward(ctx, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
    # To take means is its own transpose.
    return pool(gradient, *ctx.saved_tensors), None


fit.register_autograd(_fit_backward, setup_context=_save_fit)
pool.register_autograd(_pool_backward, setup_context=_save_pool)


# torch.vmap: rows are independent of each other, so a batch is more rows.


@fit.register_vmap
def _fit_vmap(info, in_dims, values, increasing=True, lower=None, upper=None):
    _check(values.dtype, values.dim() - 1)
    return fit(values.movedim(in_dims[0], 0), increasing, lower, upper), 0


@pool.register_vmap
def _pool_vmap(info, in_dims, values, fitted):
    batched = [
        x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
        for x, dim in zip((values, fitted), in_dims, strict=True)
    ]
    return pool(*batched), 0
