"""What the samples of PyTorch's database do not say of matrices and spectra."""

import pytest
import torch
from comparison import check, flat, run

aten = torch.ops.aten


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
