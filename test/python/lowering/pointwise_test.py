import math

import pytest
import torch
from comparison import check, run
from hypothesis import given, settings
from hypothesis import strategies as st

aten = torch.ops.aten


@pytest.mark.parametrize(
    ("name", "base", "dtype", "exponents"),
    [
        ("log2", 2.0, torch.float32, range(-126, 128)),
        ("log2", 2.0, torch.float64, range(-1022, 1024)),
        ("log10", 10.0, torch.float32, range(11)),
        ("log10", 10.0, torch.float64, range(23)),
    ],
)
def test_logarithms_are_exact_at_powers_of_their_base(name, base, dtype, exponents):
    powers = torch.tensor([base**n for n in exponents], dtype=dtype)
    check(getattr(aten, name), powers, rtol=0, atol=0)


# Where XLA's functions, or jax's, lose digits: in between their formulas, and beside zeros.
PRECISE = {
    "atanh": [0.4140, 0.39, -0.4138, 0.2, -0.8, 1e-20, 1, -1, 1.5],
    "erfinv": [0.9999, -0.99985, 0.9967, 0.96, -0.95, 0.94, 0.5, 1e-20, 1, -1, 1.5],
    "lgamma": [1.0001, 0.9999, 2.0001, 1.9999, 1, 2, 0.3, 50, -2.5, 1e-5],
    "log1p": [-0.4142, -0.4, -0.37, -0.33, -0.3, -0.9, 0.4, 1e-20, 0, -1, -2],
    "special_erfcx": [-1.5, 0.3, 7.9, 8.1, 24.9, 25.1, 1e9],
    "special_log_ndtr": [1.5, 3.2, 4.97, 5.1, 7.9, 9, 0.1, -0.9, -1.1, -5, -30, 1e9, -1e9],
}


@pytest.mark.few_daily(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", PRECISE)
def test_unary_is_precise_everywhere(name, dtype):
    rtol = 1e-6 if dtype == torch.float32 else 4e-15
    if (name, dtype) == ("lgamma", torch.float64):
        rtol = 3e-11
    # XLA's is 4e-16 for 2 where the processor, or the code, has no fused multiply-add.
    atol = 1e-15 if name == "lgamma" else 0
    check(getattr(aten, name), torch.tensor(PRECISE[name], dtype=dtype), rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_powers_of_two_are_exact(dtype):
    exponents = torch.arange(-120, 120)
    check(aten.exp2, exponents.to(dtype), rtol=0, atol=0)
    check(
        aten.ldexp.Tensor, torch.full((240,), 1.5, dtype=dtype), exponents.to(dtype), rtol=0, atol=0
    )


NEAR_POLES = [0.0, -0.0, -1.0, -2.0, -7.0, -1 + 1e-6, -1 - 1e-6, 1e-6, -1e-3, -2.0001, 0.3, 0.5]
NEAR_POLES += [-0.5, -3.3, -12.7, -100.2, 4.2, 1e6, math.inf, -math.inf, math.nan]


@pytest.mark.few_daily(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_polygamma_at_its_poles_and_beside_them(n, dtype):
    x = torch.tensor(NEAR_POLES, dtype=dtype)
    rtol = 2e-4 if dtype == torch.float32 else 1e-8
    check(aten.polygamma, n, x, rtol=rtol, atol=1e-6)
    if n == 0:
        check(aten.digamma, x, rtol=rtol, atol=1e-6)


@pytest.mark.needs("rounding")
@pytest.mark.few_daily(2)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 10])
def test_polygamma_of_high_orders_is_exact_to_a_few_ulp(n):
    x = torch.tensor([-10.5, -7.5, -3.5, -0.5, 0.5, 2.5, 9.0])
    check(aten.polygamma, n, x, rtol=2e-6, atol=0)


def test_zeta_of_negative_places():
    order, place = torch.meshgrid(
        torch.tensor([0.5, 1, 1.5, 2, 3, 7, -1]), torch.tensor(NEAR_POLES), indexing="ij"
    )
    check(aten.special_zeta, order.contiguous(), place.contiguous(), rtol=2e-4, atol=1e-6)


def test_zeta_of_an_infinite_order():
    place = torch.tensor([1.0, 0.5, 3.0, math.inf, math.nan])
    check(aten.special_zeta, torch.full_like(place, math.inf), place)


@pytest.mark.parametrize("op", [aten.sign, aten.sgn])
def test_the_sign_of_zero_has_no_sign(op):
    x = torch.tensor([-0.0, 0.0, -2.0, math.nan, math.inf])
    check(op, x)
    assert not run(op, x)[0].signbit()[:2].any()


def test_logaddexp_of_complex_numbers_keeps_the_angle():
    a = torch.tensor([1 + 10j, 2 - 3j, 1.5 + 2j, -math.inf, math.inf])
    b = torch.tensor([1 + 10j, 1 - 3j, 3 + 7j, -math.inf, 1 + 2j])
    check(aten.logaddexp, a, b)


nonzero = st.integers(-20, 20).filter(bool)


# Not subnormal: the floor of 1e-40 / -0.1 is -1, and that of zero is zero.
dividends = st.floats(-8, 8, width=32, allow_subnormal=False)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(dividends, nonzero), min_size=4, max_size=4))
def test_float_floor_division_agrees_with_torch_near_integers(pairs):
    a, b = torch.tensor(pairs, dtype=torch.float32).unbind(1)
    check(aten.floor_divide, a, b / 10, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex64])
def test_a_mask_does_not_hide_nan_and_infinity(dtype):
    x = torch.tensor([math.nan, math.inf, 2.0, -1.0], dtype=dtype)
    mask = torch.tensor([False, False, True, False])
    check(aten.mul.Tensor, mask, x)
    check(aten.mul.Tensor, x, mask)
    check(aten.mul.Tensor, mask, math.inf)


def test_imaginary_numbers_are_true():
    x = torch.tensor([1j, 0, 2])
    check(aten.logical_not, x)
    check(aten.logical_and, x, x)
    check(aten.full, [2], 1j, dtype=torch.bool)


def test_powers_of_complex_zero():
    zeros = torch.zeros(2, dtype=torch.complex64)
    check(aten.pow.Tensor_Scalar, zeros, 1 + 2j)
    check(aten.pow.Tensor_Scalar, torch.zeros(2), 1 + 2j)
    check(aten.pow.Tensor_Tensor, zeros, torch.tensor([1 + 2j, 2.5]))
    check(aten.pow.Scalar, 0j, torch.tensor([1 + 2j, 2.5]))


@pytest.mark.parametrize("decimals", [309, -309])
def test_rounding_to_more_decimals_than_a_double_has(decimals):
    check(aten.round.decimals, torch.tensor([0.5, -2.0, 0.0]), decimals=decimals)


def test_logit_with_a_lower_bound_above_the_upper_one():
    check(aten.logit, torch.tensor([0.5, 1.0, 2.0, -3.0, math.nan]), 1.0)
