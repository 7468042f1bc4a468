"""pure: a module whose Python code runs once for each signature of its arguments.

    model = torch_xla_lite.pure(model)
    model(x)            # the first call records the ops of the model, later ones record one op

For models of many small ops, of which recording takes longer than running. Nothing notices when the
Python code would do something else the next time; torch.compile with backend "torch_xla_lite" does.
"""

from __future__ import annotations

from typing import Any

import torch

from .recorded_modules import RecordedModule


class PureModule(torch.nn.Module):
    """A module that is called as one op. Its parameters and buffers are those of the module."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module
        self._recorded = RecordedModule(module)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._recorded(*args, **kwargs)


def pure(module: torch.nn.Module) -> PureModule:
    """A module that is called as one op.

    Its Python code runs once for each signature of the arguments, as in `to_jax`, so it must not
    depend on values, and what it does besides computing does not happen again. Its parts, and the
    names of their parameters, are those that it has now.

    Args:
      module: on either device. The result has the same parameters and buffers.
    """
    return PureModule(module)
