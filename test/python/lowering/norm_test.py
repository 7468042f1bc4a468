import pytest
import torch
from comparison import check

aten = torch.ops.aten
X = torch.randn(4, 3, 5, 5) * 2 + 7
WEIGHT, BIAS = torch.randn(3), torch.randn(3)
MEAN, VAR = torch.randn(3), torch.rand(3) + 0.5


def close(op, *args):
    check(op, *args, rtol=1e-4, atol=1e-4)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_and_its_running_statistics(training):
    args = (X, WEIGHT, BIAS, MEAN, VAR, training, 0.1, 1e-5)
    close(aten._native_batch_norm_legit_functional, *args)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_without_weights(training):
    close(aten.native_batch_norm, X, None, None, MEAN.clone(), VAR.clone(), training, 0.1, 1e-5)


@pytest.mark.nightly
def test_the_other_forms_of_batch_norm():
    close(aten._batch_norm_with_update_functional, X, WEIGHT, BIAS, MEAN, VAR, 0.1, 1e-5)
    close(aten._native_batch_norm_legit_no_training, X, WEIGHT, BIAS, MEAN, VAR, 0.1, 1e-5)
    close(aten._native_batch_norm_legit.no_stats, X, WEIGHT, BIAS, True, 0.1, 1e-5)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("training", [True, False])
def test_gradients_of_batch_norm(training):
    _, mean, invstd = aten.native_batch_norm(X, WEIGHT, BIAS, None, None, True, 0.1, 1e-5)
    args = (torch.randn_like(X), X, WEIGHT, MEAN, VAR, mean, invstd, training, 1e-5, [True] * 3)
    close(aten.native_batch_norm_backward, *args)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("shape", [[8], [6, 8]])
def test_layer_norm_and_its_gradients(shape):
    x, weight, bias = torch.randn(4, 6, 8), torch.randn(shape), torch.randn(shape)
    close(aten.native_layer_norm, x, shape, weight, bias, 1e-5)
    _, mean, rstd = aten.native_layer_norm(x, shape, weight, bias, 1e-5)
    args = (torch.randn_like(x), x, shape, mean, rstd, weight, bias, [True] * 3)
    close(aten.native_layer_norm_backward, *args)


def test_layer_norm_of_halves_computes_in_float32():
    x = (torch.randn(4, 64) * 100).bfloat16()
    check(aten.native_layer_norm, x, [64], None, None, 1e-5, compare=[0])


def test_group_norm_and_its_gradients():
    x, weight = torch.randn(2, 6, 5), torch.randn(6)
    sizes = (2, 6, 5, 3)
    close(aten.native_group_norm, x, weight, torch.randn(6), *sizes, 1e-5)
    _, mean, rstd = aten.native_group_norm(x, weight, None, *sizes, 1e-5)
    args = (torch.randn_like(x), x, mean, rstd, weight, *sizes, [True] * 3)
    close(aten.native_group_norm_backward, *args)


def test_weight_norm_and_its_gradients():
    v, g = torch.randn(4, 3), torch.randn(4, 1)
    close(aten._weight_norm_interface, v, g, 0)
    _, norms = aten._weight_norm_interface(v, g, 0)
    close(aten._weight_norm_interface_backward, torch.randn(4, 3), v, g, norms, 0)
