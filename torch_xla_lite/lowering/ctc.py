"""The connectionist temporal classification loss, with lengths that are data and not constants.

An alignment passes through the states blank, label 0, blank, label 1, ..., blank of its target:
2 * labels + 1 of them.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base.checks import check, index_in_range
from torch_xla_lite.lowering.base.registry import lower

# Stands for log(0). Finite, because the gradient of a sum of infinities is not a number.
_IMPOSSIBLE = -1e30


@lower("aten::_ctc_loss.Tensor", completed_by="ctc_loss", kernel_needs="labels")
def ctc_loss(
    log_probs: jax.Array,
    targets: jax.Array,
    input_lengths: jax.Array,
    target_lengths: jax.Array,
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[jax.Array, jax.Array]:
    steps, _, classes = log_probs.shape
    labels = _labels(targets, target_lengths, blank)
    index_in_range(labels, classes)
    for name, lengths, limit in (
        ("input", input_lengths, steps),
        ("target", target_lengths, labels.shape[1]),
    ):
        failed = jnp.any((lengths < 0) | (lengths > limit))
        check(failed, f"{name}_lengths must be in [0, {limit}]", RuntimeError)
    states = _states(labels, blank)
    emissions = _emissions(log_probs, states)
    return _loss(emissions, states, input_lengths, target_lengths)


@lower("aten::_ctc_loss_backward.Tensor", kernel_needs="labels_of_backward")
def ctc_loss_backward(
    grad: jax.Array,
    log_probs: jax.Array,
    targets: jax.Array,
    input_lengths: jax.Array,
    target_lengths: jax.Array,
    neg_log_likelihood: jax.Array,
    log_alpha: jax.Array,
    blank: int,
    zero_infinity: bool = False,
) -> jax.Array:
    """torch's gradient, which is that before a log_softmax: it includes the softmax."""
    steps, batch, _ = log_probs.shape
    states = _states(_labels(targets, target_lengths, blank), blank)
    _, vjp = jax.vjp(
        lambda emissions: _loss(emissions, states, input_lengths, target_lengths)[0],
        _emissions(log_probs, states),
    )
    (occupied,) = vjp(jnp.full((batch,), -1, log_probs.dtype))  # [steps, batch, states]
    rows = jnp.arange(batch)[:, None]
    per_class = jnp.zeros_like(log_probs).at[:, rows, states].add(occupied, mode="clip")
    lost = jnp.isinf(neg_log_likelihood)
    per_class = jnp.where(lost[:, None], np.nan, per_class)
    result = (jnp.exp(log_probs) - per_class) * grad[:, None]
    is_used = jnp.arange(steps)[:, None] < input_lengths
    if zero_infinity:
        is_used &= ~lost
    return jnp.where(is_used[:, :, None], result, 0)


def _labels(targets: jax.Array, lengths: jax.Array, blank: int) -> jax.Array:
    """`[batch, longest]`, with blanks after the end of a target."""
    if targets.ndim == 1:
        starts = jnp.cumsum(lengths) - lengths
        places = starts[:, None] + jnp.arange(targets.size)
        targets = jnp.take(targets, places, mode="clip") if targets.size else places
    is_label = jnp.arange(targets.shape[1]) < lengths[:, None]
    return jnp.where(is_label, targets, blank)


def _states(labels: jax.Array, blank: int) -> jax.Array:
    batch, longest = labels.shape
    states = jnp.full((batch, 2 * longest + 1), blank, labels.dtype)
    return states.at[:, 1::2].set(labels)


def _emissions(log_probs: jax.Array, states: jax.Array) -> jax.Array:
    """The log probability of each state at each step, `[steps, batch, states]`."""
    index = jnp.broadcast_to(states, (log_probs.shape[0], *states.shape))
    chosen = jnp.take_along_axis(log_probs, index, axis=2, mode="clip")
    # torch's kernel subtracts the largest one before it takes exponentials: inf - inf.
    return jnp.where(chosen == np.inf, np.nan, jnp.maximum(chosen, _IMPOSSIBLE))


def _loss(
    emissions: jax.Array, states: jax.Array, input_lengths: jax.Array, target_lengths: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The loss of each target, and `[batch, steps, states]`: the log probability of all alignments
    that are in a state at a step."""
    _, batch, num_states = emissions.shape
    # Different labels need no blank between them.
    skips = (states[:, 2:] != states[:, :-2]) & (jnp.arange(2, num_states) % 2 == 1)
    skips = jnp.pad(skips, ((0, 0), (2, 0)))[:, :num_states]  # Without labels, one state.

    def shifted(alpha: jax.Array, by: int) -> jax.Array:
        return jnp.pad(alpha, ((0, 0), (by, 0)), constant_values=_IMPOSSIBLE)[:, :num_states]

    def step(alpha: jax.Array, emission: jax.Array) -> tuple[jax.Array, jax.Array]:
        skipped = jnp.where(skips, shifted(alpha, 2), _IMPOSSIBLE)
        alpha = jnp.logaddexp(jnp.logaddexp(alpha, shifted(alpha, 1)), skipped) + emission
        return alpha, alpha

    # Before the first step, an alignment is in a state before the first blank or label.
    start = jnp.where(jnp.arange(num_states) == 0, 0, _IMPOSSIBLE)
    start = jnp.broadcast_to(start, (batch, num_states)).astype(emissions.dtype)
    _, alphas = lax.scan(step, start, emissions)
    # `[steps + 1, ...]`: an input may have no steps.
    alphas = jnp.concatenate([start[None], alphas])
    rows = jnp.arange(batch)
    ends = alphas.at[input_lengths, rows].get(mode="clip")
    last_blank = ends.at[rows, 2 * target_lengths].get(mode="clip")
    last_label = ends.at[rows, jnp.maximum(2 * target_lengths - 1, 0)].get(mode="clip")
    last_label = jnp.where(target_lengths > 0, last_label, _IMPOSSIBLE)
    loss = -jnp.logaddexp(last_blank, last_label)
    loss = jnp.where(loss > -_IMPOSSIBLE / 2, np.inf, loss)
    return loss, jnp.moveaxis(alphas[1:], 0, 1)
