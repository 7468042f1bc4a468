"""Kernels in Python that torch.compile does not trace.

    _LIBRARY = Library("aten", "IMPL")
    _LIBRARY.impl("quantile", quantile, "PrivateUse1")

After a graph break torch.compile looks at each Python function that begins, also at kernels, which
the dispatcher calls: it would trace them, what they call and the bridge.
"""

import types
from typing import Any

import torch

# In C++, and there before torch._dynamo is imported, which takes a second.
_TRACER = torch._C._dynamo.eval_frame


def skip(code: types.CodeType) -> None:
    """Keeps torch.compile from tracing functions of this code and what they call."""
    action = _TRACER._FrameAction.SKIP
    _TRACER.set_code_exec_strategy(code, _TRACER._FrameExecStrategy(action, action))


class Library(torch.library.Library):
    """torch's, whose kernels are not traced."""

    def impl(self, op: str, kernel: types.FunctionType, *args: Any, **kwargs: Any) -> None:
        skip(kernel.__code__)
        super().impl(op, kernel, *args, **kwargs)
