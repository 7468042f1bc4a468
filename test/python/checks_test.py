"""Ops that only check their arguments raise when they are called, as on other devices."""

import pytest
import torch

import torch_xla_lite  # noqa: F401


def test_a_singular_matrix_has_no_inverse():
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.inv(torch.zeros(2, 2, device="jax"))


def test_a_matrix_that_is_not_positive_definite_has_no_cholesky_factor():
    with pytest.raises(torch.linalg.LinAlgError, match="not positive-definite"):
        torch.linalg.cholesky(torch.zeros(2, 2, device="jax"))


NAN = float("nan")
SINGULAR = torch.tensor([[1.0, 2.0], [2.0, 4.0]])
NOT_A_NUMBER = torch.tensor([[NAN, 0.0], [0.0, 1.0]])
FAILING = {
    "cholesky": (torch.cholesky, -SINGULAR),
    "cholesky_ex": (lambda x: torch.linalg.cholesky_ex(x, check_errors=True), -SINGULAR),
    "inv_ex": (lambda x: torch.linalg.inv_ex(x, check_errors=True), SINGULAR),
    "solve_ex": (lambda x: torch.linalg.solve_ex(x, x, check_errors=True), SINGULAR),
    "svdvals": (torch.linalg.svdvals, NOT_A_NUMBER),
    "pinv": (torch.linalg.pinv, NOT_A_NUMBER),
}


@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")
@pytest.mark.parametrize("name", FAILING)
def test_a_factorisation_that_fails_raises_the_error_of_linear_algebra(name):
    function, matrix = FAILING[name]
    with pytest.raises(torch.linalg.LinAlgError):
        function(matrix)
    with pytest.raises(torch.linalg.LinAlgError):
        [x.cpu() for x in torch.utils._pytree.tree_leaves(function(matrix.jax()))]


@pytest.mark.parametrize("make", [lambda d: torch.zeros(1, device=d), torch.ones(1).to])
def test_a_device_that_does_not_exist_raises(make):
    with pytest.raises(RuntimeError, match="there is no device jax:1"):
        make("jax:1")
