import math

import pytest
import torch
from comparison import check

aten = torch.ops.aten
X = torch.tensor([-4.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0, 25.0, math.nan])
GRAD = torch.linspace(-1, 1, len(X))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("celu", (1.3,)),
        ("elu", (1.3, 1.1, 0.9)),
        ("hardshrink", (0.5,)),
        ("hardsigmoid", ()),
        ("hardswish", ()),
        ("hardtanh", (-1, 1)),
        ("leaky_relu", (0.01,)),
        ("mish", ()),
        ("silu", ()),
        ("softplus", (1.5, 20)),
        ("softshrink", (0.5,)),
        ("threshold", (0.5, -7)),
        ("log_sigmoid_forward", ()),
    ],
)
def test_forward(name, args):
    check(getattr(aten, name), X, *args, compare=[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("hardshrink", (0.5,)),
        ("hardsigmoid", ()),
        ("hardswish", ()),
        ("hardtanh", (-1, 1)),
        ("leaky_relu", (0.01, False)),
        ("mish", ()),
        ("sigmoid", ()),
        ("silu", ()),
        ("softplus", (1.5, 20)),
        ("softshrink", (0.5,)),
        ("tanh", ()),
        ("threshold", (0,)),
    ],
)
def test_backward(name, args):
    check(getattr(aten, f"{name}_backward"), GRAD, X, *args, rtol=1e-5, atol=1e-6)


def test_the_slope_of_hardsigmoid_is_a_float32_number():
    check(aten.hardsigmoid_backward, GRAD.double(), X.double(), rtol=1e-14, atol=0)


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_gradients_of_complex_functions_are_conjugated(name):
    grad, y = torch.complex(GRAD, GRAD + 1), torch.complex(X, 2 * X - 1)
    check(getattr(aten, f"{name}_backward"), grad, y, rtol=1e-5, atol=1e-6)


SPECIAL = torch.tensor([-2.0, -0.0, 0.0, 3.0, math.inf, -math.inf, math.nan])


@pytest.mark.parametrize("alpha", [1e-3, -1.0, math.inf, math.nan])
def test_celu_of_zero_and_nan(alpha):
    check(aten.celu, SPECIAL, alpha)
    check(aten.elu_backward, torch.ones(7), alpha, 1, 1, False, SPECIAL)


@pytest.mark.parametrize("is_result", [False, True])
def test_elu_backward(is_result):
    check(aten.elu_backward, GRAD, 1.3, 1.1, 0.9, is_result, X)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_and_its_gradient(approximate):
    check(aten.gelu, X, approximate=approximate)
    check(aten.gelu_backward, GRAD, X, approximate=approximate)


def test_gelu_of_halves_rounds_once():
    check(aten.gelu, X.bfloat16())


def test_log_sigmoid_backward():
    check(aten.log_sigmoid_backward, GRAD, X, torch.exp(-X.abs()))


def test_glu_and_its_gradient():
    x = torch.randn(3, 4)
    check(aten.glu, x, 1)
    check(aten.glu_backward, torch.randn(3, 2), x, -1)


def test_prelu_and_its_gradient():
    check(aten._prelu_kernel, X, torch.tensor([0.2]))
    check(aten._prelu_kernel_backward, GRAD, X, torch.full((len(X),), 0.2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_softmax_and_log_softmax(dtype):
    x = torch.randn(3, 5).to(dtype)
    for op in (aten._softmax, aten._log_softmax):
        check(op, x, -1, False)
        check(op, x, 0, False)


def test_softmax_of_huge_numbers_does_not_overflow():
    check(aten._softmax, torch.tensor([1e30, -1e30, 1e30]), 0, False)


@pytest.mark.parametrize(("shape", "mask_type"), [((3, 3), 0), ((2, 3), 1), ((2, 2, 3, 3), 2)])
def test_masked_softmax_of_nothing_is_not_a_number(shape, mask_type):
    mask = torch.rand(shape) > 0.5
    mask[0] = True
    check(aten._masked_softmax, torch.randn(2, 2, 3, 3), mask, 3, mask_type)


def test_softmax_backward():
    y = torch.softmax(torch.randn(3, 5), 1)
    check(aten._softmax_backward_data, torch.randn(3, 5), y, 1, torch.float32)
    check(aten._log_softmax_backward_data, torch.randn(3, 5), y.log(), 1, torch.float32)
    infinite = torch.tensor([[torch.inf, 1.0]])
    check(aten._softmax_backward_data, -torch.ones(1, 2), infinite, 1, torch.float32)


def test_safe_softmax_of_a_hidden_row_is_zero():
    x = torch.randn(2, 3)
    x[0] = -math.inf
    check(aten._safe_softmax, x, -1)
