import pytest
import torch
from comparison import check, flat, run

aten = torch.ops.aten
A = torch.rand(3, 4, 4) + 4 * torch.eye(4)
POSITIVE = A @ A.mT + torch.eye(4)
B = torch.randn(3, 4, 2)


def close(op, *args, **kwargs):
    check(op, *args, rtol=1e-3, atol=1e-3, **kwargs)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_and_solving_by_it(upper):
    close(aten.linalg_cholesky_ex, POSITIVE, upper=upper)
    factor = torch.linalg.cholesky(POSITIVE, upper=upper).contiguous()
    close(aten.cholesky_solve, B, factor, upper)
    close(aten.cholesky_inverse, factor, upper)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_triangular_systems(left, upper):
    b = B if left else B.mT.contiguous()
    close(aten.linalg_solve_triangular, POSITIVE, b, upper=upper, left=left)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_lu(shape):
    x = torch.randn(2, *shape)
    close(aten.linalg_lu, x)
    close(aten.linalg_lu_factor_ex, x)
    close(aten.lu_unpack, *torch.linalg.lu_factor(x))


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("adjoint", [False, True])
def test_solving_by_lu(adjoint, left):
    b = B if left else B.mT.contiguous()
    close(aten.linalg_lu_solve, *torch.linalg.lu_factor(A), b, left=left, adjoint=adjoint)


def test_solving_inverse_and_determinant():
    close(aten._linalg_solve_ex, A, B, compare=[0])
    close(aten._linalg_solve_ex, A, torch.randn(3, 4), compare=[0])
    close(aten.linalg_inv_ex, A)
    close(aten._linalg_det, A)
    close(aten._linalg_slogdet, A)


def test_a_singular_matrix_is_reported():
    expected = flat(aten.linalg_inv_ex(torch.zeros(2, 2)))
    info = run(aten.linalg_inv_ex, torch.zeros(2, 2), expected=expected)[1]
    assert info.item() == 1


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_qr(mode):
    close(aten.linalg_qr, torch.randn(5, 3), mode)


def test_eigenvalues_and_singular_values():
    close(aten._linalg_eigh, POSITIVE, compare=[0])
    close(aten._linalg_svd, torch.randn(5, 3), compare=[1])
    close(aten._linalg_svd, torch.randn(5, 3), False, False)


@pytest.mark.few_daily(4)
@pytest.mark.parametrize("scale", [0, 1e-30, 1, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
@pytest.mark.parametrize("op", [aten._linalg_eigvals, aten.linalg_eig])
def test_eigenvalues_of_matrices_of_any_scale(op, dtype, scale):
    x = scale * torch.randn(2, 4, 4, dtype=dtype)
    expected = flat(op(x))
    values = run(op, x, expected=expected)[0]
    distances = (values[:, :, None] - expected[0][:, None]).abs()
    assert distances.min(-1).values.max() <= 1e-4 * scale


@pytest.mark.nightly
def test_cross_product_and_matrix_exponential():
    close(aten.linalg_cross, torch.randn(3, 4), torch.randn(3, 4), dim=0)
    close(aten.linalg_matrix_exp, A / 4)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("normalization", [0, 1, 2])
def test_fourier_transforms(normalization):
    x = torch.randn(3, 4, 6)
    z = torch.complex(x, torch.randn(3, 4, 6))
    close(aten._fft_r2c, x, [1, 2], normalization, True)
    close(aten._fft_r2c, x, [2], normalization, False)
    close(aten._fft_c2c, z, [0, 2], normalization, True)
    close(aten._fft_c2c, z, [1], normalization, False)
    close(aten._fft_c2r, torch.fft.rfftn(x, dim=[1, 2]), [1, 2], normalization, 6)
    close(aten._fft_c2r, torch.fft.rfftn(x[..., :5], dim=[1, 2]), [1, 2], normalization, 5)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("normalization", [0, 1, 2])
def test_a_fourier_transform_of_infinity_has_nan_only_where_the_cpu_has_it(normalization):
    x = torch.tensor([1.0, float("inf"), 2.0, 3.0])
    check(aten._fft_r2c, x, [0], normalization, True)
    check(aten._fft_r2c, x, [0], normalization, False)
