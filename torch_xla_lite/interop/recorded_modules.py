"""RecordedModule: a module that is called as one op.

recorded = RecordedModule(module)
recorded(x)                           # its buffers get their new values
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import thread_settings
from .jax_calls import call_jax
from .torch_functions import MissingKey, function_of

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
        # Whether the module draws random numbers, by training.
        self._is_random: dict[bool, bool] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results of the module, in its present modes."""
        params, buffers = self._state()
        # torch's dtypes: those of 64 bits stay.
        with thread_settings.wide():
            try:
                outputs, updated = self._call(params, buffers, args, kwargs)
            except MissingKey:
                self._is_random[self._module.training] = True
                outputs, updated = self._call(params, buffers, args, kwargs)
        with torch.no_grad():
            for name, value in updated.items():
                buffers[name].copy_(value)
        return outputs

    def _call(self, params: dict, buffers: dict, args: tuple, kwargs: dict) -> Any:
        rng = None
        if self._is_random.get(self._module.training):
            device = next(iter(params.values())).device if params else "jax"
            rng = torch.randint(2**32, (2,), dtype=torch.int64, device=device).to(torch.uint32)
        # Copies, because the gradient needs the values before they are updated.
        before = {name: value.clone() for name, value in buffers.items()}
        return call_jax(self._function(), params, before, *args, rng=rng, **kwargs)

    def _state(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """The parameters and the buffers, by name."""
        params = {name: owner[key] for name, owner, key in self._params}
        buffers = {name: owner[key] for name, owner, key in self._buffers}
        return params, buffers

    def _function(self) -> Callable:
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
