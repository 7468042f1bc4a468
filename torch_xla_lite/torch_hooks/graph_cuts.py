"""Starts the recorded ops after each step of an optimizer, also if the program reads no value.

    for batch in loader:
        loss = criterion(model(batch))
        loss.backward()
        optimizer.step()          # here each step becomes a graph of its own
    print(loss.item())

Without it, a loop that reads its loss every hundred steps would be compiled as one graph of a
hundred steps. It neither waits for results nor changes them.

    TORCH_XLA_LITE_SYNC_AFTER_STEP=0     an optimizer starts nothing
    TORCH_XLA_LITE_PENDING_LIMIT=10000   how many pending ops start a graph where there is no
                                         optimizer; 0: no number (csrc/runtime/pending_limit.h)
"""

from __future__ import annotations

import os
from typing import Any

from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from .. import _XLAC
from ..compiler import graph_breaks
from ..startup import variables

# More ops than a step of most models has, so that a graph seldom ends within a step.
_PENDING_LIMIT = 2000


def register() -> None:
    """Adds a hook to all optimizers, unless the user switched it off, and sets the limit."""
    if variables.enabled(os.environ, "TORCH_XLA_LITE_SYNC_AFTER_STEP", default="1"):
        register_optimizer_step_post_hook(_sync_after_step)
    limit = variables.number(os.environ, "TORCH_XLA_LITE_PENDING_LIMIT", default=_PENDING_LIMIT)
    _XLAC.set_pending_limit(limit)


def _sync_after_step(optimizer: Optimizer, args: tuple, kwargs: dict[str, Any]) -> None:
    if graph_breaks.is_one_graph():
        return
    # The first parameters may be elsewhere, such as an embedding on the CPU.
    if any(p.is_jax for group in optimizer.param_groups for p in group["params"]):
        _XLAC.sync()
