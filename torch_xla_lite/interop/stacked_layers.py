"""StackedLayers: equal layers as one loop, so that compiling takes as long for 48 as for 4.

    encoder.layers = StackedLayers([TransformerBlock() for _ in range(32)])
    h = encoder.layers(h)                   # layer after layer, by jax.lax.scan
    blocks = encoder.layers.to_layers()     # modules again, such as for their state_dict
    encoder.load_state_dict(saved)          # also that of a ModuleList of blocks

The parameters are stored stacked: a loop over parameters that each step stacks compiles as slowly
as the layers one after the other.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import jax
import torch

from .recorded_modules import RecordedModule


class StackedLayers(torch.nn.Module):
    """Layers of one structure, applied one after the other in a loop.

    A parameter or buffer `name` of the layers is `layer.name`, with a first dimension for the
    layers. The layers must be as for `to_jax`, and give what they take in their first argument.
    """

    def __init__(self, layers: Sequence[torch.nn.Module]) -> None:
        """Takes copies of the parameters of layers.

        Raises:
          ValueError: there is no layer, or they differ in more than values.
        """
        super().__init__()
        if not layers:
            raise ValueError("expected one layer at least.")
        for i, layer in enumerate(layers):
            if (differs := _form(layer)) != (was := _form(layers[0])):
                pairs = zip_longest(differs, was, fillvalue="nothing")
                one, other = next(pair for pair in pairs if pair[0] != pair[1])
                raise ValueError(
                    f"expected equal layers: {one} of layer {i} is {other} of layer 0.\n"
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
        self._recorded = RecordedModule(self.layer, functools.partial(_Loop, len(layers)))
        self.register_load_state_dict_pre_hook(_stack_state)

    def forward(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The result of the last layer.

        Args:
          x: of the first layer; each later one takes the result of the one before.
          args, kwargs: further arguments of each layer.
        """
        return self._recorded(x, *args, **kwargs)

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

    def __init__(self, num_layers: int, function: Any) -> None:
        self._num_layers = num_layers
        self._function = function

    def __call__(
        self, params: dict, buffers: dict, x: Any, *args: Any, rng: Any = None, **kwargs: Any
    ) -> tuple[Any, dict]:
        def step(x: Any, state: tuple) -> tuple[Any, dict]:
            *state, key = state
            return self._function(*state, x, *args, rng=key, **kwargs)

        keys = None if rng is None else jax.random.split(rng, self._num_layers)
        states = params, buffers, keys
        # Under autocast a layer may give another dtype than it took, and each step is the same.
        first = jax.tree.map(lambda value: value[0], states)
        result, _ = jax.eval_shape(step, x, first)
        x = jax.tree.map(lambda own, other: own.astype(other.dtype), x, result)
        return jax.lax.scan(step, x, states, self._num_layers)


def _form(layer: torch.nn.Module) -> list[str]:
    """All but the values: the modules with their settings, and the tensors."""
    modules = [
        f"module {name!r} {type(part).__name__}({part.extra_repr()}) training={part.training}"
        for name, part in layer.named_modules()
    ]
    tensors = [*layer.named_parameters(), *layer.named_buffers()]
    return modules + [
        f"{name} {x.dtype} {tuple(x.shape)} requires_grad={x.requires_grad}" for name, x in tensors
    ]


def _stack_state(
    module: StackedLayers, state_dict: dict[str, Any], prefix: str, *_: object
) -> None:
    """Lets a module load the state of its layers, as a ModuleList of them has it."""
    for name in module.layer.state_dict():
        names = [f"{prefix}{i}.{name}" for i in range(module.num_layers)]
        if all(name in state_dict for name in names):
            values = [state_dict.pop(name) for name in names]
            state_dict[f"{prefix}layer.{name}"] = torch.stack(values)


def _set(module: torch.nn.Module, name: str, value: torch.Tensor) -> None:
    """Replaces a parameter or buffer of a module or of one below it."""
    owner, _, attribute = name.rpartition(".")
    setattr(module.get_submodule(owner), attribute, value)
