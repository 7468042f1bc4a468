"""Finds the line of the user's program that records an op, and the module, for messages and traces
(TORCH_XLA_LITE_IR_DEBUG=1).

    _XLAC.set_ir_debug(describe)      # which is then called for each op
    # "net.py:9 in forward (module Net.layers.0)"

The line is that of the innermost Python frame outside torch and this package, the module that whose
forward() is running. Autograd runs the backward pass on the thread that called backward(), so its
ops have the line of that call; their module is that of the op whose gradient they compute.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType

import torch

from ..startup import program_lines

# A node of autograd: its thread, and its number among the nodes that the thread has made.
Node = tuple[int, int]

# The module of an op with gradients by the node that it made. Of the last nodes only, because these
# are names in messages and traces.
_MOST_NODES = 1 << 16
_modules: dict[int, tuple[Node, str]] = {}

# Runs forward(). By name, because torch.compile runs a copy of its code.
_CALL = (torch.nn.modules.module.__file__, "_call_impl")


def describe(last: Node | None, running: Node | None) -> str:
    """Where the op is recorded; empty outside of files of the user.

    Args:
      last: the node that this thread has made last.
      running: the one whose gradient is being computed.
    """
    frames = [*program_lines.frames(sys._getframe(1))]
    path = _module_path(frames)
    if not path and running is not None:
        node, name = _modules.get(running[1] % _MOST_NODES, (None, ""))
        path = name if node == running else ""
    # If the op has gradients, its node is the last one. If not, that node has its module already.
    if last is not None and _modules.get(slot := last[1] % _MOST_NODES, (None,))[0] != last:
        _modules[slot] = last, path
    line = next(
        (
            f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
            for frame in frames
            if not program_lines.is_library(frame.f_code.co_filename)
        ),
        "",
    )
    return f"{line} (module {path})" if path else line


def _module_path(frames: Sequence[FrameType]) -> str:
    """ "Net.layers.0", or "" outside modules."""
    codes = [(frame, frame.f_code) for frame in frames]
    calls = [frame for frame, code in codes if (code.co_filename, code.co_name) == _CALL]
    modules = [frame.f_locals["self"] for frame in calls]
    names = [module._get_name() for module in modules[-1:]]
    for parent, module in zip(modules[:0:-1], modules[-2::-1], strict=True):
        within = (name for name, part in parent.named_modules() if part is module)
        names.append(next(within, module._get_name()))
    return ".".join(names)
