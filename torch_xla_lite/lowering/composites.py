"""Ops that torch makes of others on every device, but with a rule that does not suit this one."""

import torch

_LIBRARY = torch.library.Library("aten", "IMPL")

Tensor = torch.Tensor


def tensor_split(self: Tensor, sections: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """With the sections on either device; torch wants them on the CPU, where it reads them."""
    count_or_places = sections.tolist() if sections.ndim else int(sections.item())
    return torch.tensor_split(self, count_or_places, dim)


def linalg_householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """torch's gradient is a loop over the reflectors, whose graph takes minutes to compile.

    The product of the reflectors `1 - tau[i] v[i] v[i]^H` is `1 - V T V^H`, where T follows from V
    and tau by one triangular system, which has a gradient.
    """
    op = torch.ops.aten.linalg_householder_product
    if not (torch.is_grad_enabled() and (input.requires_grad or tau.requires_grad)):
        with torch._C._AutoDispatchBelowAutograd():
            return op(input, tau)
    rows, columns = input.shape[-2:]
    count = tau.shape[-1]
    identity = torch.eye(rows, columns, dtype=input.dtype, device=input.device)
    vectors = input[..., :count].tril(-1) + identity[:, :count]
    overlap = (vectors.mH @ vectors).triu(1)
    system = torch.diag_embed(torch.ones_like(tau)) + tau[..., None] * overlap
    between = torch.linalg.solve_triangular(system, torch.diag_embed(tau), upper=True)
    return identity - vectors @ between @ vectors[..., :columns, :].mH


_LIBRARY.impl("linalg_householder_product", linalg_householder_product, "AutogradPrivateUse1")
for _key in ("AutogradPrivateUse1", "PrivateUse1"):
    _LIBRARY.impl("tensor_split.tensor_indices_or_sections", tensor_split, _key)
