import pytest
import torch
from comparison import check

aten = torch.ops.aten

# Input, weight, stride, padding, dilation, transposed, output padding, groups.
CASES = {
    "strided": ((2, 4, 9, 9), (6, 4, 3, 3), [2, 2], [1, 1], [1, 1], False, [0, 0], 1),
    "one-d, grouped, dilated": ((2, 4, 9), (6, 2, 3), [2], [1], [2], False, [0], 2),
    "three-d": ((2, 4, 5, 5, 5), (6, 4, 3, 3, 3), [1, 2, 1], [1, 1, 0], [1] * 3, False, [0] * 3, 1),
    "depthwise": ((2, 4, 9, 9), (8, 1, 3, 3), [1, 1], [1, 1], [1, 1], False, [0, 0], 4),
    "transposed": ((2, 4, 9, 9), (4, 3, 3, 3), [2, 2], [1, 1], [1, 1], True, [1, 1], 1),
    "transposed, grouped": ((2, 4, 9, 9), (4, 3, 3, 2), [2, 3], [1, 0], [2, 1], True, [1, 0], 2),
    "transposed, one-d": ((2, 4, 7), (4, 2, 3), [2], [0], [1], True, [0], 2),
    "one number for all dimensions": ((2, 4, 9, 9), (6, 4, 3, 3), [2], [1], [1], False, [0], 1),
}


def operands(case):
    shape, window, *geometry = case
    x, weight = torch.randn(shape), torch.randn(window)
    channels = window[1] * geometry[-1] if geometry[3] else window[0]
    return x, weight, torch.randn(channels), geometry


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_convolution(case):
    x, weight, bias, geometry = operands(case)
    check(aten.convolution, x, weight, bias, *geometry, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_its_gradients(case):
    x, weight, bias, geometry = operands(case)
    grad = torch.randn_like(aten.convolution(x, weight, bias, *geometry))
    sizes = [len(bias)]
    mask = [True] * 3
    check(aten.convolution_backward, grad, x, weight, sizes, *geometry, mask, rtol=1e-4, atol=1e-4)


def test_gradients_that_are_not_wanted_are_none():
    x, weight, bias, geometry = operands(CASES["strided"])
    grad = torch.randn_like(aten.convolution(x, weight, bias, *geometry))
    mask = [False, True, False]
    check(aten.convolution_backward, grad, x, weight, None, *geometry, mask, rtol=1e-4, atol=1e-4)


def test_an_empty_batch():
    x, weight, bias, geometry = operands(CASES["strided"])
    check(aten.convolution, x[:0], weight, bias, *geometry)
