"""Distances between the rows of matrices, and between vectors."""

import jax
import jax.numpy as jnp
import numpy as np

from torch_xla_lite.lowering.base.promotion import opmath
from torch_xla_lite.lowering.base.registry import lower
from torch_xla_lite.lowering.factories import triu_indices


def _difference_norm(difference: jax.Array, p: float) -> jax.Array:
    """The p-norm over the last dimension. Its gradient at zero is zero, as in torch."""
    size = jnp.abs(difference)
    if p == 0:
        differs = (difference != 0).astype(difference.dtype)
        return jnp.sum(jnp.where(jnp.isnan(difference), np.nan, differs), axis=-1)
    if p == 1:
        return jnp.sum(size, axis=-1)
    if np.isinf(p):
        return jnp.max(size, axis=-1, initial=0)
    zero = jnp.all(size == 0, axis=-1, keepdims=True)
    safe = jnp.where(zero, 1, size)
    total = jnp.sum(jnp.where(safe == 0, 0, jnp.where(safe == 0, 1, safe) ** p), axis=-1)
    return jnp.where(zero[..., 0], 0, total ** (1 / p))


def _between(x1: jax.Array, x2: jax.Array, p: float) -> jax.Array:
    difference = x1[..., :, None, :] - x2[..., None, :, :]
    if np.isinf(p):
        # As in torch's kernels, but not in those of pdist.
        difference = jnp.where(jnp.isnan(difference), 0, difference)
    return _difference_norm(difference, p)


@lower("aten::_cdist_forward", one_dtype="x1 x2", shape="distances")
def cdist_forward(
    x1: jax.Array, x2: jax.Array, p: float, compute_mode: int | None = None
) -> jax.Array:
    return _between(opmath(x1), opmath(x2), p)


@lower("aten::_cdist_backward")
def cdist_backward(
    grad: jax.Array, x1: jax.Array, x2: jax.Array, p: float, cdist: jax.Array
) -> jax.Array:
    _, pull = jax.vjp(lambda x: _between(x, opmath(x2), p), opmath(x1))
    return pull(opmath(grad))[0]


@lower("aten::_euclidean_dist", shape="distances")
def euclidean_dist(x1: jax.Array, x2: jax.Array) -> jax.Array:
    return _between(opmath(x1), opmath(x2), 2)


@lower("aten::_pdist_forward")
def pdist_forward(self: jax.Array, p: float = 2) -> jax.Array:
    x = opmath(self)
    count = x.shape[0]
    pairs = jax.ShapeDtypeStruct((2, count * (count - 1) // 2), np.dtype(np.int32))
    row, column = (
        x.at[index].get(mode="promise_in_bounds")
        for index in triu_indices(count, count, 1, outs=[pairs])
    )
    return _difference_norm(row - column, p)


@lower("aten::_pdist_backward")
def pdist_backward(grad: jax.Array, self: jax.Array, p: float, pdist: jax.Array) -> jax.Array:
    _, pull = jax.vjp(lambda x: pdist_forward(x, p), opmath(self))
    return pull(opmath(grad))[0]
