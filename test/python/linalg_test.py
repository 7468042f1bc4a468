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
