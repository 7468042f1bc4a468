import math

import pytest
import torch
from comparison import check
from hypothesis import given, settings
from hypothesis import strategies as st

aten = torch.ops.aten
NAN = float("nan")
FLOATS = torch.randn(4, 9)
WITH_NAN = FLOATS.clone()
WITH_NAN[0, 2] = math.nan
INTEGERS = torch.randint(0, 5, (4, 9))


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=8, max_size=8), st.booleans())
def test_sorting_is_stable(values, descending):
    check(aten.sort.stable, torch.tensor(values), stable=True, descending=descending)


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("x", [WITH_NAN, INTEGERS, INTEGERS > 2])
def test_sorting_along_a_dimension(x, descending, dim):
    check(aten.sort.stable, x, stable=True, dim=dim, descending=descending)


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("largest", [True, False])
def test_top_k(largest, dim):
    check(aten.topk, FLOATS, 3, dim, largest)
    check(aten.topk, WITH_NAN, 3, dim, largest, compare=[0])


@pytest.mark.parametrize("nan", [math.nan, -math.nan])
def test_top_k_begins_with_nan_of_either_sign(nan):
    check(aten.topk, torch.tensor([1.0, nan, 3.0, math.copysign(nan, 1)]), 3, compare=[0])


def test_order_statistics():
    check(aten.kthvalue, FLOATS, 3, 1, True)
    check(aten.median.dim, FLOATS, 1)
    check(aten.median, WITH_NAN)
    check(aten.nanmedian, WITH_NAN)
    check(aten.nanmedian.dim, WITH_NAN, 1, True, compare=[0])
    check(aten.mode, INTEGERS, 1, compare=[0])


@pytest.mark.parametrize("right", [False, True])
def test_search_in_sorted_numbers(right):
    sorted_ = torch.sort(FLOATS[0])[0]
    rows = torch.sort(torch.randn(4, 7))[0]
    check(aten.searchsorted.Tensor, sorted_, FLOATS, right=right)
    check(aten.searchsorted.Tensor, rows, FLOATS, right=right, out_int32=True)
    check(aten.bucketize.Tensor, FLOATS, sorted_, right=right)
    check(aten.searchsorted.Scalar, sorted_, 0.3, right=right)
    check(aten.searchsorted.Tensor, torch.randint(9, (8,)), FLOATS, right=right)


def test_search_for_integers_that_the_dtype_of_the_boundaries_rounds():
    check(aten.bucketize.Tensor, torch.tensor([2**24 + 1, 3, 7]), torch.tensor([2.0**24 + 0.5]))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 5, 8])
def test_search_in_numbers_with_nan_or_without_order(length, right):
    boundaries = torch.tensor([4.0, NAN, 1.0, 2.0, NAN, -1.0, 5.0, NAN])[:length]
    values = torch.tensor([NAN, 2.0, float("-inf"), float("inf"), 5.0, 0.0])
    check(aten.searchsorted.Tensor, boundaries, values, right=right)
    check(aten.searchsorted.Tensor, boundaries.sort()[0], values, right=right)
    check(aten.searchsorted.Tensor, boundaries.repeat(2, 1), values.repeat(2, 1), right=right)


def test_membership():
    check(aten.isin.Tensor_Tensor, INTEGERS, torch.tensor([1, 3]))
    check(aten.isin.Tensor_Scalar, INTEGERS, 3, invert=True)


def test_histogram():
    check(aten.histc, torch.randn(50), 10, -1, 1)
    check(aten.histc, torch.randn(50), 7)
    check(aten.histc, torch.randn(0), 3)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians_of_nothing(name):
    check(getattr(aten, name), FLOATS[:0])
    check(getattr(aten, name), INTEGERS[:0])


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running_sums_and_products(name):
    op = getattr(aten, name)
    check(op, FLOATS, 1)
    check(op, INTEGERS, 0)
    check(op, INTEGERS > 2, 0)
    check(op, torch.tensor(3.0), 0)
    check(op, torch.empty(0, 3), 0)


def test_running_extremes_and_their_positions():
    check(aten.cummax, WITH_NAN, 1)
    check(aten.cummin, INTEGERS, 0)
    check(aten.cummax, INTEGERS, 1)


def test_running_log_of_sums():
    check(aten.logcumsumexp, FLOATS, 1)
