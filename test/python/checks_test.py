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


@pytest.mark.parametrize("make", [lambda d: torch.zeros(1, device=d), torch.ones(1).to])
def test_a_device_that_does_not_exist_raises(make):
    with pytest.raises(RuntimeError, match="there is no device jax:1"):
        make("jax:1")
