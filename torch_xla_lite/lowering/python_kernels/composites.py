"""Replacements for decompositions of torch that do not suit XLA."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torch_xla_lite.lowering.base.untraced import Library

_LIBRARY = Library("aten", "IMPL")
_OPS = torch.library.Library("torch_xla_lite", "FRAGMENT")
_OPS.define("grouped_mm(Tensor self, Tensor mat2, Tensor offs) -> Tensor")

Tensor = torch.Tensor


def tensor_split(self: Tensor, sections: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Accepts `sections` on either device; torch reads them on the CPU."""
    torch._check(
        sections.dtype == torch.int64,
        lambda: (
            f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
            f"{sections.dtype}"
        ),
    )
    count_or_places = sections.tolist() if sections.ndim else int(sections.item())
    return torch.tensor_split(self, count_or_places, dim)


class _WithoutGradient(torch.autograd.Function):
    """The product of no reflectors. torch gives it no gradient, rather than one of zeros."""

    @staticmethod
    def forward(input: Tensor, tau: Tensor) -> Tensor:
        return torch.ops.aten.linalg_householder_product(input, tau)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None]:
        return None, None


def linalg_householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """torch's gradient is a loop over the reflectors, whose graph takes minutes to compile.

    The product of the reflectors `1 - tau[i] v[i] v[i]^H` is `1 - V T V^H`, where T follows from V
    and tau by one triangular system, which has a gradient.
    """
    op = torch.ops.aten.linalg_householder_product
    if not (torch.is_grad_enabled() and (input.requires_grad or tau.requires_grad)):
        with torch._C._AutoDispatchBelowAutograd():
            return op(input, tau)
    if input.numel() == 0 or tau.numel() == 0:
        return _WithoutGradient.apply(input, tau)
    rows, columns = input.shape[-2:]
    count = tau.shape[-1]
    identity = torch.eye(rows, columns, dtype=input.dtype, device=input.device)
    vectors = input[..., :count].tril(-1) + identity[:, :count]
    overlap = (vectors.mH @ vectors).triu(1)
    system = torch.diag_embed(torch.ones_like(tau)) + tau[..., None] * overlap
    between = torch.linalg.solve_triangular(system, torch.diag_embed(tau), upper=True)
    return identity - vectors @ between @ vectors[..., :columns, :].mH


def masked_fill(self: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """With a gradient that sums over a selection; torch selects the masked elements, whose number
    depends on data."""
    if not (torch.is_grad_enabled() and (self.requires_grad or value.requires_grad)):
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.aten.masked_fill.Tensor(self, mask, value)
    torch._check(value.dim() == 0, lambda: "masked_fill only supports a 0-dimensional value tensor")
    return torch.where(mask, value.to(self.dtype), self)


def masked_fill_(self: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    return self.copy_(torch.masked_fill(self, mask, value))


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Tensor:
    """With lengths that are data of the graph; torch reads them, so each would be compiled for."""
    device = log_probs.device
    used, wanted = (
        torch.as_tensor(lengths, dtype=torch.int64).to(device).reshape(-1)
        for lengths in (input_lengths, target_lengths)
    )
    is_batch = log_probs.dim() == 3
    if not is_batch:
        log_probs, targets = log_probs[:, None], targets[None]
    loss = torch.ops.aten._ctc_loss.Tensor(
        log_probs, targets.to(device, torch.int64), used, wanted, blank, zero_infinity
    )[0]
    if zero_infinity:
        loss = torch.where(loss == torch.inf, 0, loss)
    if reduction == 1:
        return (loss / wanted.clamp(min=1).to(loss.dtype)).mean()
    if reduction == 2:
        return loss.sum()
    return loss if is_batch else loss[0]


def meta_ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:
    """torch has none, because the second shape depends on data there."""
    steps, batch, classes = log_probs.shape
    is_float = log_probs.dtype in (torch.float32, torch.float64)
    torch._check_not_implemented(is_float, lambda: f"ctc_loss of {log_probs.dtype}")
    torch._check(0 <= blank < classes, lambda: "blank must be in label range")
    torch._check(targets.dim() in (1, 2), lambda: "targets must have 1 or 2 dimensions")
    for name, lengths in (("input", input_lengths), ("target", target_lengths)):
        torch._check(
            lengths.shape == (batch,),
            lambda name=name: f"{name}_lengths must be of size batch_size",
        )
    return log_probs.new_empty(batch), log_probs.new_empty(batch, steps, 2 * targets.shape[-1] + 1)


def meta_ctc_loss_backward(grad: Tensor, log_probs: Tensor, *_: object) -> Tensor:
    return torch.empty_like(log_probs)


def grouped_mm(
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """A product for each group; `offs` are the ends of the groups in the dimension that they share.
    torch's meta function refuses float32, and its kernel leaves memory behind the last group."""
    if bias is not None:
        raise NotImplementedError("_grouped_mm with a bias")
    if (offs is None) != (self.dim() == 3 and mat2.dim() == 3):
        raise RuntimeError("offs must be given exactly if one of the matrices has two dimensions")
    if out_dtype not in (None, self.dtype):
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if offs is None:
        return torch.bmm(self, mat2)
    return torch.ops.torch_xla_lite.grouped_mm(self, mat2, offs)


_assertions = threading.local()


def assert_async(self: Tensor, assert_msg: str = "Expected Tensor to be nonzero") -> None:
    """Recorded, as part of a chain whose end is kept: what nothing refers to is not computed.

    The message names an op that programs call (`describe` in compiler/recorded_graph.py)."""
    if " (in aten::" not in assert_msg:
        assert_msg += " (in aten::_assert_async)"
    end = getattr(_assertions, "end", None)
    if end is None:
        end = torch.zeros((), device=self.device)
    _assertions.end = torch.ops.aten._functional_assert_async.msg(self, assert_msg, end)


def bincount(self: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """The length of torch's result is that of the largest value.

    It is read if it is there already, or if `minlength` is 0. Otherwise the length is `minlength`,
    the graph goes on, and a value beyond it is an error.
    """
    from torch_xla_lite import _XLAC  # Here, because the package imports this one.

    valid = self.dim() == 1 and not (self.is_floating_point() or self.is_complex())
    valid = valid and self.dtype != torch.bool and minlength >= 0 and self.numel() > 0
    if not valid or (weights is not None and weights.shape != self.shape):
        # torch's kernel says what is wrong.
        cpu_weights = None if weights is None else weights.cpu()
        return torch.bincount(self.cpu(), cpu_weights, minlength).to(self.device)
    length = minlength
    if minlength == 0 or not _XLAC.is_pending(self):
        values = self.cpu()
        if weights is None:
            return torch.bincount(values, None, minlength).to(self.device)
        if values.min() < 0:
            raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
        length = max(minlength, int(values.max()) + 1)
    else:
        message = (
            f"bincount: a value is not in [0, {minlength}). torch's result is longer if one is "
            "above minlength; for that run the graph first:  torch_xla_lite.sync() "
            "(in aten::bincount)"
        )
        torch._assert_async(((self >= 0) & (self < minlength)).all(), message)
    if weights is None:
        weights = torch.ones_like(self, dtype=torch.int64)
    elif weights.dtype != torch.float32:
        weights = weights.double()
    counts = torch.zeros(length, dtype=weights.dtype, device=self.device)
    return counts.scatter_add_(0, self.long(), weights)


def linalg_check_errors(info: Tensor, api_name: str, *, is_matrix: bool) -> None:
    """Reads whether a factorisation failed, as torch does on every device: programs catch the
    error at the call."""
    try:
        info = info.cpu()
    except RuntimeError as error:
        _, graph_break, _ = str(error).partition("graph break: ")  # csrc/runtime/runtime.h
        without_check = f"{api_name.rpartition('linalg.')[2]}_ex"
        if not graph_break or not hasattr(torch.linalg, without_check):
            raise
        raise RuntimeError(
            f"{graph_break}{api_name} reads whether it failed, which "
            f"torch.linalg.{without_check} gives as a tensor"
        ) from None
    torch.ops.aten._linalg_check_errors(info, api_name, is_matrix=is_matrix)


def _quantile(name: str) -> Callable[..., Tensor]:
    """torch checks its quantiles on the CPU only."""
    op = getattr(torch.ops.aten, name).default

    def quantile(self: Tensor, q: Tensor, *args: object, **kwargs: object) -> Tensor:
        message = f"{name}() q values must be in the range [0, 1] (in aten::{name})"
        torch._assert_async(((q >= 0) & (q <= 1)).all(), message)
        return op.decompose(self, q, *args, **kwargs)

    return quantile


def equal(self: Tensor, other: Tensor) -> bool:
    """Compares on the device and reads one bool. torch's CPU kernel would read both tensors."""
    from torch_xla_lite import _XLAC  # Here, because the package imports this one.

    if _XLAC.claims_storage():
        # An import of TorchScript merges equal constants, before they have their sizes.
        return self is other
    return self.shape == other.shape and bool((self == other).all())


def allclose(
    self: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    return bool(torch.isclose(self, other, rtol, atol, equal_nan).all())


def _factory_with_out(name: str, keeps_shape: bool) -> Callable[..., Tensor]:
    """A factory of torch that fills `out`. Those of vectors keep its shape if the size fits."""
    factory = getattr(torch.ops.aten, name)

    def fill(*args: object, out: Tensor, **kwargs: object) -> Tensor:
        values = factory(*args, **kwargs, dtype=out.dtype, device=out.device)
        if keeps_shape and out.numel() == values.numel():
            return out.copy_(values.view(out.shape))
        return out.resize_(values.shape).copy_(values)

    return fill


_LIBRARY.impl("linalg_householder_product", linalg_householder_product, "AutogradPrivateUse1")
for _key in ("AutogradPrivateUse1", "PrivateUse1"):
    _LIBRARY.impl("tensor_split.tensor_indices_or_sections", tensor_split, _key)
    _LIBRARY.impl("ctc_loss.Tensor", ctc_loss, _key)
    _LIBRARY.impl("ctc_loss.IntList", ctc_loss, _key)
    _LIBRARY.impl("quantile", _quantile("quantile"), _key)
    _LIBRARY.impl("nanquantile", _quantile("nanquantile"), _key)
_LIBRARY.impl("masked_fill.Tensor", masked_fill, "AutogradPrivateUse1")
_LIBRARY.impl("masked_fill_.Tensor", masked_fill_, "AutogradPrivateUse1")
_OPS.impl(
    "grouped_mm",
    lambda a, b, offs: a.new_empty(*offs.shape * (a.dim() == b.dim()), a.shape[-2], b.shape[-1]),
    "Meta",
)
_LIBRARY.impl("_ctc_loss.Tensor", meta_ctc_loss, "Meta")
_LIBRARY.impl("_ctc_loss_backward.Tensor", meta_ctc_loss_backward, "Meta")
# In place of the recorder.
for _name, _function in (
    ("_grouped_mm", grouped_mm),
    ("_assert_async", assert_async),
    ("_assert_async.msg", assert_async),
    ("bincount", bincount),
    ("_linalg_check_errors", linalg_check_errors),
    ("equal", equal),
    ("allclose", allclose),
    ("arange.start_out", _factory_with_out("arange", keeps_shape=True)),
    ("eye.out", _factory_with_out("eye", keeps_shape=False)),
    ("eye.m_out", _factory_with_out("eye", keeps_shape=False)),
    ("linspace.out", _factory_with_out("linspace", keeps_shape=True)),
    ("logspace.out", _factory_with_out("logspace", keeps_shape=True)),
    ("randperm.generator_out", _factory_with_out("randperm", keeps_shape=False)),
    ("range.out", _factory_with_out("range", keeps_shape=True)),
    ("range.out_", _factory_with_out("range", keeps_shape=True)),
):
    _LIBRARY.impl(_name, _function, "PrivateUse1")
