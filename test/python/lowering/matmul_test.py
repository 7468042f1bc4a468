import pytest
import torch
from comparison import check, run

aten = torch.ops.aten
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.complex64]


def values(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    if dtype == torch.int64:
        return torch.randint(-5, 5, shape)
    return torch.randn(shape, dtype=dtype)


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("dtype", DTYPES)
def test_products(dtype):
    a, b = values(3, 4, dtype=dtype), values(4, 5, dtype=dtype)
    check(aten.mm, a, b)
    check(aten.bmm, a[None], b[None])
    check(aten.mv, a, b[:, 0].clone())
    check(aten.dot, a[0], b[:, 0].clone())


def test_halves_accumulate_in_float32():
    ones = torch.full((1, 4096), 0.1, dtype=torch.bfloat16)
    check(aten.mm, ones, ones.t().contiguous())


@pytest.mark.few_daily(1)
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0, 1), (0.3, 2.5)])
def test_products_added_to_something(beta, alpha):
    a, b = values(3, 4), values(4, 5)
    scale = {"beta": beta, "alpha": alpha}
    check(aten.addmm, values(5), a, b, **scale)
    check(aten.baddbmm, values(1, 3, 5), a[None], b[None], **scale)
    check(aten.addbmm, values(3, 5), a[None], b[None], **scale)
    check(aten.addmv, values(3), a, values(4), **scale)
    check(aten.addr, values(3, 4), values(3), values(4), **scale)
    check(aten._addmm_activation, values(5), a, b, use_gelu=True, **scale)


def test_a_beta_of_zero_drops_nan():
    nan = torch.full((3, 5), torch.nan)
    check(aten.addmm, nan, values(3, 4), values(4, 5), beta=0)


def test_a_product_over_nothing_is_zero():
    check(aten.mm, torch.empty(2, 0), torch.empty(0, 3))


def test_vdot_conjugates():
    check(aten.vdot, torch.tensor([1 + 2j, 3j]), torch.tensor([2 - 1j, 1j]))


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
def test_linear_and_its_gradients(shape):
    x, weight, bias = torch.randn(shape), torch.randn(5, 4), torch.randn(5)
    check(aten.linear, x, weight, bias)
    check(aten.linear, x.bfloat16(), weight.bfloat16())
    leaves = [leaf.requires_grad_() for leaf in (x, weight, bias)]
    y = aten.linear(*leaves)
    grad = torch.randn_like(y)
    wanted = list(torch.autograd.grad(y, leaves, grad))
    got = run(aten.linear_backward, x, grad, weight, [True] * 3, expected=wanted)
    torch.testing.assert_close(got, wanted)


def test_a_product_of_three():
    a, b, c = torch.randn(5, 3), torch.randn(2, 3, 4), torch.randn(5, 4)
    check(aten._trilinear, a, b, c, [1, 3], [0], [1, 2], [2, 3])
