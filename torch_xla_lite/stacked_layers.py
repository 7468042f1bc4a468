"""StackedLayers: equal layers as one loop, so that compiling takes as long for 48 as for 4.

    encoder.layers = StackedLayers([TransformerBlock() for _ in range(32)])
    h = encoder.layers(h)                   # layer after layer, by jax.lax.scan
    blocks = encoder.layers.to_layers()     # modules again, such as for their state_dict

The parameters are stored stacked: a loop over parameters that each step stacks compiles as slowly
as the layers one after the other.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import jax
import torch

from .jax_calls import call_jax
from .recorded_modules import RecordedModule


class StackedLayers(torch.nn.Module):
    """Layers of one structure, applied one after the other in a loop.

    A parameter or buffer `name` of the layers is `layer.name`, with a first dimension for the
    layers. The layers must be as for `to_jax`, give what they take in their first argument, and
    draw no random numbers.
    """

    def __init__(self, layers: Sequence[torch.nn.Module]) -> None:
        """Takes copies of the parameters of layers.

        Raises:
          ValueError: there is no layer, or they have different parameters or buffers.
        """
        super().__init__()
        shapes = [{name: x.shape for name, x in layer.state_dict().items()} for layer in layers]
        if not layers or any(shape != shapes[0] for shape in shapes):
            raise ValueError(
                "expected layers with parameters of the same names and shapes.\n"
                "Stack those that are equal:  StackedLayers(layers[1:])"
            )
        self.num_layers = len(layers)
        self.layer = copy.deepcopy(layers[0])
        with torch.no_grad():
            for name, x in list(self.layer.named_parameters()):
                stacked = torch.stack([layer.get_parameter(name) for layer in layers])
                _set(self.layer, name, torch.nn.Parameter(stacked, x.requires_grad))
            for name, _ in list(self.layer.named_buffers()):
                _set(self.layer, name, torch.stack([layer.get_buffer(name) for layer in layers]))
        self._recorded = RecordedModule(self.layer, _Loop)

    def forward(self, x: Any, *args: Any) -> Any:
        """The result of the last layer.

        Args:
          x: of the first layer; each later one takes the result of the one before.
          args: further arguments of each layer.
        """
        params, buffers = self._recorded.state()
        # torch's dtypes: those of 64 bits stay.
        with jax.enable_x64(True):
            # Copies, because the gradient needs the values before they are updated.
            before = {name: value.clone() for name, value in buffers.items()}
            result, updated = call_jax(self._recorded.function(), params, before, x, args)
        with torch.no_grad():
            for name, value in updated.items():
                buffers[name].copy_(value)
        return result

    def to_layers(self) -> list[torch.nn.Module]:
        """The layers as modules with parameters of their own."""
        layers = []
        for i in range(self.num_layers):
            layer = copy.deepcopy(self.layer)
            with torch.no_grad():
                for name, x in list(layer.named_parameters()):
                    _set(layer, name, torch.nn.Parameter(x[i].clone(), x.requires_grad))
                for name, x in list(layer.named_buffers()):
                    _set(layer, name, x[i].clone())
            layers.append(layer)
        return layers


class _Loop:
    """The loop as a jax function."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, params: dict, buffers: dict, x: Any, args: tuple) -> tuple[Any, dict]:
        def step(x: Any, state: tuple[dict, dict]) -> tuple[Any, dict]:
            return self._function(*state, x, *args)

        return jax.lax.scan(step, x, (params, buffers))


def _set(module: torch.nn.Module, name: str, value: torch.Tensor) -> None:
    """Replaces a parameter or buffer of a module or of one below it."""
    owner, _, attribute = name.rpartition(".")
    setattr(module.get_submodule(owner), attribute, value)
