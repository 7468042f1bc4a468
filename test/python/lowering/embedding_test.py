import pytest
import torch
from comparison import check, run

aten = torch.ops.aten
INDICES = torch.randint(0, 10, (3, 5))


def test_embedding_takes_rows():
    check(aten.embedding, torch.randn(10, 4), INDICES)


@pytest.mark.parametrize("by_frequency", [False, True])
@pytest.mark.parametrize("padding", [-1, 2])
def test_gradient_skips_padding(padding, by_frequency):
    grad = torch.randn(3, 5, 4)
    check(aten.embedding_dense_backward, grad, INDICES, 10, padding, by_frequency)


def test_gradient_of_halves_accumulates_in_float32():
    grad = torch.full((512, 2), 0.1, dtype=torch.bfloat16)
    args = (grad, torch.zeros(512, dtype=torch.int64), 2, -1, False)
    (got,) = run(aten.embedding_dense_backward, *args, expected=[grad[:2]])
    assert torch.equal(got[0], grad.float().sum(0).bfloat16())
