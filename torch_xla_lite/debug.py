"""What the runtime does: counts of compilations and runs, and the line that recorded an op.

    torch_xla_lite.debug.reset_metrics()
    train_one_step()
    torch_xla_lite.debug.metrics()
    # {'compiles': 1, 'executions': 1, 'cache_hits': 0, 'recorded_ops': 46, 'fallbacks': {}}

With TORCH_XLA_LITE_IR_DEBUG=1 in the environment every recorded op remembers the line that recorded
it, and an op that fails when the graph runs names that line. It costs a walk up the Python stack
for each op; without it, nothing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TypedDict

import torch

from . import _XLAC, _variables

_IR_DEBUG = "TORCH_XLA_LITE_IR_DEBUG"

# Frames in these folders are not the user's.
_NOT_USER = tuple(
    f"{folder}{os.sep}"
    for file in (torch.__file__, __file__)
    for folder in {Path(file).parent, Path(file).resolve().parent}
)


class Metrics(TypedDict):
    """Counts since the process started or since reset_metrics()."""

    compiles: int  # graphs that XLA compiled
    executions: int  # graphs that ran
    cache_hits: int  # graphs that ran without being compiled
    recorded_ops: int  # ops that were recorded
    fallbacks: dict[
        str, int
    ]  # op -> how often it ran outside of XLA's own code, by torch's CPU kernel


def metrics() -> Metrics:
    """A snapshot of the counts. It does not run what is recorded."""
    return _XLAC.metrics()


def reset_metrics() -> None:
    """Sets all counts to zero. Compiled graphs are kept."""
    _XLAC.reset_metrics()


def register() -> None:
    """Switches line recording on if the environment asks for it."""
    if _variables.enabled(os.environ, _IR_DEBUG):
        _XLAC.set_ir_debug(True)


def user_line() -> str:
    """`train.py:12 in step`: the innermost line in execution that is neither torch's nor ours.

    "" if there is none. During `backward()` that is the line that called it, or nothing, because
    the engine has a thread of its own.
    """
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_NOT_USER) and not code.co_filename.startswith(
            "<frozen"
        ):
            return f"{code.co_filename}:{frame.f_lineno} in {code.co_name}"
        frame = frame.f_back
    return ""
