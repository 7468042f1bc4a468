"""Bessel and Airy functions, and orthogonal polynomials."""

import math

import pytest
import torch
from comparison import check, run
from scipy import special

aten = torch.ops.aten

BESSEL = [
    *("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0"),
    *("modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1", "airy_ai"),
    *("scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0"),
]
WIDE = torch.cat(
    [
        torch.linspace(-30, 30, 1201),
        torch.logspace(-8, 3, 300),
        -torch.logspace(-8, 3, 200),
        torch.tensor([0.0, -0.0, 1e-30, 88, 100, 103, 104, math.inf, -math.inf, math.nan]),
    ]
)


@pytest.mark.few_daily(4)
@pytest.mark.parametrize("name", BESSEL)
def test_values_and_special_values_over_a_wide_range(name):
    op = getattr(aten, f"special_{name}")
    expected = op(WIDE)
    (got,) = run(op, WIDE)
    # Beside a zero the CPU's error is relative to the waves around it. The phase of a wave at x is
    # as precise as x itself.
    atol = 1e-3 if name == "airy_ai" else 4e-5
    torch.testing.assert_close(got, expected, rtol=2e-5, atol=atol, equal_nan=True)


@pytest.mark.few_daily(3)
@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("bessel_j0", special.j0),
        ("bessel_j1", special.j1),
        ("bessel_y0", special.y0),
        ("bessel_y1", special.y1),
        ("modified_bessel_k0", special.k0),
        ("modified_bessel_k1", special.k1),
        ("airy_ai", lambda x: special.airy(x)[0]),
    ],
)
def test_float64_is_precise_where_torch_has_seven_digits(name, reference):
    # torch's float64 Bessel functions are 4e-7 off beside 5, its Airy function 3e-6 beside -2.1.
    x = torch.linspace(0.01 if name != "airy_ai" else -20, 40, 2000, dtype=torch.float64)
    (got,) = run(getattr(aten, f"special_{name}"), x)
    torch.testing.assert_close(got, torch.from_numpy(reference(x.numpy())), rtol=2e-14, atol=2e-14)


POLYNOMIALS = [
    *(f"chebyshev_polynomial_{kind}" for kind in "tuvw"),
    *(f"shifted_chebyshev_polynomial_{kind}" for kind in "tuvw"),
    *("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l"),
    "legendre_polynomial_p",
]
PLACES = [-3.0, -1.0, -0.99, -0.5, -0.0, 0.0, 0.25, 0.5, 0.875, 1.0, 1.5, 40.0, math.inf, math.nan]
ORDERS = [-1.0, 0.0, 1.0, 2.0, 3.7, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 33.0]


@pytest.mark.few_daily(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_at_their_ends_inside_and_outside(name, dtype):
    x, n = torch.meshgrid(
        torch.tensor(PLACES, dtype=dtype), torch.tensor(ORDERS, dtype=dtype), indexing="ij"
    )
    check(
        getattr(aten, f"special_{name}"),
        x.contiguous(),
        n.contiguous(),
        rtol=3e-4 if dtype == torch.float32 else 1e-11,
        atol=3e-5 if dtype == torch.float32 else 1e-12,
    )


# Each step of a recurrence is rounded, on another processor in another way. After a million steps
# float32 has two digits left, float64 has ten.
@pytest.mark.few_daily(2)
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_of_a_high_or_undefined_order(name):
    x = torch.tensor([0.5, 0.5, 0.5, 2.0, 1.0, 0.5, 2.0, 2.0], dtype=torch.float64)
    n = torch.tensor([600, math.inf, math.nan, 1e6, 40, 1e19, 1e19, -1e19], dtype=torch.float64)
    check(getattr(aten, f"special_{name}"), x, n, rtol=1e-9, atol=1e-10)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("name", POLYNOMIALS[::3])
def test_a_place_or_an_order_may_be_a_number(name):
    op = getattr(aten, f"special_{name}")
    check(op.n_scalar, torch.tensor([0.3, 2.0]), 3)
    check(op.x_scalar, 0.25, torch.tensor([1, 4]))
