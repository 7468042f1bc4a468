"""The fused cells of LSTM and GRU layers, which torch calls once per time step on a device."""

import jax
import jax.numpy as jnp
from jax import lax

from torch_xla_lite.lowering.promotion import opmath
from torch_xla_lite.lowering.registry import lower


def _with_bias(gates: jax.Array, bias: jax.Array | None) -> jax.Array:
    return opmath(gates) if bias is None else opmath(gates) + opmath(bias)


@lower("aten::_thnn_fused_lstm_cell")
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


@lower("aten::_thnn_fused_lstm_cell_backward_impl")
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


@lower("aten::_thnn_fused_gru_cell")
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


@lower("aten::_thnn_fused_gru_cell_backward")
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
