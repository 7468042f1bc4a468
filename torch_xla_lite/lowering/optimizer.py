"""Fused optimizer steps (`fused=True`): the whole update of all parameters as one op.

torch's kernels update in place; their functional forms return new lists, of the gradients too.
Settings are operands, because a schedule may change each of them in every step; only a zero that
turns a term off is a constant.
"""

import jax
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base.promotion import Operand, convert, full, is_number, opmath
from torch_xla_lite.lowering.base.registry import lower

Tensors = list[jax.Array]


def _like(x: jax.Array, value: Operand) -> jax.Array:
    return full(x.shape, value, x.dtype)


def _gradient(
    grad: jax.Array, grad_scale: jax.Array | None, maximize: bool
) -> tuple[jax.Array, jax.Array]:
    """The unscaled gradient, which torch stores, and the gradient used for the step."""
    wide = opmath(grad)
    if grad_scale is not None:
        wide = lax.div(wide, _like(wide, grad_scale))
    return wide, lax.neg(wide) if maximize else wide


def _with_decay(grad: jax.Array, param: jax.Array, weight_decay: Operand) -> jax.Array:
    if is_number(weight_decay, 0):
        return grad
    return lax.add(grad, lax.mul(param, _like(param, weight_decay)))


def _unless(found_inf: jax.Array | None, old: Tensors, new: Tensors) -> Tensors:
    if found_inf is None:
        return new
    skip = lax.eq(lax.reshape(found_inf, ()), np.array(1, found_inf.dtype))
    return [lax.select(skip, convert(a, b.dtype), b) for a, b in zip(old, new, strict=True)]


def _adam(
    decoupled: bool,
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    state_steps: Tensors,
    *,
    lr: Operand,
    beta1: Operand,
    beta2: Operand,
    weight_decay: Operand,
    eps: Operand,
    amsgrad: bool,
    maximize: bool,
    grad_scale: jax.Array | None = None,
    found_inf: jax.Array | None = None,
) -> tuple[Tensors, ...]:
    new: tuple[Tensors, ...] = ([], [], [], [], [])
    for i, param in enumerate(params):
        x = opmath(param)
        left_grad, grad = _gradient(grads[i], grad_scale, maximize)
        rate = _like(x, lr)
        if not is_number(weight_decay, 0):
            if decoupled:
                decay = lax.mul(rate, _like(x, weight_decay))
                x = lax.sub(x, lax.mul(decay, x))
            else:
                grad = _with_decay(grad, x, weight_decay)
        mean, square = opmath(exp_avgs[i]), opmath(exp_avg_sqs[i])
        mean = lax.add(mean, lax.mul(_like(x, 1 - beta1), lax.sub(grad, mean)))
        kept = lax.mul(square, _like(x, beta2))
        square = lax.add(kept, lax.mul(_like(x, 1 - beta2), lax.mul(grad, grad)))
        # In float32, 1 - 0.999 has four digits.
        step = convert(lax.reshape(state_steps[i], ()), np.dtype(np.float64))
        one = np.array(1, np.float64)
        correction1 = one - lax.pow(convert(beta1, np.dtype(np.float64)), step)
        correction2 = one - lax.pow(convert(beta2, np.dtype(np.float64)), step)
        largest = square
        if amsgrad:
            largest = lax.max(opmath(max_exp_avg_sqs[i]), square)
            new[4].append(largest)
        root = lax.div(lax.sqrt(largest), _like(x, lax.sqrt(correction2)))
        rate = lax.div(rate, _like(x, correction1))
        x = lax.sub(x, lax.div(lax.mul(rate, mean), lax.add(root, _like(x, eps))))
        for part, value in zip(new, (x, left_grad, mean, square), strict=False):
            part.append(value)
    old = (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs)
    merged = [_unless(found_inf, a[: len(b)], b) for a, b in zip(old, new, strict=True)]
    if not amsgrad:
        merged[4] = list(max_exp_avg_sqs)
    return tuple(merged)


_ADAM = "lr beta1 beta2 weight_decay eps"


@lower("aten::_fused_adam", "aten::_fused_adam.tensor_lr", runtime_floats=_ADAM)
def fused_adam(*args: Tensors, **options) -> tuple[Tensors, ...]:
    return _adam(False, *args, **options)


@lower("aten::_fused_adamw", "aten::_fused_adamw.tensor_lr", runtime_floats=_ADAM)
def fused_adamw(*args: Tensors, **options) -> tuple[Tensors, ...]:
    return _adam(True, *args, **options)


_SGD = "lr weight_decay momentum dampening"


@lower("aten::_fused_sgd", "aten::_fused_sgd.tensor_lr", runtime_floats=_SGD)
def fused_sgd(
    self: Tensors,
    grads: Tensors,
    momentum_buffer_list: Tensors,
    *,
    weight_decay: Operand,
    momentum: Operand,
    lr: Operand,
    dampening: Operand,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: jax.Array | None = None,
    found_inf: jax.Array | None = None,
) -> tuple[Tensors, Tensors, Tensors]:
    params, left, buffers = [], [], []
    for i, param in enumerate(self):
        x = opmath(param)
        left_grad, grad = _gradient(grads[i], grad_scale, maximize)
        left.append(left_grad)
        grad = _with_decay(grad, x, weight_decay)
        if not is_number(momentum, 0):
            buffer = grad
            if not is_first_step:
                kept = lax.mul(opmath(momentum_buffer_list[i]), _like(x, momentum))
                buffer = lax.add(kept, lax.mul(grad, _like(x, 1 - dampening)))
            buffers.append(buffer)
            grad = lax.add(grad, lax.mul(buffer, _like(x, momentum))) if nesterov else buffer
        params.append(lax.sub(x, lax.mul(_like(x, lr), grad)))
    if not buffers:
        buffers = list(momentum_buffer_list)
    return (
        _unless(found_inf, self, params),
        _unless(found_inf, grads, left),
        _unless(found_inf, momentum_buffer_list, buffers),
    )


@lower(
    "aten::_fused_adagrad",
    "aten::_fused_adagrad.tensor_lr",
    runtime_floats="lr lr_decay weight_decay eps",
)
def fused_adagrad(
    self: Tensors,
    grads: Tensors,
    state_sums: Tensors,
    state_steps: Tensors,
    *,
    lr: Operand,
    lr_decay: Operand,
    weight_decay: Operand,
    eps: Operand,
    maximize: bool,
    grad_scale: jax.Array | None = None,
    found_inf: jax.Array | None = None,
    outs,
) -> tuple[Tensors, ...]:
    params, left, sums = [], [], []
    for i, param in enumerate(self):
        x = opmath(param)
        left_grad, grad = _gradient(grads[i], grad_scale, maximize)
        left.append(left_grad)
        grad = _with_decay(grad, x, weight_decay)
        sums.append(lax.add(opmath(state_sums[i]), lax.mul(grad, grad)))
        done = lax.sub(_like(x, state_steps[i]), _like(x, 1))
        decayed = lax.add(_like(x, 1), lax.mul(done, _like(x, lr_decay)))
        rate = lax.div(_like(x, lr), decayed)
        root = lax.add(lax.sqrt(sums[i]), _like(x, eps))
        params.append(lax.sub(x, lax.mul(rate, lax.div(grad, root))))
    results = (
        _unless(found_inf, self, params),
        _unless(found_inf, grads, left),
        _unless(found_inf, state_sums, sums),
    )
    # The overload with a tensor as the learning rate returns no steps.
    return (*results, state_steps) if len(outs) > 3 * len(self) else results
