"""What the samples of PyTorch's database do not say of products."""

import torch
from comparison import check

aten = torch.ops.aten


def test_halves_accumulate_in_float32():
    ones = torch.full((1, 4096), 0.1, dtype=torch.bfloat16)
    check(aten.mm, ones, ones.t().contiguous())


def test_a_product_goes_through_gelu():
    args = (torch.randn(5), torch.randn(3, 4), torch.randn(4, 5))
    check(aten._addmm_activation, *args, beta=0.3, alpha=2.5, use_gelu=True)


def test_vdot_conjugates():
    check(aten.vdot, torch.tensor([1 + 2j, 3j]), torch.tensor([2 - 1j, 1j]))


def test_a_product_of_three():
    a, b, c = torch.randn(5, 3), torch.randn(2, 3, 4), torch.randn(5, 4)
    check(aten._trilinear, a, b, c, [1, 3], [0], [1, 2], [2, 3])
