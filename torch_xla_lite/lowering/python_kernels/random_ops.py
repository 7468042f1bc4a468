"""Random ops that are made of others: of numbers drawn for each element, and of sums over them.

An interpreted graph draws the former by programs that serve many sizes
(csrc/interpreter/padded_draws.h), and needs no program for the latter.

Source: aten::multinomial, aten::_sample_dirichlet.
"""

import math

import torch

from torch_xla_lite.lowering.base.untraced import Library

Tensor = torch.Tensor

_OPS = torch.library.Library("torch_xla_lite", "FRAGMENT")
_OPS.define(
    "log_gamma(Tensor shape, Generator? generator=None) -> Tensor",
    tags=(torch.Tag.nondeterministic_seeded,),
)
_OPS.impl("log_gamma", lambda shape, generator=None: torch.empty_like(shape), "Meta")

# Of torch's kernels.
_MOST_CATEGORIES = 1 << 24


def _opmath(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _assert_all(conditions: Tensor, message: str) -> None:
    torch._assert_async(conditions.all(), f"{message} (in aten::multinomial)")


def multinomial(
    self: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    """As in torch's kernel: the categories whose events come first, if their weights are rates."""
    categories = self.shape[-1] if self.dim() in (1, 2) else 0
    most = num_samples if replacement else categories
    is_valid = self.is_floating_point() and 0 < categories <= _MOST_CATEGORIES
    if not is_valid or not 0 < num_samples <= most:
        # torch's kernel says what is wrong.
        return torch.multinomial(self.cpu(), num_samples, replacement).to(self.device)
    weights = _opmath(self)
    draws_once = not replacement or num_samples == 1
    if draws_once:
        message = "probability tensor contains either `inf`, `nan` or element < 0"
        _assert_all((weights >= 0) & (weights < math.inf), message)
    else:
        of_entries = "invalid multinomial distribution (encountering probability entry"
        _assert_all(weights >= 0, f"{of_entries} < 0)")
        _assert_all(weights < math.inf, f"{of_entries} = infinity or NaN)")
    # NaN and negative numbers are refused above.
    has_some = (weights > 0).any(-1)
    _assert_all(has_some, "invalid multinomial distribution (sum of probabilities <= 0)")
    if draws_once:
        rates = weights / torch.empty_like(weights).exponential_(generator=generator)
        if num_samples == 1:
            return rates.argmax(-1, keepdim=True)
        return rates.topk(num_samples).indices
    cumulative = weights.cumsum(-1)
    u = torch.rand(
        (*self.shape[:-1], num_samples),
        dtype=weights.dtype,
        device=self.device,
        generator=generator,
    )
    return torch.searchsorted(cumulative, u * cumulative[..., -1:], right=True)


def multinomial_out(
    self: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: torch.Generator | None = None,
    out: Tensor,
) -> Tensor:
    torch._check(
        out.dtype == torch.int64, lambda: f"multinomial expects Long tensor out, got: {out.dtype}"
    )
    drawn = multinomial(self, num_samples, replacement, generator=generator)
    return out.resize_(drawn.shape).copy_(drawn)


def sample_dirichlet(self: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """The shares of gamma numbers in their sum, from their logarithms: the numbers may be zero."""
    if not self.is_floating_point():
        return torch._sample_dirichlet(self.cpu()).to(self.device)  # It raises.
    logs = torch.ops.torch_xla_lite.log_gamma(_opmath(self), generator)
    # As in torch, no sample is zero: programs take the logarithm of samples.
    return logs.softmax(-1).clamp(min=torch.finfo(self.dtype).tiny).to(self.dtype)


_ATEN = Library("aten", "IMPL")
_ATEN.impl("multinomial", multinomial, "PrivateUse1")
_ATEN.impl("multinomial.out", multinomial_out, "PrivateUse1")
_ATEN.impl("_sample_dirichlet", sample_dirichlet, "PrivateUse1")
