"""RecordedModule: what a module that is called as one op needs of it in each call.

recorded = RecordedModule(module)
params, buffers = recorded.state()
call_jax(recorded.function(), params, buffers, x)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .torch_functions import function_of

# A name of a tensor in a module, and the dict and key that have the tensor.
_Place = tuple[str, dict[str, Any], str]


class RecordedModule:
    """A module as functions of `to_jax`, one for each combination of training and evaluation.

    Which submodules, parameters and buffers there are is found once: walking through a module takes
    as long as recording it op by op. The tensors may be replaced, as by `module.to("jax")`.
    """

    def __init__(
        self, module: torch.nn.Module, transform: Callable[[Callable], Callable] = lambda fn: fn
    ) -> None:
        """
        Args:
          transform: makes of a function of `to_jax` the one that is called.
        """
        self._module = module
        self._transform = transform
        self._parts = list(module.modules())
        self._params = _places(module, module.named_parameters(), "_parameters")
        self._buffers = _places(module, module.named_buffers(), "_buffers")
        self._functions: dict[tuple[bool, ...], Callable] = {}

    def state(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """The parameters and the buffers, by name."""
        params = {name: owner[key] for name, owner, key in self._params}
        buffers = {name: owner[key] for name, owner, key in self._buffers}
        return params, buffers

    def function(self) -> Callable:
        """The function for the modes that the parts of the module have."""
        modes = tuple([part.training for part in self._parts])
        function = self._functions.get(modes)
        if function is None:
            function = self._transform(function_of(self._module, "torch"))
            self._functions[modes] = function
        return function

    def __getstate__(self) -> tuple[torch.nn.Module, Callable]:
        """Copies get functions of their own module."""
        return self._module, self._transform

    def __setstate__(self, state: tuple[torch.nn.Module, Callable]) -> None:
        self.__init__(*state)  # type: ignore[misc]


def _places(module: torch.nn.Module, named: Any, kind: str) -> list[_Place]:
    found = []
    for name, _ in named:
        owner, _, key = name.rpartition(".")
        found.append((name, getattr(module.get_submodule(owner), kind), key))
    return found
