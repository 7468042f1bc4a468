import math

import pytest
import torch
from comparison import check

aten = torch.ops.aten
X = torch.tensor([[1.0, -2.0, 3.5], [0.0, 4.0, -1.0]])


@pytest.mark.parametrize("name", ["sum", "mean", "nansum", "prod", "amax", "amin", "any", "all"])
def test_over_everything(name):
    check(getattr(aten, name), X)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [[0], [-1], [0, 1], []])
def test_over_some_dimensions(dim, keepdim):
    check(aten.sum.dim_IntList, X, dim, keepdim)
    check(aten.mean.dim, X, dim, keepdim)
    check(aten.amax, X, dim, keepdim)
    check(aten.logsumexp, X, dim or [0], keepdim)


def test_a_large_number_is_its_own_logsumexp():
    check(aten.logsumexp, torch.tensor(1000.0), [0])


def test_sums_of_integers_and_bools_are_int64():
    check(aten.sum, torch.tensor([100, 100], dtype=torch.int8))
    check(aten.sum, torch.tensor([True, True]))
    check(aten.prod, torch.tensor([True, False]))


def test_halves_are_summed_in_float32():
    check(aten.sum, torch.full((4096,), 0.1, dtype=torch.bfloat16))
    check(aten.mean, torch.full((4096,), 0.1, dtype=torch.float16))


def test_a_requested_dtype_is_summed_in():
    check(aten.sum.dim_IntList, torch.tensor([300, 2]), [0], dtype=torch.float32)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("name", ["max", "min"])
def test_extreme_and_its_position(name, dim, keepdim):
    check(getattr(aten, name).dim, X, dim, keepdim)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_of_equals_wins(name):
    check(getattr(aten, name), torch.tensor([2, 5, 2, 5, 2]))
    check(getattr(aten, name), X, 1, True)


def test_nan_beats_all():
    x = torch.tensor([[1.0, math.nan, 9.0], [-math.inf, 0.0, math.nan]])
    check(aten.max.dim, x, 1)
    check(aten.min.dim, x, 1)
    check(aten.amax, x)


def test_the_extreme_of_infinities_has_a_position():
    check(aten.max.dim, torch.full((2, 3), -math.inf), 1)


def test_zero_dim_tensors_reduce_to_themselves():
    x = torch.tensor(3.5)
    check(aten.sum, x)
    check(aten.max.dim, x, 0)
    check(aten.argmax, x, 0)
    check(aten.any.dim, x, -1)


def test_empty_tensors():
    check(aten.sum, torch.empty(0))
    check(aten.mean, torch.empty(0))
    check(aten.sum.dim_IntList, torch.empty(2, 0), [1])


@pytest.mark.parametrize("correction", [0, 1, 3, 5, math.nan])
def test_variance_without_degrees_of_freedom(correction):
    x = torch.tensor([[1 + 2j, 3 + 2j, 2 + 2j], [1, math.nan, 1]])
    check(aten.var_mean.correction, x, [1], correction=correction)
    check(aten.std.correction, x.real, [1], correction=correction)


@pytest.mark.parametrize("correction", [0, 1, 2.5])
@pytest.mark.parametrize("name", ["var", "std"])
def test_variance(name, correction):
    check(getattr(aten, name).correction, X, [1], correction=correction, keepdim=True)
    check(getattr(aten, f"{name}_mean").correction, X, None, correction=correction)


def test_the_variance_of_large_numbers_keeps_its_digits():
    check(aten.var.correction, torch.tensor([10000.0, 10001.0, 10002.0]), correction=1)


@pytest.mark.parametrize("ord", [0, 1, 2, 3.5, math.inf, -math.inf])
def test_vector_norm(ord):
    check(aten.linalg_vector_norm, X, ord, [1], True)
    check(aten.linalg_vector_norm, X.bfloat16(), ord)


def test_count_nonzero():
    check(aten.count_nonzero, X)
    check(aten.count_nonzero.dim_IntList, X, [0])
