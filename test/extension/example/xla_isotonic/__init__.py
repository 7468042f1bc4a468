"""Isotonic regression: the non-decreasing sequence that is nearest to a sequence, with gradient.

    scores = torch.tensor([1.0, 3.0, 2.0, 4.0], device="jax")
    xla_isotonic.fit(scores)        # 1, 2.5, 2.5, 4

How far a block of equal values reaches depends on the data. XLA, which wants to know shapes and
trip counts, can only do with n² elements what a stack does in one pass over n. So on device 'jax'
the op is a call of C++ (handlers.cc), in the same graph as its neighbours.
"""

import jax
import torch

import torch_xla_lite
from torch_xla_lite.utils import cpp_extension

__all__ = ["fit", "pool"]

cpp_extension.register_ffi_library(
    "xla_isotonic._handlers",
    {"xla_isotonic.fit": "XlaIsotonicFit", "xla_isotonic.pool": "XlaIsotonicPool"},
)


@torch.library.custom_op("xla_isotonic::fit", mutates_args=(), device_types="cpu")
def fit(values: torch.Tensor) -> torch.Tensor:
    """The non-decreasing sequence nearest to each row, in the sum of squares.

    Args:
      values: `[..., n]`, float32.
    """
    # Its element i is the largest, over starts up to i, of the smallest mean of a stretch from
    # there to i or beyond.
    _check(values)
    count = values.shape[-1]
    sums = torch.nn.functional.pad(values.cumsum(-1), (1, 0))
    lengths = torch.arange(1, count + 1) - torch.arange(count)[:, None]
    means = (sums[..., None, 1:] - sums[..., :-1, None]) / lengths
    smallest = means.masked_fill(lengths < 1, torch.inf).flip(-1).cummin(-1).values.flip(-1)
    return smallest.masked_fill(lengths < 1, -torch.inf).amax(-2)


@torch.library.custom_op("xla_isotonic::pool", mutates_args=(), device_types="cpu")
def pool(values: torch.Tensor, fitted: torch.Tensor) -> torch.Tensor:
    """Each value replaced by the mean of its block: the neighbours for which `fitted` is the same.

    Args:
      values: `[..., n]`, float32.
      fitted: of the same shape, from `fit`.
    """
    starts = torch.ones_like(fitted, dtype=torch.bool)
    starts[..., 1:] = fitted[..., 1:] != fitted[..., :-1]
    block = starts.flatten().cumsum(0) - 1
    sums = torch.zeros(block.numel()).index_add(0, block, values.flatten())
    return (sums[block] / block.bincount()[block]).view_as(values)


def _check(values: torch.Tensor) -> None:
    if values.dtype != torch.float32 or values.dim() == 0:
        shape = tuple(values.shape)
        raise TypeError(f"xla_isotonic takes rows of float32, not {values.dtype}, {shape}.")


@fit.register_fake
def _fit_shape(values: torch.Tensor) -> torch.Tensor:
    _check(values)
    return torch.empty_like(values)


@pool.register_fake
def _pool_shape(values: torch.Tensor, fitted: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(values)


@torch_xla_lite.register_lowering("xla_isotonic::fit")
def _fit_on_xla(values: jax.Array) -> jax.Array:
    return jax.ffi.ffi_call("xla_isotonic.fit", jax.typeof(values))(values)


@torch_xla_lite.register_lowering("xla_isotonic::pool")
def _pool_on_xla(values: jax.Array, fitted: jax.Array) -> jax.Array:
    return jax.ffi.ffi_call("xla_isotonic.pool", jax.typeof(values))(values, fitted)


def _save(ctx, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
    ctx.save_for_backward(output)


def _backward(ctx, gradient: torch.Tensor) -> torch.Tensor:
    # A value moves its whole block, by its share.
    return pool(gradient, *ctx.saved_tensors)


fit.register_autograd(_backward, setup_context=_save)
