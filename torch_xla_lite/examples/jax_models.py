"""The models of models.py, written by hand in jax: the benchmark compares with them.

    step, state = make_step("mlp", model, "adam", learning_rate=1e-3)
    state, loss = step(state, inputs, targets)      # jax.jit, which donates the old state

They have the same mathematics and the same parameters, with the names of the torch model, in the
usual style of jax: pure functions, `jax.value_and_grad`, one jitted step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import torch
from jax import lax

from .models import Transformer

Arrays = dict[str, jax.Array]


def mlp(params: Arrays, stats: Arrays, x: jax.Array) -> tuple[jax.Array, Arrays]:
    for layer in ("0", "3"):
        x = jax.nn.relu(_linear(params, layer, x))
    return _linear(params, "6", x), stats


def convnet(params: Arrays, stats: Arrays, x: jax.Array) -> tuple[jax.Array, Arrays]:
    new_stats: Arrays = {}
    x = jax.nn.relu(_batch_norm(params, stats, new_stats, "1", _conv(params, "0", x)))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    x = jax.nn.relu(_batch_norm(params, stats, new_stats, "5", _conv(params, "4", x)))
    x = lax.reduce_window(x, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4
    return _linear(params, "10", x.reshape(x.shape[0], -1)), new_stats


def transformer(params: Arrays, stats: Arrays, tokens: jax.Array) -> tuple[jax.Array, Arrays]:
    x = params["embed.weight"][tokens] + params["position"]
    for index in range(2):
        layer = f"encoder.layers.{index}."
        x = _layer_norm(params, layer + "norm1", x + _attention(params, layer + "self_attn.", x))
        hidden = jax.nn.relu(_linear(params, layer + "linear1", x))
        x = _layer_norm(params, layer + "norm2", x + _linear(params, layer + "linear2", hidden))
    return _linear(params, "head", x).reshape(-1, Transformer.TOKENS), stats


FORWARDS = {"mlp": mlp, "convnet": convnet, "transformer": transformer}


def make_step(
    name: str, model: torch.nn.Module, optimizer: str, *, learning_rate: float
) -> tuple[Callable[..., tuple[Any, jax.Array]], Any]:
    """A jitted training step and its initial state.

    Args:
      name: of the model, as in models.MODELS.
      model: its initial parameters are copied; on the CPU.
      optimizer: "sgd" (momentum 0.9) or "adam" (torch's defaults).
      learning_rate: a parameter of the step, not a constant in it.

    Returns:
      `step(state, inputs, targets) -> (state, loss)` and `state`. The step donates its `state`.
    """
    forward = FORWARDS[name]
    # Copied, because jax may share torch's memory, and the step donates it.
    params = {
        key: jnp.array(value.detach().numpy(), copy=True) for key, value in model.named_parameters()
    }
    stats = {
        key: jnp.array(value.numpy(), copy=True)
        for key, value in model.named_buffers()
        if "num_batches" not in key
    }

    def loss_of(
        params: Arrays, stats: Arrays, x: jax.Array, y: jax.Array
    ) -> tuple[jax.Array, Arrays]:
        logits, stats = forward(params, stats, x)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1)
        return -chosen.mean(), stats

    def step(state: Any, x: jax.Array, y: jax.Array) -> tuple[Any, jax.Array]:
        params, stats, moments, count, rate = state
        (loss, stats), grads = jax.value_and_grad(loss_of, has_aux=True)(params, stats, x, y)
        count = count + 1
        params, moments = UPDATES[optimizer](params, grads, moments, count, rate)
        return (params, stats, moments, count, rate), loss

    zeros = jax.tree.map(jnp.zeros_like, params)
    moments = (zeros,) if optimizer == "sgd" else (zeros, jax.tree.map(jnp.zeros_like, params))
    state = (params, stats, moments, jnp.zeros((), jnp.float32), jnp.float32(learning_rate))
    return jax.jit(step, donate_argnums=0), state


def _sgd(
    params: Any, grads: Any, moments: Any, count: jax.Array, rate: jax.Array
) -> tuple[Any, Any]:
    (momentum,) = moments
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    return jax.tree.map(lambda p, m: p - rate * m, params, momentum), (momentum,)


def _adam(
    params: Any, grads: Any, moments: Any, count: jax.Array, rate: jax.Array
) -> tuple[Any, Any]:
    first, second = moments
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, grads)
    size = rate / (1 - 0.9**count)
    scale = jnp.sqrt(1 - 0.999**count)

    def moved(p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
        return p - size * m / (jnp.sqrt(v) / scale + 1e-8)

    return jax.tree.map(moved, params, first, second), (first, second)


UPDATES = {"sgd": _sgd, "adam": _adam}


def _linear(params: Arrays, name: str, x: jax.Array) -> jax.Array:
    return x @ params[name + ".weight"].T + params[name + ".bias"]


def _conv(params: Arrays, name: str, x: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(x, params[name + ".weight"], (1, 1), "SAME")


def _batch_norm(
    params: Arrays, stats: Arrays, new_stats: Arrays, name: str, x: jax.Array
) -> jax.Array:
    mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    count = x.size // x.shape[1]
    for key, value in (("running_mean", mean), ("running_var", var * count / (count - 1))):
        new_stats[f"{name}.{key}"] = 0.9 * stats[f"{name}.{key}"] + 0.1 * lax.stop_gradient(value)
    scale = params[name + ".weight"] * lax.rsqrt(var + 1e-5)
    return (x - mean[:, None, None]) * scale[:, None, None] + params[name + ".bias"][:, None, None]


def _layer_norm(params: Arrays, name: str, x: jax.Array) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    normal = centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return normal * params[name + ".weight"] + params[name + ".bias"]


def _attention(params: Arrays, name: str, x: jax.Array) -> jax.Array:
    batch, length, width = x.shape
    mixed = x @ params[name + "in_proj_weight"].T + params[name + "in_proj_bias"]
    heads = mixed.reshape(batch, length, 3, Transformer.HEADS, -1).transpose(2, 0, 3, 1, 4)
    query, key, value = heads
    scores = query @ key.swapaxes(-1, -2) / (width // Transformer.HEADS) ** 0.5
    attended = (jax.nn.softmax(scores) @ value).swapaxes(1, 2).reshape(batch, length, width)
    return _linear(params, name + "out_proj", attended)
