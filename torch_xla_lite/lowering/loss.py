"""Loss functions and their gradients.

`reduction` is torch's integer: 0 none, 1 mean, 2 sum. 16-bit floats are computed in float32.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base import target
from torch_xla_lite.lowering.base.checks import check, index_in_range
from torch_xla_lite.lowering.base.promotion import Operand, broadcast, convert, operands, opmath
from torch_xla_lite.lowering.base.registry import lower

_NONE, _MEAN, _SUM = range(3)


def _reduced(loss: jax.Array, reduction: int) -> jax.Array:
    if reduction == _NONE:
        return loss
    total = lax.reduce_sum(loss, tuple(range(loss.ndim)))
    return total if reduction == _SUM else target.divide(total, lax.full_like(total, loss.size))


def _spread_grad(
    grad_output: jax.Array, shape: tuple[int, ...], reduction: int, dtype: np.dtype
) -> jax.Array:
    """The gradient of each element's loss, computed from the gradient of the reduced loss."""
    grad = convert(grad_output, dtype)
    if reduction == _MEAN:
        count = int(np.prod(shape, dtype=np.int64))
        grad = target.divide(grad, lax.full_like(grad, count))
    return broadcast(grad, shape)


def _pair(self: Operand, target: Operand) -> list[jax.Array]:
    a, b = operands(self, target)
    return [opmath(a), opmath(b)]


@lower("aten::mse_loss", refuses="biuc", shares="self=same target=same")
def mse_loss(self: jax.Array, target: jax.Array, reduction: int = _MEAN) -> jax.Array:
    a, b = _pair(self, target)
    difference = lax.sub(a, b)
    return _reduced(lax.mul(difference, difference), reduction)


@lower("aten::mse_loss_backward", shape="loss_backward")
def mse_loss_backward(
    grad_output: jax.Array, self: jax.Array, target: jax.Array, reduction: int
) -> jax.Array:
    a, b = _pair(self, target)
    difference = lax.sub(a, b)
    grad = _spread_grad(grad_output, a.shape, reduction, a.dtype)
    return lax.mul(lax.mul(lax.full_like(a, 2), difference), grad)


@lower("aten::smooth_l1_loss", refuses="biuc")
def smooth_l1_loss(
    self: jax.Array, target: jax.Array, reduction: int = _MEAN, beta: float = 1.0
) -> jax.Array:
    a, b = _pair(self, target)
    size = lax.abs(lax.sub(a, b))
    if beta == 0:
        return _reduced(size, reduction)
    inner = lax.mul(lax.mul(size, size), lax.full_like(size, 0.5 / beta))
    outer = lax.sub(size, lax.full_like(size, 0.5 * beta))
    return _reduced(lax.select(lax.lt(size, lax.full_like(size, beta)), inner, outer), reduction)


@lower("aten::smooth_l1_loss_backward", shape="loss_backward")
def smooth_l1_loss_backward(
    grad_output: jax.Array, self: jax.Array, target: jax.Array, reduction: int, beta: float
) -> jax.Array:
    a, b = _pair(self, target)
    difference = lax.sub(a, b)
    slope = lax.sign(difference)
    if beta != 0:
        inner = lax.div(difference, lax.full_like(difference, beta))
        near = lax.lt(lax.abs(difference), lax.full_like(difference, beta))
        slope = lax.select(near, inner, slope)
    return lax.mul(slope, _spread_grad(grad_output, a.shape, reduction, a.dtype))


@lower("aten::huber_loss_backward", shape="loss_backward")
def huber_loss_backward(
    grad_output: jax.Array, self: jax.Array, target: jax.Array, reduction: int, delta: float
) -> jax.Array:
    a, b = _pair(self, target)
    edge = np.array(delta, a.dtype)
    slope = lax.clamp(-edge, lax.sub(a, b), edge)
    return lax.mul(slope, _spread_grad(grad_output, a.shape, reduction, a.dtype))


@lower("aten::soft_margin_loss", refuses="biuc", shape="soft_margin_loss")
def soft_margin_loss(self: jax.Array, target: jax.Array, reduction: int = _MEAN) -> jax.Array:
    a, b = _pair(self, target)
    return _reduced(lax.log1p(lax.exp(lax.neg(lax.mul(a, b)))), reduction)


@lower("aten::soft_margin_loss_backward")
def soft_margin_loss_backward(
    grad_output: jax.Array, self: jax.Array, target: jax.Array, reduction: int
) -> jax.Array:
    a, b = _pair(self, target)
    slope = lax.mul(lax.neg(b), lax.logistic(lax.neg(lax.mul(a, b))))
    return lax.mul(slope, _spread_grad(grad_output, a.shape, reduction, a.dtype))


def _weighted(loss: jax.Array, weight: jax.Array | None) -> jax.Array:
    return (
        loss
        if weight is None
        else lax.mul(loss, broadcast(convert(weight, loss.dtype), loss.shape))
    )


@lower("aten::binary_cross_entropy", refuses="biuc", one_dtype="self target weight", shape="loss")
def binary_cross_entropy(
    self: jax.Array, target: jax.Array, weight: jax.Array | None = None, reduction: int = _MEAN
) -> jax.Array:
    p, t = _pair(self, target)
    good = (p >= 0) & (p <= 1)
    check(~jnp.all(good), "all elements of input should be between 0 and 1", RuntimeError)
    # torch clamps the logarithms at -100, so that a wrong prediction of probability 0 or 1 has a
    # finite loss.
    floor = lax.full_like(p, -100)
    one = lax.full_like(p, 1)
    log_p = lax.max(lax.log(p), floor)
    log_q = lax.max(lax.log1p(lax.neg(p)), floor)
    loss = lax.sub(lax.mul(lax.sub(t, one), log_q), lax.mul(t, log_p))
    return _reduced(_weighted(loss, weight), reduction)


@lower("aten::binary_cross_entropy_with_logits", refuses="biuc", shape="loss")
def binary_cross_entropy_with_logits(
    self: jax.Array,
    target: jax.Array,
    weight: jax.Array | None = None,
    pos_weight: jax.Array | None = None,
    reduction: int = _MEAN,
) -> jax.Array:
    x, t = _pair(self, target)
    one = lax.full_like(x, 1)
    log_sigmoid = lax.neg(softplus(lax.neg(x)))
    if pos_weight is not None:
        extra = lax.sub(broadcast(convert(pos_weight, x.dtype), x.shape), one)
        log_sigmoid = lax.mul(log_sigmoid, lax.add(lax.mul(extra, t), one))
    loss = lax.sub(lax.mul(lax.sub(one, t), x), log_sigmoid)
    return _reduced(_weighted(loss, weight), reduction)


def softplus(x: jax.Array) -> jax.Array:
    """log(1 + exp(x)) without overflow."""
    return jnp.logaddexp(x, lax.full_like(x, 0))


# Negative log likelihood. The classes are dimension 1 (0 for a single sample).


def _class_dim(self: jax.Array) -> int:
    return 0 if self.ndim == 1 else 1


def _one_hot(target: jax.Array, shape: tuple[int, ...], dim: int) -> jax.Array:
    """Whether each element of `shape` is the target class of its sample.

    XLA fuses a comparison with an iota into the reduction that uses it, which is faster than a
    gather or a scatter.
    """
    others = [i for i in range(len(shape)) if i != dim]
    counter = lax.broadcasted_iota(target.dtype, shape, dim)
    return lax.eq(counter, lax.broadcast_in_dim(target, shape, others))


def _sample_weight(
    target: jax.Array, weight: jax.Array | None, ignore_index: int, dtype: np.dtype
) -> jax.Array:
    counted = lax.ne(target, lax.full_like(target, ignore_index))
    if weight is None:
        return convert(counted, dtype)
    safe = lax.select(counted, target, lax.full_like(target, 0))
    chosen = jnp.take(convert(weight, dtype), safe, mode="clip")
    return lax.select(counted, chosen, lax.full_like(chosen, 0))


@lower("aten::nll_loss_forward", refuses="biuc", one_dtype="self weight")
@lower(
    "aten::nll_loss2d_forward",
    refuses="biuc",
    one_dtype="self weight",
    dtypes="target=lu",
)
def nll_loss_forward(
    self: jax.Array,
    target: jax.Array,
    weight: jax.Array | None,
    reduction: int,
    ignore_index: int,
) -> tuple[jax.Array, jax.Array]:
    x = opmath(self)
    dim = _class_dim(x)
    target = lax.reshape(target, tuple(n for i, n in enumerate(x.shape) if i != dim))
    index_in_range(target, x.shape[dim], ignored=ignore_index)
    hit = _one_hot(target, x.shape, dim)
    chosen = lax.reduce_sum(lax.select(hit, x, lax.full_like(x, 0)), (dim,))
    weights = _sample_weight(target, weight, ignore_index, x.dtype)
    # Multiplying by a weight of 0 would propagate an infinite or NaN score of an ignored sample.
    zero = lax.full_like(chosen, 0)
    loss = lax.select(lax.eq(weights, zero), zero, lax.neg(lax.mul(weights, chosen)))
    everything = tuple(range(loss.ndim))
    if reduction == _NONE:
        return loss, lax.full((), 0, x.dtype)
    total = lax.reduce_sum(weights, everything)
    summed = lax.reduce_sum(loss, everything)
    return (lax.div(summed, total) if reduction == _MEAN else summed), total


@lower("aten::nll_loss_backward", "aten::nll_loss2d_backward")
def nll_loss_backward(
    grad_output: jax.Array,
    self: jax.Array,
    target: jax.Array,
    weight: jax.Array | None,
    reduction: int,
    ignore_index: int,
    total_weight: jax.Array,
) -> jax.Array:
    x = opmath(self)
    dim = _class_dim(x)
    target = lax.reshape(target, tuple(n for i, n in enumerate(x.shape) if i != dim))
    weights = _sample_weight(target, weight, ignore_index, x.dtype)
    grad = convert(grad_output, x.dtype)
    if reduction == _MEAN:
        grad = lax.div(grad, convert(total_weight, x.dtype))
    grad = lax.neg(
        lax.mul(
            broadcast(
                lax.reshape(grad, weights.shape) if reduction == _NONE else grad, weights.shape
            ),
            weights,
        )
    )
    others = [i for i in range(x.ndim) if i != dim]
    spread = lax.broadcast_in_dim(grad, x.shape, others)
    return lax.select(_one_hot(target, x.shape, dim), spread, lax.full_like(x, 0))


@lower(
    "aten::multi_margin_loss",
    constants=True,
    refuses="biuc",
    dtypes="target=l",
    kernel_needs="any_rows",
)
def multi_margin_loss(
    self: jax.Array,
    target: jax.Array,
    p: int = 1,
    margin: float = 1,
    weight: jax.Array | None = None,
    reduction: int = _MEAN,
) -> jax.Array:
    index_in_range(target, self.shape[-1] if self.ndim else 1)
    return _multi_margin(p, margin, weight, reduction, target)(self)


@lower("aten::multi_margin_loss_backward", constants=True)
def multi_margin_loss_backward(
    grad_output: jax.Array,
    self: jax.Array,
    target: jax.Array,
    p: int,
    margin: float,
    weight: jax.Array | None = None,
    reduction: int = _MEAN,
) -> jax.Array:
    _, pull = jax.vjp(_multi_margin(p, margin, weight, reduction, target), self)
    return pull(grad_output)[0]


def _multi_margin(
    p: int, margin: float, weight: jax.Array | None, reduction: int, target: jax.Array
) -> Callable[[jax.Array], jax.Array]:
    def loss(scores: jax.Array) -> jax.Array:
        x = jnp.atleast_2d(scores)
        labels = jnp.reshape(target, (x.shape[0],))
        hit = _one_hot(labels, x.shape, 1)
        own = jnp.sum(jnp.where(hit, x, 0), axis=1, keepdims=True)
        missing = margin - own + x
        # NaN misses nothing, as in torch's kernels.
        short = jnp.where(missing > 0, missing, 0) ** p
        if weight is not None:
            short = short * weight[labels][:, None]
        each = jnp.sum(jnp.where(hit, 0, short), axis=1) / x.shape[1]
        return _reduced(each if scores.ndim > 1 else each[0], reduction)

    return loss
