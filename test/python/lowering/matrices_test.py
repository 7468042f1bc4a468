"""What the samples of PyTorch's database do not say of products, matrices, spectra, norms and
embeddings."""

import pytest
import torch
from comparison import check, flat, run

aten = torch.ops.aten


def test_halves_accumulate_in_float32():
    ones = torch.full((1, 4096), 0.1, dtype=torch.bfloat16)
    check(aten.mm, ones, ones.t().contiguous())


def test_a_product_goes_through_gelu():
    args = (torch.randn(5), torch.randn(3, 4), torch.randn(4, 5))
    check(aten._addmm_activation, *args, beta=0.3, alpha=2.5, use_gelu=True)


def test_vdot_conjugates():
    check(aten.vdot, torch.tensor([1 + 2j, 3j]), torch.tensor([2 - 1j, 1j]))


def test_a_product_of_three():
    a, b, c = torch.randn(5, 3), torch.randn(2, 3, 4), torch.randn(5, 4)
    check(aten._trilinear, a, b, c, [1, 3], [0], [1, 2], [2, 3])


def test_a_singular_matrix_is_reported():
    info = run(aten.linalg_inv_ex, torch.zeros(2, 2))[1]
    assert info.item() == 1


@pytest.mark.few_daily(4)
@pytest.mark.parametrize("scale", [0, 1e-30, 1, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
@pytest.mark.parametrize("op", [aten._linalg_eigvals, aten.linalg_eig])
def test_eigenvalues_of_matrices_of_any_scale(op, dtype, scale):
    x = scale * torch.randn(2, 4, 4, dtype=dtype)
    expected = flat(op(x))
    values = run(op, x)[0]
    distances = (values[:, :, None] - expected[0][:, None]).abs()
    assert distances.min(-1).values.max() <= 1e-4 * scale


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("normalization", [0, 1, 2])
def test_a_fourier_transform_of_infinity_has_nan_only_where_the_cpu_has_it(normalization):
    x = torch.tensor([1.0, float("inf"), 2.0, 3.0])
    check(aten._fft_r2c, x, [0], normalization, True)
    check(aten._fft_r2c, x, [0], normalization, False)


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


def test_gradient_of_halves_accumulates_in_float32():
    grad = torch.full((512, 2), 0.1, dtype=torch.bfloat16)
    args = (grad, torch.zeros(512, dtype=torch.int64), 2, -1, False)
    (got,) = run(aten.embedding_dense_backward, *args)
    assert torch.equal(got[0], grad.float().sum(0).bfloat16())


SIX = torch.tensor([1, 4, 2, 2, 9, 0])
OFFSETS = torch.tensor([0, 2, 2])


def test_weighted_bags_and_the_gradient_of_the_weights():
    table, weights = torch.randn(10, 4), torch.rand(6)
    check(aten._embedding_bag, table, SIX, OFFSETS, False, 0, False, weights, compare=[0])
    bags = torch.tensor([0, 0, 2, 2, 2, 2])
    args = (torch.randn(3, 4), table, SIX, OFFSETS, bags, 0)
    check(aten._embedding_bag_per_sample_weights_backward, *args)


def test_gradient_of_bags_divided_by_how_often_a_row_was_used():
    pairs, bags, sizes = (
        torch.tensor([2, 2, 3, 3]),
        torch.tensor([0, 0, 0, 1]),
        torch.tensor([3, 1]),
    )
    maxima = torch.empty(0, dtype=torch.int64)
    args = (torch.randn(2, 4), pairs, torch.tensor([0, 3]), bags, sizes, maxima)
    check(aten._embedding_bag_backward, *args, 10, True, 0, False, None)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_bags_without_indices(mode):
    nothing, offsets = torch.zeros(0, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)
    check(aten._embedding_bag, torch.randn(5, 3), nothing, offsets, False, mode, compare=[0])
