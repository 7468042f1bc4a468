"""Linear algebra on the device, where its gradients depend on more than values."""

import pytest
import torch

import torch_xla_lite  # noqa: F401  (the device)

MATRIX = torch.randn(2, 4, 4) + 3 * torch.eye(4)

OPS = {
    "det": torch.linalg.det,
    "log of det": lambda x: torch.linalg.slogdet(x)[1],
    "inverse": torch.linalg.inv,
    "solve": lambda x: torch.linalg.solve(x, torch.ones(4, 2, device=x.device)),
    "cholesky": lambda x: torch.linalg.cholesky(x @ x.mT),
}


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", OPS)
def test_value_and_gradient_do_not_depend_on_how_the_matrix_lies_in_memory(name, transposed):
    def result(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        matrix = matrix.requires_grad_()
        value = OPS[name](matrix.mT if transposed else matrix)
        return value.detach().cpu(), torch.autograd.grad(value.sum(), matrix)[0].cpu()

    got, wanted = result(MATRIX.jax()), result(MATRIX.clone())
    torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-3)


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


PRODUCTS = {
    "addmm": lambda x, a, b: torch.addmm(x, a, b, beta=0),
    "addmv": lambda x, a, b: torch.addmv(x[0], a, b[:, 0], beta=0),
    "addr": lambda x, a, b: torch.addr(x, a[0], b[0], beta=0),
    "addbmm": lambda x, a, b: torch.addbmm(x, a[None], b[None], beta=0),
    "baddbmm": lambda x, a, b: torch.baddbmm(x[None], a[None], b[None], beta=0),
    "addr in place": lambda x, a, b: x.clone().addr_(a[0], b[0], beta=0, alpha=2),
}


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS.keys())
def test_a_recorded_beta_of_zero_drops_nan(product):
    a, b = torch.randn(3, 3), torch.randn(3, 3)
    added = torch.full((3, 3), float("nan"))
    wanted = product(added, a, b)
    assert not wanted.isnan().any()
    torch.testing.assert_close(product(added.jax(), a.jax(), b.jax()).cpu(), wanted)
