"""LSTM, GRU and RNN: the fused cells of a single step, and the recurrence of a layer as a scan."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from torch_xla_lite.lowering.base.promotion import opmath
from torch_xla_lite.lowering.base.registry import lower
from torch_xla_lite.lowering.matmul import dot, linear

_MM = (((1,), (0,)), ((), ()))


def _with_bias(gates: jax.Array, bias: jax.Array | None) -> jax.Array:
    return opmath(gates) if bias is None else opmath(gates) + opmath(bias)


@lower("aten::_thnn_fused_lstm_cell", own_kernel="lstm_cell")
def fused_lstm_cell(
    input_gates: jax.Array,
    hidden_gates: jax.Array,
    cx: jax.Array,
    input_bias: jax.Array | None = None,
    hidden_bias: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    gates = _with_bias(input_gates, input_bias) + _with_bias(hidden_gates, hidden_bias)
    i, f, g, o = jnp.split(gates, 4, axis=1)
    i, f, g, o = lax.logistic(i), lax.logistic(f), lax.tanh(g), lax.logistic(o)
    cy = f * opmath(cx) + i * g
    return o * lax.tanh(cy), cy, jnp.concatenate([i, f, g, o], axis=1)


@lower("aten::_thnn_fused_lstm_cell_backward_impl", own_kernel="lstm_cell_backward")
def fused_lstm_cell_backward(
    grad_hy: jax.Array | None,
    grad_cy: jax.Array | None,
    cx: jax.Array,
    cy: jax.Array,
    workspace: jax.Array,
    has_bias: bool,
) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    i, f, g, o = jnp.split(opmath(workspace), 4, axis=1)
    squashed = lax.tanh(opmath(cy))
    grad_h = jnp.zeros_like(squashed) if grad_hy is None else opmath(grad_hy)
    grad_c = grad_h * o * (1 - squashed * squashed)
    if grad_cy is not None:
        grad_c = grad_c + opmath(grad_cy)
    grads = [
        grad_c * g * i * (1 - i),
        grad_c * opmath(cx) * f * (1 - f),
        grad_c * i * (1 - g * g),
        grad_h * squashed * o * (1 - o),
    ]
    gates = jnp.concatenate(grads, axis=1)
    return gates, grad_c * f, gates.sum(0) if has_bias else None


@lower("aten::_thnn_fused_gru_cell", own_kernel="gru_cell")
def fused_gru_cell(
    input_gates: jax.Array,
    hidden_gates: jax.Array,
    hx: jax.Array,
    input_bias: jax.Array | None = None,
    hidden_bias: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array]:
    ir, iz, inew = jnp.split(_with_bias(input_gates, input_bias), 3, axis=1)
    hr, hz, hnew = jnp.split(_with_bias(hidden_gates, hidden_bias), 3, axis=1)
    r, z = lax.logistic(ir + hr), lax.logistic(iz + hz)
    n = lax.tanh(inew + r * hnew)
    h = opmath(hx)
    return n + z * (h - n), jnp.concatenate([r, z, n, h, hnew], axis=1)


@lower("aten::_thnn_fused_gru_cell_backward", own_kernel="gru_cell_backward")
def fused_gru_cell_backward(
    grad_hy: jax.Array, workspace: jax.Array, has_bias: bool
) -> tuple[jax.Array | None, ...]:
    r, z, n, h, hnew = jnp.split(opmath(workspace), 5, axis=1)
    grad = opmath(grad_hy)
    grad_n = grad * (1 - z) * (1 - n * n)
    grad_z = grad * (h - n) * z * (1 - z)
    grad_r = grad_n * hnew * r * (1 - r)
    to_input = jnp.concatenate([grad_r, grad_z, grad_n], axis=1)
    to_hidden = jnp.concatenate([grad_r, grad_z, grad_n * r], axis=1)
    biases = (to_input.sum(0), to_hidden.sum(0)) if has_bias else (None, None)
    return to_input, to_hidden, grad * z, *biases


# --- all steps of a layer: the ops of recurrent_ops.py --------------------------------------------


def _arguments(cell: str, x: jax.Array, hidden: jax.Array) -> jax.Array:
    """Pre-activations of the gates, linear in both."""
    if cell != "gru":
        return x + hidden
    # The new state needs its two parts on their own.
    split = x.shape[-1] // 3 * 2
    gates = x[..., :split] + hidden[..., :split]
    return jnp.concatenate([gates, x[..., split:], hidden[..., split:]], -1)


def _next_state(
    cell: str, gates: jax.Array, h: jax.Array, c: jax.Array | None
) -> tuple[jax.Array, jax.Array | None]:
    if cell == "lstm":
        i, f, g, o = jnp.split(gates, 4, -1)
        c = lax.logistic(f) * c + lax.logistic(i) * lax.tanh(g)
        return lax.logistic(o) * lax.tanh(c), c
    if cell == "gru":
        r, z, from_x, from_h = jnp.split(gates, 4, -1)
        n = lax.tanh(from_x + lax.logistic(r) * from_h)
        return n + lax.logistic(z) * (h - n), None
    return lax.tanh(gates) if cell == "rnn_tanh" else jnp.where(gates > 0, gates, 0), None


def _scan(step: Callable, state: Any, inputs: Any, reverse: bool) -> tuple[Any, Any]:
    """The last state, and the states after each step.

    XLA's CPU backend computes a value of a loop again for each of its uses. So the state before
    each step is stored, which is an argument of the loop: 1.7 times as fast.
    """

    def store(state: Any, inputs: Any) -> tuple[Any, Any]:
        return step(state, inputs), state

    last, before = lax.scan(store, state, inputs, reverse=reverse)
    return last, _shifted(last, before, reverse)


def _shifted(end: Any, states: Any, forward: bool) -> Any:
    """The states one step further, or one step back, with another one in the free place."""

    def shift(end: jax.Array, states: jax.Array) -> jax.Array:
        return jnp.concatenate([end[None], states[:-1]] if forward else [states[1:], end[None]])

    return jax.tree.map(shift, end, states)


def _where_valid(valid: jax.Array | None, chosen: Any, other: Any) -> Any:
    if valid is None:
        return chosen
    return jax.tree.map(lambda a, b: jnp.where(valid[:, None], a, b), chosen, other)


@lower("torch_xla_lite::recurrence", own_kernel="recurrence")
def recurrence(
    x: jax.Array,
    h: jax.Array,
    c: jax.Array | None,
    w_hh: jax.Array,
    b_hh: jax.Array | None,
    w_hr: jax.Array | None,
    valid: jax.Array | None,
    cell: str,
    reverse: bool,
) -> tuple[jax.Array, jax.Array | None, jax.Array]:
    def step(state: Any, inputs: Any) -> Any:
        x, valid = inputs
        *state, _ = state
        gates = _arguments(cell, opmath(x), opmath(linear(state[0], w_hh, b_hh)))
        new_h, new_c = _next_state(cell, gates, *jax.tree.map(opmath, state))
        if w_hr is not None:
            new_h = linear(new_h, opmath(w_hr))
        new = jax.tree.map(lambda new, old: new.astype(old.dtype), [new_h, new_c], state)
        return *_where_valid(valid, new, state), gates

    no_gates = jnp.zeros_like(_arguments(cell, opmath(x[0]), opmath(x[0])))
    return _scan(step, (h, c, no_gates), (x, valid), reverse)[1]


@lower("torch_xla_lite::recurrence_backward", own_kernel="recurrence_backward")
def recurrence_backward(
    grad_hs: jax.Array,
    grad_cs: jax.Array | None,
    hs: jax.Array,
    cs: jax.Array | None,
    gates: jax.Array,
    x: jax.Array,
    h: jax.Array,
    c: jax.Array | None,
    w_hh: jax.Array,
    b_hh: jax.Array | None,
    w_hr: jax.Array | None,
    valid: jax.Array | None,
    cell: str,
    reverse: bool,
) -> tuple[jax.Array | None, ...]:
    if cs is not None and grad_cs is None:
        grad_cs = jnp.zeros_like(cs)
    gates, *weights = jax.tree.map(opmath, (gates, w_hh, w_hr))
    # Before each step.
    states = jax.tree.map(opmath, _shifted((h, c), (hs, cs), not reverse))
    next_state = functools.partial(_next_state, cell)

    def split(grad_gates: jax.Array) -> list[jax.Array]:
        """The gradients of the two arguments of the gates, x and the product with w_hh."""
        like = jax.ShapeDtypeStruct((*grad_gates.shape[:-1], x.shape[-1]), grad_gates.dtype)
        return jax.linear_transpose(functools.partial(_arguments, cell), like, like)(grad_gates)

    def step(grads: Any, inputs: Any) -> Any:
        outer, gates, state, valid = inputs
        grads = jax.tree.map(lax.add, grads[:2], jax.tree.map(opmath, outer))
        none = jax.tree.map(jnp.zeros_like, grads)
        kept = _where_valid(valid, none, grads)
        grad_h, grad_c = _where_valid(valid, grads, none)
        unprojected = grad_h if w_hr is None else dot(grad_h, weights[1], _MM)
        _, pull_back = jax.vjp(next_state, gates, *state)
        grad_gates, *grad_state = pull_back((unprojected, grad_c))
        grad_state[0] = grad_state[0] + dot(split(grad_gates)[1], weights[0], _MM)
        of_state = jax.tree.map(lax.add, tuple(grad_state), kept)
        return *of_state, grad_gates, None if w_hr is None else grad_h

    start = jax.tree.map(lambda x: jnp.zeros_like(opmath(x)), (h, c))
    (*of_first, _, _), (_, _, grad_gates, grad_h) = _scan(
        step,
        (*start, jnp.zeros_like(gates[0]), None if w_hr is None else jnp.zeros_like(start[0])),
        ((grad_hs, grad_cs), gates, states, valid),
        not reverse,
    )
    grad_x, grad_hidden = split(grad_gates)

    def of_weight(grads: jax.Array, inputs: jax.Array) -> jax.Array:
        return dot(grads, inputs, (((0, 1), (0, 1)), ((), ())))

    return (
        grad_x,
        *of_first,
        of_weight(grad_hidden, states[0]),
        None if b_hh is None else grad_hidden.sum((0, 1)),
        None if w_hr is None else of_weight(grad_h, next_state(gates, *states)[0]),
    )
