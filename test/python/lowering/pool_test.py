import math

import jax
import numpy as np
import pytest
import torch
from comparison import check

from torch_xla_lite.lowering import pool
from torch_xla_lite.lowering.base import target

aten = torch.ops.aten

# Kernel, stride, padding, dilation, ceil mode.
WINDOWS = {
    "even": ([2, 2], [2, 2], [0, 0], [1, 1], False),
    "overlapping": ([3, 3], [2, 2], [1, 1], [1, 1], False),
    "ceil": ([3, 2], [], [1, 1], [1, 1], True),
    "dilated": ([2, 2], [1, 1], [0, 0], [2, 2], False),
    "large": ([7, 7], [1, 1], [3, 3], [1, 1], True),
}
windows = pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS.keys())
X = torch.randn(2, 3, 9, 8)


@pytest.mark.few_daily(2)
@windows
def test_maximum_its_position_and_its_gradient(window):
    check(aten.max_pool2d_with_indices, X, *window)
    kernel, stride, *rest = window
    y, positions = aten.max_pool2d_with_indices(X, *window)
    grad = torch.randn_like(y)
    args = (grad, X, kernel, stride or kernel, *rest, positions)
    check(aten.max_pool2d_with_indices_backward, *args)


def test_the_first_of_equals_wins_and_nan_beats_all():
    x = torch.tensor([[1.0, 1.0, math.nan, 2.0], [1.0, 1.0, 5.0, math.nan]])[None, None]
    check(aten.max_pool2d_with_indices, x, [2, 2], [2, 2])


def test_in_a_large_window_the_last_nan_wins_too():
    x = torch.randn(1, 1, 8, 8)
    x[0, 0, 1, 2] = x[0, 0, 5, 4] = math.nan
    check(aten.max_pool2d_with_indices, x, [7, 7], [1, 1])


def test_a_window_of_infinities_reports_a_place_inside_the_image():
    x = torch.full((1, 1, 4, 4), -math.inf)
    check(aten.max_pool2d_with_indices, x, [3, 3], [2, 2], [1, 1])


@pytest.mark.few_daily(2)
@windows
@pytest.mark.parametrize("count_include_pad", [True, False])
@pytest.mark.parametrize("divisor", [None, 3])
def test_average_and_its_gradient(window, count_include_pad, divisor):
    kernel, stride, padding, dilation, ceil = window
    if dilation != [1, 1]:
        return
    args = (padding, ceil, count_include_pad, divisor)
    check(aten.avg_pool2d, X, kernel, stride, *args)
    grad = torch.randn_like(aten.avg_pool2d(X, kernel, stride, *args))
    check(aten.avg_pool2d_backward, grad, X, kernel, stride or kernel, *args)


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("number", [math.nan, math.inf])
@pytest.mark.parametrize("size", [[4, 5], [10, 9], [2, 2]])
def test_adaptive_average_of_one_number_that_is_not_finite(size, number):
    image, grad = torch.ones(1, 1, 37, 37), torch.ones(1, 1, *size)
    image[..., 3, 5], grad[..., 1, 1] = number, number
    check(aten._adaptive_avg_pool2d, image, size)
    check(aten._adaptive_avg_pool2d_backward, grad, image)


@pytest.mark.nightly  # By day XLA has other code for the division, which rounds.
@pytest.mark.parametrize("size", [41, 49])
def test_the_mean_of_ones_is_one(size):
    ones = torch.ones(1, 1, 1, size)
    check(aten.avg_pool2d, ones, [1, size], rtol=0, atol=0)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("size", [[0, 0], [0, 3], [4, 0]])
def test_adaptive_pooling_to_nothing(size):
    check(aten.adaptive_max_pool2d, X, size)
    check(aten.adaptive_max_pool3d, torch.randn(2, 3, 4, 4, 4), [2, *size])
    check(aten._adaptive_avg_pool2d, X, size)


@pytest.fixture(params=["cpu", "gpu"])
def platform(request, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(target, "platform", lambda: request.param)
    return request.param


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("special", [0.0, math.nan, -math.inf], ids=str)
def test_pooling_is_the_same_for_all_platforms(platform, special):
    x = torch.randn(2, 3, 9, 9, generator=torch.Generator().manual_seed(0))
    x[0, :, :4, :4] = special
    check(aten.max_pool2d_with_indices, x, [3, 3], [2, 2], [1, 1])
    check(aten.max_pool2d_with_indices, x, [2, 1], [], [0], [2])
    check(aten.max_pool3d_with_indices, x, [2, 2, 2], [1, 2, 2])
    check(aten.adaptive_max_pool2d, x, [3, 3])
    check(aten.avg_pool2d, x, [3, 3], [2, 2], [1, 1], False, False)


def test_windows_are_slices_on_a_cpu_and_xlas_elsewhere(platform):
    window = pool._window((8, 8), (4, 4), [2, 2], [], [0], [1])
    struct = jax.ShapeDtypeStruct((1, 8, 8), np.float32)
    traced = jax.make_jaxpr(lambda x: pool.max_with_position(x, window))(struct)
    names = {eqn.primitive.name for eqn in traced.eqns}
    assert any(name.startswith("reduce_window") for name in names) == (platform == "gpu")
