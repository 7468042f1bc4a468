"""Divisions are rounded once, as by torch on the CPU: XLA would multiply by the reciprocal of a
number, and what rounds the quotient to an integer would be one too low."""

import pytest
import torch
from comparison import check

aten = torch.ops.aten

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
# In float32 41 * (1 / 41) is less than 1, in float64 49 * (1 / 49).
MULTIPLES = torch.arange(1.0, 2000)


def exactly(op, *args, **kwargs):
    check(op, *args, rtol=0, atol=0, **kwargs)


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [41.0, 49.0])
def test_by_a_number(dtype, number):
    x = (MULTIPLES.double() * number).to(dtype)
    x = x[x.isfinite()]
    exactly(aten.div.Tensor, x, number)
    exactly(aten.div.Tensor_mode, x, number, rounding_mode="trunc")


@pytest.mark.parametrize("dtype", DTYPES)
def test_by_a_tensor_of_one_element(dtype):
    x = (MULTIPLES * 49).to(dtype)
    x = x[x.isfinite()]
    exactly(aten.div.Tensor, x, torch.tensor(49, dtype=dtype))
    exactly(aten.div.Tensor_mode, x, torch.tensor([49], dtype=dtype), rounding_mode="trunc")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [41, 49])
def test_the_mean_of_ones_is_one(size, dtype):
    ones = torch.ones(size, dtype=dtype)
    exactly(aten.mean, ones)
    exactly(aten.mse_loss, ones, -0 * ones)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rounding_to_decimals(dtype):
    x = torch.arange(-500, 500, dtype=dtype) / 7
    exactly(aten.round.decimals, x, decimals=1)
    exactly(aten.round.decimals, (x * 7).round() * 5, decimals=-1)


@pytest.mark.parametrize("dtype", [torch.int32, torch.float64])
@pytest.mark.parametrize(("start", "end", "steps"), [(50, 1, 50), (0, 98, 99)])
def test_linspace_from_tensors(start, end, steps, dtype):
    exactly(aten.linspace.Tensor_Scalar, torch.tensor(start), end, steps, dtype=dtype)
    exactly(aten.linspace.Tensor_Tensor, torch.tensor(start), torch.tensor(end), steps, dtype=dtype)


@pytest.mark.parametrize(("bins", "width"), [(41, 1.0), (49, 0.1), (49, 3.0), (100, 7.0)])
def test_bins_of_values_at_their_edges(bins, width):
    exactly(aten.histc, torch.arange(bins + 1) * width, bins, 0, bins * width)
