"""Linear algebra on the device, where its gradients depend on more than values."""

import pytest
import torch

import torch_xla_lite  # noqa: F401  (the device)


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("shape", [(5, 3), (4, 4), (2, 6, 4)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_the_gradient_of_a_householder_product(shape, dtype):
    torch.manual_seed(0)
    factors, tau = torch.randn(shape, dtype=dtype), torch.randn(*shape[:-2], shape[-1], dtype=dtype)
    tau[..., 0] = 0
    grad = torch.randn(shape, dtype=dtype)

    def gradients(device):
        leaves = [x.to(device).requires_grad_() for x in (factors, tau)]
        product = torch.linalg.householder_product(*leaves)
        return [x.cpu() for x in (product, *torch.autograd.grad(product, leaves, grad.to(device)))]

    torch.testing.assert_close(gradients("jax"), gradients("cpu"))


@pytest.mark.parametrize("shape", [(0, 0), (5, 0), (0, 3, 3), (2, 0, 0)], ids=str)
def test_an_empty_householder_product_has_no_gradient_as_on_the_cpu(shape):
    def gradients(device):
        factors, tau = torch.ones(shape), torch.ones(*shape[:-2], shape[-1])
        leaves = [x.to(device).requires_grad_() for x in (factors, tau)]
        product = torch.linalg.householder_product(*leaves)
        return product.shape, torch.autograd.grad(product.sum(), leaves, allow_unused=True)

    assert gradients("jax") == gradients("cpu") == (shape, (None, None))


PRODUCTS = {
    "addmm": lambda x, a, b, **k: torch.addmm(x, a, b, **k),
    "addmv": lambda x, a, b, **k: torch.addmv(x[0], a, b[:, 0], **k),
    "addr": lambda x, a, b, **k: torch.addr(x, a[0], b[0], **k),
    "addbmm": lambda x, a, b, **k: torch.addbmm(x, a[None], b[None], **k),
    "baddbmm": lambda x, a, b, **k: torch.baddbmm(x[None], a[None], b[None], **k),
    "addr in place": lambda x, a, b, **k: x.clone().addr_(a[0], b[0], **k),
}
products = pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS.keys())


@products
def test_a_recorded_beta_of_zero_drops_nan(product):
    a, b = torch.randn(3, 3), torch.randn(3, 3)
    added = torch.full((3, 3), float("nan"))
    wanted = product(added, a, b, beta=0, alpha=2)
    assert not wanted.isnan().any()
    found = product(added.jax(), a.jax(), b.jax(), beta=0, alpha=2).cpu()
    torch.testing.assert_close(found, wanted)


@products
def test_an_alpha_of_zero_drops_nan_where_it_does_on_the_cpu(product):
    added, nan = torch.randn(3, 3), torch.full((3, 3), float("nan"))
    found = product(added.jax(), nan.jax(), nan.jax(), alpha=0).cpu()
    torch.testing.assert_close(found, product(added, nan, nan, alpha=0), equal_nan=True)


def test_the_gradient_of_logcumsumexp_is_as_exact_as_on_the_cpu():
    """Its formula subtracts results, so it needs all their digits."""
    x = 500 * torch.sin(torch.arange(125.0)).view(5, 25)

    def gradient(device: str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        leaf = x.to(device, dtype).requires_grad_()
        weights = torch.cos(torch.arange(125.0)).view(5, 25).to(device, dtype)
        (torch.logcumsumexp(leaf, 1) * weights).sum().backward()
        return leaf.grad.cpu().double()

    exact = gradient("cpu", torch.float64)
    error = (gradient("jax") - exact).abs().max()
    assert error <= 1.01 * (gradient("cpu") - exact).abs().max()


MATRICES = {
    "zero": torch.zeros(3, 3),
    "empty": torch.zeros(2, 0, 0),
    "one element": torch.full((2, 1, 1), 2.5),
    "small": 0.01 * torch.sin(torch.arange(16.0)).view(4, 4),
    "large": 8 * torch.sin(torch.arange(50.0)).view(2, 5, 5),
    "nilpotent": torch.triu(torch.ones(6, 6), 1),
    "a batch of norms up to 64": torch.eye(2) * 2.0 ** torch.arange(0, 6.1, 0.25).view(-1, 1, 1),
}


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES.keys())
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64], ids=str)
def test_matrix_exponentials_agree_with_the_cpu(matrix, dtype):
    wanted = torch.linalg.matrix_exp(matrix.to(dtype))
    got = torch.linalg.matrix_exp(matrix.to(dtype).jax()).cpu()
    tolerance = 1e-12 if dtype == torch.float64 else 1e-5
    scale = wanted.abs().amax((-2, -1), keepdim=True) if wanted.numel() else 1
    torch.testing.assert_close(got / scale, wanted / scale, rtol=tolerance, atol=tolerance)


@pytest.mark.few_daily(3)
@pytest.mark.parametrize("decompose", [torch.linalg.eigvalsh, torch.linalg.eigh])
@pytest.mark.parametrize("size", [1, 2, 3, 25, 26])
def test_eigenvalues_of_nan_raise_where_they_do_on_the_cpu(size, decompose):
    def outcome(device: str) -> list[bool]:
        x = torch.full((size, size), float("nan"), device=device)
        try:
            values = decompose(x)
            return (values if isinstance(values, torch.Tensor) else values[0]).isnan().tolist()
        except torch.linalg.LinAlgError:
            return []

    assert outcome("jax") == outcome("cpu")


def failing_at(order: int) -> torch.Tensor:
    """[4, 4]; the leading minors from that order on are not positive, or all are if it is 0."""
    x = torch.eye(4) + 0.1
    if order:
        x[order - 1, order - 1] = -1
    return x


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128], ids=str)
def test_the_order_of_the_minor_at_which_cholesky_fails(upper, dtype):
    x = torch.stack([failing_at(order) for order in range(5)]).to(dtype)
    x[2, 0, 3] = x[2, 3, 0] = float("nan")  # Beyond that minor.
    wanted = torch.linalg.cholesky_ex(x, upper=upper).info.tolist()
    assert wanted == [0, 1, 2, 3, 4]
    assert torch.linalg.cholesky_ex(x.jax(), upper=upper).info.tolist() == wanted
    assert torch.linalg.cholesky_ex(x[:, :0, :0].jax()).info.tolist() == [0] * 5
    with pytest.raises(torch.linalg.LinAlgError, match="leading minor of order 3 is not positive"):
        torch.linalg.cholesky(x[3].jax())


@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")
@pytest.mark.parametrize("shape", [(0, 3), (0, 2, 3), (3, 0)], ids=str)
def test_nothing_is_its_own_cholesky_factor(shape):
    found = torch.cholesky(torch.zeros(shape, device="jax"))
    assert found.cpu().shape == torch.cholesky(torch.zeros(shape)).shape
