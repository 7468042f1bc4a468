"""Embedding tables: lookup, bags, and their gradients."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base.checks import check, index_in_range
from torch_xla_lite.lowering.base.promotion import convert, opmath
from torch_xla_lite.lowering.base.registry import Unsupported, lower


@lower("aten::embedding", elements="weight", shape="embedding")
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
    index_in_range(indices, table.shape[0])
    return table.at[indices].get(mode="promise_in_bounds", wrap_negative_indices=False)


@lower("aten::one_hot", kernel="recorder", shape="one_hot")
def one_hot(self: jax.Array, num_classes: int = -1) -> jax.Array:
    check(jnp.any(self < 0), "Class values must be non-negative.", RuntimeError)
    bad = jnp.any(self >= num_classes)
    check(bad, "Class values must be smaller than num_classes.", RuntimeError)
    classes = lax.iota(self.dtype, num_classes)
    return convert(self[..., None] == classes, self.dtype)


@lower("aten::embedding_dense_backward", shape="embedding_backward")
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


@lower("aten::embedding_renorm", constants=True, refuses="biuc")
def embedding_renorm(
    self: jax.Array, indices: jax.Array, max_norm: float, norm_type: float
) -> jax.Array:
    size = jnp.linalg.norm(opmath(self), ord=norm_type, axis=1)
    used = jnp.zeros((self.shape[0],), bool).at[indices.reshape(-1)].set(True)
    factor = jnp.where(used & (size > max_norm), max_norm / (size + 1e-7), 1)
    return lax.mul(
        opmath(self), lax.broadcast_in_dim(convert(factor, opmath(self).dtype), self.shape, (0,))
    )


# Bags: the sum, mean or maximum of the rows of each bag. Indices equal to the padding index belong
# to no bag.

_SUM, _MEAN, _MAX = range(3)


def _zero_padding(x: jax.Array, indices: jax.Array, padding_idx: int) -> jax.Array:
    """`x`, which has one row per index, with zeros in the rows of padding."""
    if padding_idx < 0:
        return x
    real = lax.ne(indices, lax.full_like(indices, padding_idx))
    return lax.select(lax.broadcast_in_dim(real, x.shape, (0,)), x, lax.full_like(x, 0))


def _check_offsets(offsets: jax.Array, length: int) -> None:
    if offsets.size == 0:
        return
    ends = jnp.append(offsets[1:], jnp.asarray(length, offsets.dtype))
    check(
        (offsets[0] != 0) | jnp.any(offsets > ends),
        f"offsets must begin with 0, not decrease, and end at {length} at most",
        RuntimeError,
    )


@lower(
    "aten::_embedding_bag",
    "aten::_embedding_bag_forward_only",
    completed_by="embedding_bag",
    one_dtype="weight per_sample_weights",
)
def embedding_bag(
    weight: jax.Array,
    indices: jax.Array,
    offsets: jax.Array,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: jax.Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
    *,
    outs,
) -> tuple[jax.Array, ...]:
    bags, width = outs[0].shape
    _check_offsets(offsets, indices.shape[0])
    number = lax.iota(indices.dtype, indices.shape[0])
    bag = jnp.searchsorted(offsets[:bags].astype(number.dtype), number, side="right") - 1
    taken = opmath(rows(weight, indices))
    if per_sample_weights is not None:
        taken = lax.mul(taken, jnp.broadcast_to(opmath(per_sample_weights)[:, None], taken.shape))
    counted = _zero_padding(lax.full_like(indices, 1), indices, padding_idx)
    # If the last offset is included, torch's meta function has a size for it, too: 0.
    saved = lax.full((max(bags, outs[2].size),), 0, indices.dtype).at[bag].add(counted)
    sizes = saved[:bags]
    empty = [lax.full(out.shape, 0, out.dtype) for out in outs[1:]]
    if mode != _MAX or indices.shape[0] == 0:
        kept = _zero_padding(taken, indices, padding_idx)
        total = lax.full((bags, width), 0, taken.dtype).at[bag].add(kept)
        if mode == _MEAN:
            total = total / jnp.maximum(sizes, 1).astype(total.dtype)[:, None]
        return total, _fit(bag, empty[0]), _fit(saved, empty[1]), empty[2]
    real = counted[:, None] > 0
    lowest = lax.full((bags, width), -np.inf, taken.dtype)
    top = lowest.at[bag].max(jnp.where(real, taken, -np.inf))
    place = jnp.where(real & (taken == top[bag]), number[:, None], indices.shape[0])
    first = lax.full((bags, width), indices.shape[0], number.dtype).at[bag].min(place)
    nothing = sizes[:, None] == 0
    row = jnp.where(nothing, 0, indices.at[first].get(mode="clip"))
    return jnp.where(nothing, 0, top), _fit(bag, empty[0]), _fit(saved, empty[1]), row


def _fit(x: jax.Array, like: jax.Array) -> jax.Array:
    return x if x.shape == like.shape else like


@lower("aten::_embedding_bag_dense_backward", kernel_needs="rows")
def embedding_bag_dense_backward(
    grad: jax.Array,
    indices: jax.Array,
    offset2bag: jax.Array,
    bag_size: jax.Array,
    maximum_indices: jax.Array,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: jax.Array | None,
    padding_idx: int = -1,
) -> jax.Array:
    wide = opmath(grad)
    zeros = lax.full((num_weights, grad.shape[1]), 0, wide.dtype)
    # If the last offset is included, there is one more, of no bag.
    bag_size, maximum_indices = bag_size[: len(grad)], maximum_indices[: len(grad)]
    if mode == _MAX:
        column = lax.broadcasted_iota(maximum_indices.dtype, grad.shape, 1)
        # An empty bag has no maximum: its row is set beyond the end, where scatter drops it.
        row = jnp.where(bag_size[:, None] == 0, num_weights, maximum_indices)
        return zeros.at[row, column].add(wide, mode="drop")
    if mode == _MEAN:
        wide = wide / jnp.maximum(bag_size, 1).astype(wide.dtype)[:, None]
    each = wide[offset2bag]
    if per_sample_weights is not None:
        each = each * opmath(per_sample_weights)[:, None]
    if scale_grad_by_freq:
        count = jnp.zeros((num_weights,), each.dtype).at[indices].add(1)
        each = each / count[indices][:, None]
    return zeros.at[indices].add(_zero_padding(each, indices, padding_idx))


@lower("aten::_embedding_bag_backward")
def embedding_bag_backward(
    grad: jax.Array, indices: jax.Array, offsets: jax.Array, *args: Any
) -> jax.Array:
    *of_bags, sparse, per_sample_weights, padding_idx = args
    if sparse:
        raise Unsupported("a sparse gradient")
    return embedding_bag_dense_backward(grad, indices, *of_bags, per_sample_weights, padding_idx)


@lower("aten::_embedding_bag_per_sample_weights_backward", kernel_needs="rows_of_weight")
def embedding_bag_per_sample_weights_backward(
    grad: jax.Array,
    weight: jax.Array,
    indices: jax.Array,
    offsets: jax.Array,
    offset2bag: jax.Array,
    mode: int,
    padding_idx: int = -1,
) -> jax.Array:
    each = jnp.sum(opmath(grad)[offset2bag] * opmath(rows(weight, indices)), axis=1)
    return _zero_padding(each, indices, padding_idx)
