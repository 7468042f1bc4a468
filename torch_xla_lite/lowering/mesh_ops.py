"""The op of a constraint: the same values, divided among the devices of a mesh in a given way.

torch.ops.torch_xla_lite.constrain(x, placements.constraint(["data", None]))
"""

from typing import Any

import torch

_OPS = torch.library.Library("torch_xla_lite", "FRAGMENT")
_OPS.define("constrain(Tensor self, str spec) -> Tensor")
_OPS.impl("constrain", lambda self, spec: torch.empty_like(self), "Meta")


def _setup(ctx: Any, inputs: tuple[torch.Tensor, str], output: torch.Tensor) -> None:
    ctx.spec = inputs[1]


def _backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
    return torch.ops.torch_xla_lite.constrain(grad, ctx.spec), None


torch.library.register_autograd(
    "torch_xla_lite::constrain", _backward, setup_context=_setup, lib=_OPS
)
