"""Counts compilations and executions, and tells which line recorded an op.

    torch_xla_lite.debug.reset_metrics()
    train_one_step()
    torch_xla_lite.debug.metrics()
    # {'compiles': 1, 'loads': 0, 'executions': 1, 'cache_hits': 0, 'recorded_ops': 46,
    #  'fallbacks': {}}

With TORCH_XLA_LITE_IR_DEBUG=1 in the environment every recorded op remembers the line that recorded
it, and the error of an op that fails when the graph runs names that line. It costs a walk up the
Python stack for each op.
"""

from __future__ import annotations

import os
from typing import TypedDict

from . import _XLAC, _variables, compilation_cache

_WITH_LINES = ("TORCH_XLA_LITE_IR_DEBUG", "TORCH_XLA_LITE_CHECK_INDICES")


class Metrics(TypedDict):
    """Counts since the process started or since reset_metrics()."""

    compiles: int  # graphs that XLA compiled
    loads: int  # graphs whose compiled program was on disk (compilation_cache.py)
    executions: int  # graphs that ran
    cache_hits: int  # graphs that ran without being compiled
    recorded_ops: int  # ops that were recorded
    fallbacks: dict[str, int]  # op -> how often torch's CPU kernel ran in place of XLA's code


def metrics() -> Metrics:
    """The current counts. Does not run the recorded ops."""
    counted = _XLAC.metrics()
    loads = compilation_cache.loads()
    # The bridge counts each graph that it asked a program for, from wherever that came.
    return {**counted, "compiles": counted["compiles"] - loads, "loads": loads}


def reset_metrics() -> None:
    """Sets all counts to zero. Compiled graphs stay in the cache."""
    _XLAC.reset_metrics()
    compilation_cache.reset_loads()


def register() -> None:
    """Enables line recording if a variable is set whose errors name lines."""
    if any(_variables.enabled(os.environ, name) for name in _WITH_LINES):
        _XLAC.set_ir_debug(True)
