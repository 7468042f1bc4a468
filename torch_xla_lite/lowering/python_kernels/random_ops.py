"""Numbers of the Dirichlet distribution, of gamma numbers drawn for each element.

Source: aten::_sample_dirichlet.
"""

import torch

from torch_xla_lite.lowering.base.untraced import Library

Tensor = torch.Tensor

_OPS = torch.library.Library("torch_xla_lite", "FRAGMENT")
_OPS.define(
    "log_gamma(Tensor shape, Generator? generator=None) -> Tensor",
    tags=(torch.Tag.nondeterministic_seeded,),
)
_OPS.impl("log_gamma", lambda shape, generator=None: torch.empty_like(shape), "Meta")


def _opmath(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def sample_dirichlet(self: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """The shares of gamma numbers in their sum, from their logarithms: the numbers may be zero."""
    if not self.is_floating_point():
        return torch._sample_dirichlet(self.cpu()).to(self.device)  # It raises.
    logs = torch.ops.torch_xla_lite.log_gamma(_opmath(self), generator)
    # As in torch, no sample is zero: programs take the logarithm of samples.
    return logs.softmax(-1).clamp(min=torch.finfo(self.dtype).tiny).to(self.dtype)


_ATEN = Library("aten", "IMPL")
_ATEN.impl("_sample_dirichlet", sample_dirichlet, "PrivateUse1")
