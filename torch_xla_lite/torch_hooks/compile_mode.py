"""Makes torch.compile, with its default backend, leave graphs on device 'jax' to XLA.

    step = torch.compile(model)         # traced by dynamo; its ops are recorded and run by XLA

torch's default backend, inductor, generates code for devices that it knows and stops with a
KeyError for others. XLA compiles what is recorded anyway, so a graph with a tensor on jax is called
as it was traced. Other graphs go to inductor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ..device import NAME
from ..startup.patches import Patch


def _recording(original: Callable[..., Any]) -> Callable[..., Any]:
    """The call of a graph that dynamo has traced, which torch's default backend would compile."""

    @functools.wraps(original)
    def call(self: Any, model: torch.fx.GraphModule, inputs: list[Any], **kwargs: Any) -> Any:
        if _is_on_jax(model, inputs):
            return model.forward
        return original(self, model, inputs, **kwargs)

    return call


def _is_on_jax(model: torch.fx.GraphModule, inputs: list[Any]) -> bool:
    values = [*inputs, *(node.meta.get("example_value") for node in model.graph.nodes)]
    return any(isinstance(value, torch.Tensor) and value.device.type == NAME for value in values)


PATCHES = (
    Patch(
        "torch",
        "_TorchCompileInductorWrapper.__call__",
        "stops with a KeyError for devices that inductor does not know",
        _recording,
    ),
)
