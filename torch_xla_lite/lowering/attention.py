"""Attention: torch's fused attention kernels as matrix products and a softmax.

`scaled_dot_product_attention` is recorded as one op if it fits `flash_attention_for_cpu`, otherwise
as the ops that it is made of; csrc/kernels_of_torch/attention.cc decides.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering.activation import gelu
from torch_xla_lite.lowering.base import target
from torch_xla_lite.lowering.base.promotion import are_known, broadcast, convert, opmath
from torch_xla_lite.lowering.base.registry import Unsupported, lower
from torch_xla_lite.lowering.binary import to_bool
from torch_xla_lite.lowering.matmul import dot, linear
from torch_xla_lite.lowering.norm import layer_norm
from torch_xla_lite.lowering.softmax import masked_softmax, softmax_along

_SCORES = (((3,), (3,)), ((0, 1), (0, 1)))
_MIX = (((3,), (2,)), ((0, 1), (0, 1)))
_BACK = (((2,), (2,)), ((0, 1), (0, 1)))


def _heads(x: jax.Array, count: int) -> jax.Array:
    """[batch, length, heads · width] -> [batch, heads, length, width]."""
    batch, length, width = x.shape
    return lax.transpose(lax.reshape(x, (batch, length, count, width // count)), (0, 2, 1, 3))


def _merged(x: jax.Array) -> jax.Array:
    batch, heads, length, width = x.shape
    return lax.reshape(lax.transpose(x, (0, 2, 1, 3)), (batch, length, heads * width))


@lower("aten::_transform_bias_rescale_qkv")
def transform_bias_rescale_qkv(
    qkv: jax.Array, qkv_bias: jax.Array, num_heads: int
) -> tuple[jax.Array, ...]:
    total = lax.add(qkv, broadcast(qkv_bias, qkv.shape))
    query, key, value = (_heads(x, num_heads) for x in jnp.split(total, 3, axis=2))
    width = query.shape[-1]
    return lax.div(query, lax.full_like(query, math.sqrt(width))), key, value


@lower("aten::_native_multi_head_attention")
def native_multi_head_attention(
    query: jax.Array,
    key_: jax.Array,
    value: jax.Array,
    embed_dim: int,
    num_head: int,
    qkv_weight: jax.Array,
    qkv_bias: jax.Array,
    proj_weight: jax.Array,
    proj_bias: jax.Array,
    mask: jax.Array | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
    *,
    outs: Sequence[jax.ShapeDtypeStruct | None] = (None, None),
) -> tuple[jax.Array, jax.Array | None]:
    parts = zip((query, key_, value), jnp.split(qkv_weight, 3), jnp.split(qkv_bias, 3), strict=True)
    q, k, v = (_heads(linear(x, weight, bias), num_head) for x, weight, bias in parts)
    q = lax.div(q, lax.full_like(q, math.sqrt(q.shape[-1])))
    if not need_weights:
        visible = None if mask is None else _visible(mask, mask_type)
        mixed, total = flash_attention_for_cpu(q, k, v, attn_mask=visible, scale=1.0)
        # As a softmax of nothing is.
        is_nothing = _rows(lax.eq(total, lax.full_like(total, -np.inf)), mixed)
        mixed = lax.select(is_nothing, lax.full_like(mixed, np.nan), mixed)
        # torch's meta function promises empty weights, its kernel gives none.
        unused = outs[1]
        weights = None if unused is None else lax.full(unused.shape, 0, unused.dtype)
        return linear(_merged(convert(mixed, query.dtype)), proj_weight, proj_bias), weights
    scores = dot(q, k, _SCORES)
    if mask is None:
        probabilities = softmax_along(scores, -1)
    else:
        probabilities = masked_softmax(scores, mask, -1, mask_type)
    mixed = convert(dot(convert(probabilities, v.dtype), v, _MIX), query.dtype)
    output = linear(_merged(mixed), proj_weight, proj_bias)
    if average_attn_weights:
        probabilities = lax.div(
            lax.reduce_sum(probabilities, (1,)),
            np.array(num_head, probabilities.dtype)[None, None, None],
        )
    return output, probabilities


def _visible(mask: jax.Array, mask_type: int | None) -> jax.Array:
    """What a mask as of `masked_softmax` does not hide; it fits [batch, heads, queries, keys]."""
    visible = lax.bitwise_not(to_bool(mask))
    is_for_keys = mask_type == 1 and mask.ndim == 2
    return lax.expand_dims(visible, (1, 2)) if is_for_keys else visible


@lower("aten::_transformer_encoder_layer_fwd", shape="encoder_layer")
def transformer_encoder_layer_fwd(
    src: jax.Array,
    embed_dim: int,
    num_heads: int,
    qkv_weight: jax.Array,
    qkv_bias: jax.Array,
    proj_weight: jax.Array,
    proj_bias: jax.Array,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: jax.Array,
    norm_bias_1: jax.Array,
    norm_weight_2: jax.Array,
    norm_bias_2: jax.Array,
    ffn_weight_1: jax.Array,
    ffn_bias_1: jax.Array,
    ffn_weight_2: jax.Array,
    ffn_bias_2: jax.Array,
    mask: jax.Array | None = None,
    mask_type: int | None = None,
) -> jax.Array:
    def normed(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
        return convert(layer_norm(opmath(x), x.ndim - 1, weight, bias, eps)[0], x.dtype)

    def attend(x: jax.Array) -> jax.Array:
        return native_multi_head_attention(
            *(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask),
            need_weights=False,
            mask_type=mask_type,
        )[0]

    def feed_forward(x: jax.Array) -> jax.Array:
        hidden = linear(x, ffn_weight_1, ffn_bias_1)
        hidden = gelu(hidden) if use_gelu else lax.max(hidden, lax.full_like(hidden, 0))
        return linear(convert(hidden, x.dtype), ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = lax.add(src, attend(normed(src, norm_weight_1, norm_bias_1)))
        return lax.add(x, feed_forward(normed(x, norm_weight_2, norm_bias_2)))
    x = normed(lax.add(src, attend(src)), norm_weight_1, norm_bias_1)
    return normed(lax.add(x, feed_forward(x)), norm_weight_2, norm_bias_2)


def _factor(query: jax.Array, scale: float | None) -> float:
    return 1 / math.sqrt(query.shape[-1]) if scale is None else scale


def _block_length(query: jax.Array, key_: jax.Array) -> int:
    """How many queries are computed at once, so that no program stores the square of a long
    sequence: all, if sizes are symbols of an exported program."""
    batch, heads, queries, _ = query.shape
    if not are_known(batch, heads, queries, key_.shape[2]):
        return queries
    return min(queries, max(1, target.most_scores() // max(1, batch * heads * key_.shape[2])))


def _scores(
    query: jax.Array,
    key_: jax.Array,
    bias: jax.Array | None,
    is_causal: bool,
    factor: float,
    first: jax.Array | int,
) -> jax.Array:
    """[batch, heads, queries, keys], -inf where masked; float32 for 16-bit inputs.

    first: the number of the first query.
    """
    scores = dot(query, key_, _SCORES)
    scores = lax.mul(scores, lax.full_like(scores, factor))
    if is_causal:
        row = lax.broadcasted_iota(np.int32, scores.shape, 2) + first
        column = lax.broadcasted_iota(np.int32, scores.shape, 3)
        scores = lax.select(lax.ge(row, column), scores, lax.full_like(scores, -np.inf))
    if bias is None:
        return scores
    if bias.dtype == np.bool_:
        visible = broadcast(bias, scores.shape)
        return lax.select(visible, scores, lax.full_like(scores, -np.inf))
    return lax.add(scores, broadcast(convert(bias, scores.dtype), scores.shape))


def _rows(x: jax.Array, like: jax.Array) -> jax.Array:
    return lax.broadcast_in_dim(x, like.shape, (0, 1, 2))


def _finite(top: jax.Array) -> jax.Array:
    """The maximum of each row; 0 for rows of -inf, so that their exponentials are 0, not NaN."""
    return lax.select(lax.eq(top, lax.full_like(top, -np.inf)), lax.full_like(top, 0), top)


def _fused(
    query: jax.Array,
    key_: jax.Array,
    value: jax.Array,
    bias: jax.Array | None,
    is_causal: bool,
    scale: float | None,
) -> Callable[..., tuple[jax.Array, jax.Array]] | None:
    """Attention and its logsumexp in one kernel, which stores no scores; None if there is none.

    The kernel is cuDNN's, which treats masks, and rows without a key, in another way.
    """
    if bias is not None or (is_causal and query.shape[2] != key_.shape[2]):
        return None
    if not target.has_fused_attention(query.dtype):
        return None

    def attend(*given: jax.Array) -> tuple[jax.Array, jax.Array]:
        mixed, logsumexp = jax.nn.dot_product_attention(
            *(lax.transpose(x, (0, 2, 1, 3)) for x in given),
            is_causal=is_causal,
            scale=scale,
            implementation="cudnn",
            return_residual=True,
        )
        return lax.transpose(mixed, (0, 2, 1, 3)), opmath(lax.transpose(logsumexp, (0, 2, 1)))

    try:  # With gradients: these need the logsumexp of the same kernel.
        jax.eval_shape(lambda *given: jax.vjp(attend, *given), query, key_, value)
    except (NotImplementedError, RuntimeError, ValueError):  # of such sizes; without cuDNN
        return None
    return attend


@lower("aten::_scaled_dot_product_flash_attention_for_cpu", refuses="biuc", shape="flash_attention")
def flash_attention_for_cpu(
    query: jax.Array,
    key_: jax.Array,
    value: jax.Array,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: jax.Array | None = None,
    scale: float | None = None,
) -> tuple[jax.Array, jax.Array]:
    if dropout_p:
        raise Unsupported("dropout inside attention")
    if fused := _fused(query, key_, value, attn_mask, is_causal, scale):
        return fused(query, key_, value)
    key_, value = (_for_all_heads(x, query.shape[1]) for x in (key_, value))

    def attend(
        first: jax.Array | int, query: jax.Array, bias: jax.Array | None
    ) -> tuple[jax.Array, jax.Array]:
        scores = _scores(query, key_, bias, is_causal, _factor(query, scale), first)
        top = _finite(lax.reduce_max(scores, (3,)))
        exponentials = lax.exp(lax.sub(scores, _rows(top, scores)))
        total = lax.reduce_sum(exponentials, (3,))
        logsumexp = lax.add(lax.log(total), top)
        # logsumexp would not do: in a row that -1e9 hides it is -1e9, without the logarithm.
        divisor = lax.select(lax.eq(total, lax.full_like(total, 0)), lax.full_like(total, 1), total)
        probabilities = lax.div(exponentials, _rows(divisor, scores))
        return dot(convert(probabilities, value.dtype), value, _MIX), logsumexp

    length = _block_length(query, key_)
    if length == query.shape[2]:
        return attend(0, query, attn_mask)
    blocks = _blocks(length, query, attn_mask)
    _, results = lax.scan(lambda none, block: (none, attend(*block)), None, blocks)
    return tuple(_joined(x, query.shape[2]) for x in results)


@lower(
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward", shape="flash_attention_backward"
)
def flash_attention_for_cpu_backward(
    grad_out: jax.Array,
    query: jax.Array,
    key_: jax.Array,
    value: jax.Array,
    out: jax.Array,
    logsumexp: jax.Array,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: jax.Array | None = None,
    scale: float | None = None,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    if fused := _fused(query, key_, value, attn_mask, is_causal, scale):
        # Attention again takes less time than reading stored scores would.
        _, gradients_of, _ = jax.vjp(fused, query, key_, value, has_aux=True)
        return gradients_of(convert(grad_out, value.dtype))
    factor, groups = _factor(query, scale), key_.shape[1]
    key_, value = (_for_all_heads(x, query.shape[1]) for x in (key_, value))

    def gradients(
        first: jax.Array | int,
        query: jax.Array,
        bias: jax.Array | None,
        grad_out: jax.Array,
        out: jax.Array,
        logsumexp: jax.Array,
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        scores = _scores(query, key_, bias, is_causal, factor, first)
        # As torch's kernel does: of the forward pass there is only logsumexp.
        total = _rows(_finite(convert(logsumexp, scores.dtype)), scores)
        probabilities = lax.exp(lax.sub(scores, total))
        grad = convert(grad_out, value.dtype)
        grad_value = dot(convert(probabilities, value.dtype), grad, _BACK)
        grad_probabilities = dot(grad, value, _SCORES)
        share = lax.reduce_sum(lax.mul(opmath(grad), opmath(out)), (3,))
        grad_scores = lax.mul(probabilities, lax.sub(grad_probabilities, _rows(share, scores)))
        grad_scores = convert(lax.mul(grad_scores, lax.full_like(grad_scores, factor)), query.dtype)
        return dot(grad_scores, key_, _MIX), dot(grad_scores, query, _BACK), grad_value

    length = _block_length(query, key_)
    if length == query.shape[2]:
        grad_query, *others = gradients(0, query, attn_mask, grad_out, out, logsumexp)
        return grad_query, *(_of_groups(x, groups) for x in others)

    def step(sums: tuple[jax.Array, ...], block: tuple[Any, ...]) -> tuple[Any, jax.Array]:
        grad_query, *of_block = gradients(*block)
        return tuple(sum + opmath(x) for sum, x in zip(sums, of_block, strict=True)), grad_query

    none = tuple(opmath(jnp.zeros_like(x)) for x in (key_, value))
    blocks = _blocks(length, query, attn_mask, grad_out, out, logsumexp)
    others, grad_query = lax.scan(step, none, blocks)
    return _joined(grad_query, query.shape[2]), *(_of_groups(x, groups) for x in others)


def _for_all_heads(x: jax.Array, heads: int) -> jax.Array:
    """[batch, groups, ...] -> [batch, heads, ...]: the heads of a group have the same keys."""
    return x if x.shape[1] == heads else jnp.repeat(x, heads // x.shape[1], axis=1)


def _of_groups(gradients: jax.Array, groups: int) -> jax.Array:
    """The sums over the heads of each group."""
    batch, heads, *others = gradients.shape
    if heads == groups:
        return gradients
    return lax.reduce_sum(lax.reshape(gradients, (batch, groups, heads // groups, *others)), (2,))


def _blocks(
    length: int, query: jax.Array, bias: jax.Array | None, *others: jax.Array
) -> tuple[jax.Array | None, ...]:
    """The number of the first query of each block, and the parts of the arrays that belong to it,
    each with a new first dimension. The last block is filled with zeros."""
    queries = query.shape[2]
    count = -(-queries // length)

    def split(x: jax.Array) -> jax.Array:
        padding = [(0, 0, 0)] * x.ndim
        padding[2] = (0, count * length - queries, 0)
        padded = lax.pad(x, np.zeros((), x.dtype), padding)
        parts = lax.reshape(padded, (*x.shape[:2], count, length, *x.shape[3:]))
        return jnp.moveaxis(parts, 2, 0)

    if bias is not None:
        bias = lax.reshape(bias, (*(1,) * (4 - bias.ndim), *bias.shape))
        is_for_all = bias.shape[2] == 1
        bias = jnp.broadcast_to(bias, (count, *bias.shape)) if is_for_all else split(bias)
    return jnp.arange(count, dtype=np.int32) * length, split(query), bias, *map(split, others)


def _joined(blocks: jax.Array, queries: int) -> jax.Array:
    """The results of all blocks, `[blocks, batch, heads, length, ...]`, without the filling."""
    parts = jnp.moveaxis(blocks, 0, 2)
    whole = lax.reshape(
        parts, (*parts.shape[:2], parts.shape[2] * parts.shape[3], *parts.shape[4:])
    )
    return lax.slice_in_dim(whole, 0, queries, axis=2)
