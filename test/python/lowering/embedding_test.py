"""What the samples of PyTorch's database do not say of embeddings."""

import pytest
import torch
from comparison import check, run

aten = torch.ops.aten


def test_gradient_of_halves_accumulates_in_float32():
    grad = torch.full((512, 2), 0.1, dtype=torch.bfloat16)
    args = (grad, torch.zeros(512, dtype=torch.int64), 2, -1, False)
    (got,) = run(aten.embedding_dense_backward, *args)
    assert torch.equal(got[0], grad.float().sum(0).bfloat16())


SIX = torch.tensor([1, 4, 2, 2, 9, 0])
OFFSETS = torch.tensor([0, 2, 2])


def test_weighted_bags_and_the_gradient_of_the_weights():
    table, weights = torch.randn(10, 4), torch.rand(6)
    check(aten._embedding_bag, table, SIX, OFFSETS, False, 0, False, weights, compare=[0])
    bags = torch.tensor([0, 0, 2, 2, 2, 2])
    args = (torch.randn(3, 4), table, SIX, OFFSETS, bags, 0)
    check(aten._embedding_bag_per_sample_weights_backward, *args)


def test_gradient_of_bags_divided_by_how_often_a_row_was_used():
    pairs, bags, sizes = (
        torch.tensor([2, 2, 3, 3]),
        torch.tensor([0, 0, 0, 1]),
        torch.tensor([3, 1]),
    )
    maxima = torch.empty(0, dtype=torch.int64)
    args = (torch.randn(2, 4), pairs, torch.tensor([0, 3]), bags, sizes, maxima)
    check(aten._embedding_bag_backward, *args, 10, True, 0, False, None)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_bags_without_indices(mode):
    nothing, offsets = torch.zeros(0, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)
    check(aten._embedding_bag, torch.randn(5, 3), nothing, offsets, False, mode, compare=[0])
