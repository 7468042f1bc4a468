"""What the samples of PyTorch's database do not say of norms."""

import torch
from comparison import check

aten = torch.ops.aten
X = torch.randn(4, 3, 5, 5) * 2 + 7
WEIGHT, BIAS = torch.randn(3), torch.randn(3)
MEAN, VAR = torch.randn(3), torch.rand(3) + 0.5


def close(op, *args):
    check(op, *args, rtol=1e-4, atol=1e-4)


def test_forms_of_batch_norm():
    close(aten._native_batch_norm_legit_functional, X, WEIGHT, BIAS, MEAN, VAR, True, 0.1, 1e-5)
    close(aten._batch_norm_with_update_functional, X, WEIGHT, BIAS, MEAN, VAR, 0.1, 1e-5)
    close(aten._native_batch_norm_legit_no_training, X, WEIGHT, BIAS, MEAN, VAR, 0.1, 1e-5)
    close(aten._native_batch_norm_legit.no_stats, X, WEIGHT, BIAS, True, 0.1, 1e-5)


def test_layer_norm_of_halves_computes_in_float32():
    x = (torch.randn(4, 64) * 100).bfloat16()
    check(aten.native_layer_norm, x, [64], None, None, 1e-5, compare=[0])


def test_weight_norm_and_its_gradients():
    v, g = torch.randn(4, 3), torch.randn(4, 1)
    close(aten._weight_norm_interface, v, g, 0)
    _, norms = aten._weight_norm_interface(v, g, 0)
    close(aten._weight_norm_interface_backward, torch.randn(4, 3), v, g, norms, 0)
