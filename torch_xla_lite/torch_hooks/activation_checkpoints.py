"""Activation checkpoints (torch.utils.checkpoint), which compute a part of the forward pass again.

    y = checkpoint(layer, x, use_reentrant=False)

In one graph with the first time, both are the same operations on the same values, and XLA computes
them once: nothing would be saved. So the second time has copies of its inputs that seem to depend
on the gradient that has come so far, by a condition that is never met. Then it is no repetition,
and begins when it is needed.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from .. import _XLAC
from ..device.tensor import XLATensor2
from ..startup.patches import Patch


def _after_gradient(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same values; those on jax are new ones after what this thread computed last."""
    last = _XLAC.last_pending()
    if last is None or not last.is_floating_point() or last.numel() == 0:
        return inputs
    with torch.no_grad():
        never = last.reshape(-1)[0] > math.inf  # XLA does not know the number.
        return tuple(_copy_unless(never, x) if isinstance(x, XLATensor2) else x for x in inputs)


def _copy_unless(never: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return x.detach().masked_fill(never, 0).requires_grad_(x.requires_grad)


def _recomputing(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def __init__(self: Any, recompute: Callable[..., None], *args: Any, **options: Any) -> None:
        init(self, lambda *inputs: recompute(*_after_gradient(inputs)), *args, **options)

    return __init__


def _detaching(detach: Callable[..., Any]) -> Callable[..., Any]:
    return functools.wraps(detach)(lambda inputs: detach(_after_gradient(inputs)))


PATCHES = (
    Patch(
        "torch.utils.checkpoint",
        "_CheckpointFrame.__init__",
        "repeats operations, which XLA merges with the first ones",
        _recomputing,
    ),
    Patch("torch.utils.checkpoint", "detach_variable", "the same, with use_reentrant", _detaching),
)
