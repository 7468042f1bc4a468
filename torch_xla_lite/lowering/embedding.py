"""Embedding tables.

Indices are not checked, since a check would need their values: XLA reads the nearest row for one
out of range.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering.promotion import convert, opmath
from torch_xla_lite.lowering.registry import lower


@lower("aten::embedding")
def embedding(
    weight: jax.Array,
    indices: jax.Array,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> jax.Array:
    return rows(weight, indices)


def rows(table: jax.Array, indices: jax.Array) -> jax.Array:
    """`table[indices]` for indices that are not negative."""
    return table.at[indices].get(mode="promise_in_bounds", wrap_negative_indices=False)


@lower("aten::embedding_dense_backward")
def embedding_dense_backward(
    grad_output: jax.Array,
    indices: jax.Array,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> jax.Array:
    width = grad_output.shape[indices.ndim :]
    flat = lax.reshape(indices, (indices.size,))
    grad = lax.reshape(opmath(grad_output), (indices.size, *width))
    if scale_grad_by_freq:
        counts = jnp.zeros((num_weights,), grad.dtype).at[flat].add(np.array(1, grad.dtype))
        grad = grad / counts[flat].reshape(-1, *(1,) * len(width))
    if 0 <= padding_idx < num_weights:
        real = lax.ne(flat, lax.full_like(flat, padding_idx))
        grad = lax.select(
            lax.broadcast_in_dim(real, grad.shape, (0,)), grad, lax.full_like(grad, 0)
        )
    zeros = lax.full((num_weights, *width), 0, grad.dtype)
    return zeros.at[flat].add(grad, mode="promise_in_bounds", wrap_negative_indices=False)


@lower("aten::embedding_renorm", constants=True)
def embedding_renorm(
    self: jax.Array, indices: jax.Array, max_norm: float, norm_type: float
) -> jax.Array:
    size = jnp.linalg.norm(opmath(self), ord=norm_type, axis=1)
    used = jnp.zeros((self.shape[0],), bool).at[indices.reshape(-1)].set(True)
    factor = jnp.where(used & (size > max_norm), max_norm / (size + 1e-7), 1)
    return lax.mul(
        opmath(self), lax.broadcast_in_dim(convert(factor, opmath(self).dtype), self.shape, (0,))
    )
