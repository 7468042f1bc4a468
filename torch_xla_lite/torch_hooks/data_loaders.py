"""Silences jax's warning about forks where torch's DataLoader starts its workers.

jax warns that a forked process may deadlock in XLA. A worker that uses the device gets an error
instead (CheckUsable in csrc/python/executor.cc), and others do not need XLA. Other forks warn.
"""

import functools
import warnings
from collections.abc import Callable
from typing import Any

from ..startup.patches import Patch


def _without_warning(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def init_silently(self: Any, loader: Any) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
            init(self, loader)

    return init_silently


PATCHES = (
    Patch(
        "torch.utils.data.dataloader",
        "_MultiProcessingDataLoaderIter.__init__",
        "forks processes, of which jax warns",
        _without_warning,
    ),
)
