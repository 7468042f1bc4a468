"""Derivatives of pointwise ops by jax (gradient="jax"): those of torch's backward on the CPU."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn

from torch_xla_lite import to_jax

INF = float("inf")
SPECIAL = (-INF, -100.0, -9.5, -3, -1, -0.5, 0, 0.5, 1, 3, 6, 9.5, 100, INF)
# The ends of intervals: kinks, poles, and where a part of a formula overflows.
OF_ONE = {
    "abs": torch.abs,
    "celu": nn.functional.celu,
    "clamp": lambda x: x.clamp(-1, 3),
    "clamp_max": lambda x: x.clamp_max(3),
    "digamma": lambda x: torch.digamma(x + 0.25 * (x <= 0)),
    "elu": nn.functional.elu,
    "erfcx": torch.special.erfcx,
    "hardswish": nn.functional.hardswish,
    "hardtanh": nn.functional.hardtanh,
    "i0": torch.i0,
    "leaky_relu": nn.functional.leaky_relu,
    "log_ndtr": torch.special.log_ndtr,
    "logit": torch.logit,
    "logit of a range": lambda x: torch.logit(x, 0.5),
    "logsigmoid": nn.functional.logsigmoid,
    "ndtri": torch.special.ndtri,
    "norm": lambda x: torch.linalg.vector_norm(x.expand(2, -1), dim=0),
    "norm of a root": lambda x: torch.linalg.vector_norm(x.expand(2, -1), 0.5, dim=0),
    "norm of a power": lambda x: torch.linalg.vector_norm(x.expand(2, -1), 3, dim=0),
    "polygamma": lambda x: torch.polygamma(2, x),
    "pow of a number": lambda x: x**0.5,
    "prelu": lambda x: nn.functional.prelu(x, torch.tensor([0.25]).to(x.device)),
    "relu": torch.relu,
    "relu6": nn.functional.relu6,
    "selu": nn.functional.selu,
    "sinc": torch.sinc,
    "softplus": nn.functional.softplus,
    "sqrt": torch.sqrt,
    "std": lambda x: torch.std(x.expand(2, -1), dim=0) + x,
}
OF_TWO = {
    "atan2": torch.atan2,
    "clamp of a tensor": lambda x, y: torch.clamp(x, y, y + 1),
    "copysign": torch.copysign,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "hypot": torch.hypot,
    "logaddexp": torch.logaddexp,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "pow": torch.pow,
    "remainder": torch.remainder,
    "xlog1py": torch.special.xlog1py,
    "xlogy": torch.xlogy,
}


class Applied(nn.Module):
    def __init__(self, fn: Callable) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        return self.fn(*tensors)


def check(fn: Callable, *inputs: torch.Tensor, rtol: float = 1e-4, atol: float = 1e-6) -> None:
    """Compares the derivatives for each input, in reverse and in forward mode."""
    tensors = [x.clone().requires_grad_() for x in inputs]
    result = fn(*tensors)
    expected = torch.autograd.grad(result, tensors, torch.ones_like(result))
    by_jax, _ = to_jax(Applied(fn), gradient="jax")
    arrays = [jnp.asarray(x.numpy()) for x in inputs]

    @jax.jit
    def gradients(*arrays: jax.Array) -> tuple[jax.Array, ...]:
        value, vjp = jax.vjp(lambda *x: by_jax({}, {}, *x)[0], *arrays)
        return vjp(jnp.ones_like(value))

    for found, gradient in zip(gradients(*arrays), expected, strict=True):
        np.testing.assert_allclose(found, gradient.numpy(), rtol, atol)


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("name", OF_ONE)
def test_of_one_operand(name: str):
    check(OF_ONE[name], torch.tensor(SPECIAL))


@pytest.mark.few_daily(4)
@pytest.mark.parametrize("name", OF_TWO)
def test_of_two_operands(name: str):
    x = torch.tensor(SPECIAL)
    check(OF_TWO[name], *torch.meshgrid(x, x, indexing="ij"))


# Lowerings with a rule of their own, where samples of the database do not come to.
RULES = {
    "dilated max_pool1d": lambda x: nn.functional.max_pool1d(x.reshape(1, 2, 36), 3, 2, 1, 2),
    "householder_product without reflections": lambda x: (
        torch.linalg.householder_product(x[:12].reshape(2, 3, 2), x[:0].reshape(2, 0)) + x[0]
    ),
    "eigvalsh of the upper triangle": lambda x: torch.linalg.eigvalsh(x[:9].reshape(3, 3), "U"),
    "norm of complex numbers": lambda x: torch.linalg.vector_norm(
        torch.complex(x[:36], x[36:]).reshape(6, 6), 1.5, 0
    ),
}


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("name", RULES)
def test_of_a_rule(name: str):
    x = torch.randn(72, generator=torch.Generator().manual_seed(0))
    check(lambda x: RULES[name](x) ** 2, x, rtol=1e-3, atol=1e-3)


def test_of_a_list_of_operands():
    check(lambda x, y: torch.relu(torch.cat([x, y])), torch.zeros(2), torch.ones(3))


@pytest.mark.nightly
def test_second_derivatives_are_those_of_the_formula():
    by_jax, _ = to_jax(Applied(lambda x: (x**3 + x.relu()).sum()), gradient="jax")
    hessian = jax.hessian(lambda x: by_jax({}, {}, x)[0])(jnp.array([0.0, 2]))
    assert hessian.tolist() == [[0, 0], [0, 12]]


def test_where_torch_masks_a_gradient_an_infinite_tangent_is_masked():
    check(lambda x: torch.sqrt(torch.relu(x)), torch.tensor([-1.0, 4]))
