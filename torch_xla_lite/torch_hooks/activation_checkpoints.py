"""Activation checkpoints (torch.utils.checkpoint), which compute a part of the forward pass again.

    y = checkpoint(layer, x, use_reentrant=False)

In one graph with the first time, both are the same operations on the same values, and XLA computes
them once: nothing would be saved. So before the second time, the values of its arguments are made
to depend, as it seems, on the gradient that has come so far, by a condition that is never met. Then
it is no repetition, and begins when it is needed.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.utils._python_dispatch import _get_current_dispatch_mode

from .. import _XLAC
from ..device.tensor import XLATensor2
from ..startup.patches import Patch


def _come_after_gradient(arguments: tuple[Any, ...]) -> None:
    """Writes to arguments on jax what they are, after what this thread computed last."""
    ours = [x for x in arguments if isinstance(x, XLATensor2) and not isinstance(x, FakeTensor)]
    if not ours or _get_current_dispatch_mode() is not None:
        return
    last = _XLAC.last_pending()
    if last is None or not last.is_floating_point() or last.numel() == 0:
        return
    with torch.no_grad():
        never = last.reshape(-1)[0] > math.inf  # XLA does not know the number.
        for x in ours:
            if torch._debug_has_internal_overlap(x) == 0:  # Others cannot be written to.
                x.data.masked_fill_(never, 0)


def _recomputing(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def __init__(self: Any, recompute: Callable[..., None], *args: Any, **options: Any) -> None:
        def recompute_after_gradient(*arguments: Any) -> None:
            _come_after_gradient(arguments)
            recompute(*arguments)

        init(self, recompute_after_gradient, *args, **options)

    return __init__


def _detaching(detach: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(detach)
    def detach_variable(arguments: tuple[Any, ...]) -> Any:
        _come_after_gradient(arguments)
        return detach(arguments)

    return detach_variable


PATCHES = (
    Patch(
        "torch.utils.checkpoint",
        "_CheckpointFrame.__init__",
        "repeats operations, which XLA merges with the first ones",
        _recomputing,
    ),
    Patch("torch.utils.checkpoint", "detach_variable", "the same, with use_reentrant", _detaching),
)
