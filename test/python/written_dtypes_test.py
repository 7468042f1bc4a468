"""Ops in place compute in the wider dtype of their operands, with all its digits."""

import pytest
import torch

import torch_xla_lite  # noqa: F401  (the device)


@pytest.mark.parametrize("step", [1, 2], ids=["dense", "a view"])
def test_an_op_in_place_computes_in_the_wider_dtype_of_its_operands(step):
    x, y = torch.full((4,), 1e8), torch.full((4 // step,), 1e8 + 1e-3, dtype=torch.float64)
    wanted, got = x.clone(), x.jax()
    wanted[::step].sub_(y)
    got[::step].sub_(y.jax())
    torch.testing.assert_close(got.cpu(), wanted)


def test_the_gradient_of_an_op_in_place_that_computes_in_a_wider_dtype():
    def gradients(device: str) -> list[torch.Tensor]:
        x = torch.ones(2, device=device, requires_grad=True)
        y = torch.full((2,), 3.0, dtype=torch.float64, device=device, requires_grad=True)
        (x * 1).mul_(y).sum().backward()
        return [x.grad.cpu(), y.grad.cpu()]

    assert [g.tolist() for g in gradients("jax")] == [g.tolist() for g in gradients("cpu")]
