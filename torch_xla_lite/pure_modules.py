"""pure: a module whose Python code runs once for each signature of its arguments.

    model = torch_xla_lite.pure(model)
    model(x)            # the first call records the ops of the model, later ones record one op

For models of many small ops, of which recording takes longer than running. Nothing notices when the
Python code would do something else the next time; torch.compile with backend "torch_xla_lite" does.
"""

from __future__ import annotations

from typing import Any

import torch

from . import thread_settings
from .jax_calls import call_jax
from .recorded_modules import RecordedModule
from .torch_functions import MissingKey


class PureModule(torch.nn.Module):
    """A module that is called as one op. Its parameters and buffers are those of the module."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module
        self._recorded = RecordedModule(module)
        # Whether the module draws random numbers, by training.
        self._is_random: dict[bool, bool] = {}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        params, buffers = self._recorded.state()
        # torch's dtypes: those of 64 bits stay.
        with thread_settings.wide():
            try:
                outputs, updated = self._call(params, buffers, args, kwargs)
            except MissingKey:
                self._is_random[self.module.training] = True
                outputs, updated = self._call(params, buffers, args, kwargs)
        with torch.no_grad():
            for name, value in updated.items():
                buffers[name].copy_(value)
        return outputs

    def _call(self, params: dict, buffers: dict, args: tuple, kwargs: dict) -> Any:
        rng = None
        if self._is_random.get(self.module.training):
            device = next(iter(params.values())).device if params else "jax"
            rng = torch.randint(2**32, (2,), dtype=torch.int64, device=device).to(torch.uint32)
        # Copies, because the gradient needs the values before they are updated.
        before = {name: value.clone() for name, value in buffers.items()}
        return call_jax(self._recorded.function(), params, before, *args, rng=rng, **kwargs)


def pure(module: torch.nn.Module) -> PureModule:
    """A module that is called as one op.

    Its Python code runs once for each signature of the arguments, as in `to_jax`, so it must not
    depend on values, and what it does besides computing does not happen again. Its parts, and the
    names of their parameters, are those that it has now.

    Args:
      module: on either device. The result has the same parameters and buffers.
    """
    return PureModule(module)
