"""Composite ops that are recorded whole, with a gradient of one op too."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import torch_xla_lite
from torch_xla_lite import debug

Q, K, V = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(2, 3, 7, 8)


def test_the_gradient_of_linear_has_a_gradient():
    def twice(x, weight):
        y = F.linear(x, weight).tanh()
        (grad,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return torch.autograd.grad((grad**2).sum(), weight)[0]

    x, weight = torch.randn(3, 8), torch.randn(5, 8)
    wanted = twice(x.double().requires_grad_(), weight.double().requires_grad_())
    got = twice(x.jax().requires_grad_(), weight.jax().requires_grad_())
    # Terms of both signs are added up, each rounded relative to itself.
    largest = wanted.abs().max().item()
    torch.testing.assert_close(got.cpu().double(), wanted, rtol=0, atol=1e-5 * largest)


CONVOLUTIONS = {
    "plain": ((2, 4, 9, 9), (6, 4, 3, 3), {}),
    "strided": ((2, 4, 9, 9), (6, 4, 3, 3), {"stride": 2, "padding": 1}),
    "one channel a group": ((2, 4, 9, 9), (8, 1, 3, 3), {"groups": 4}),
    "kernel larger than the image": ((2, 4, 2, 2), (6, 4, 5, 5), {"padding": 2}),
}


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("case", CONVOLUTIONS.values(), ids=CONVOLUTIONS.keys())
@pytest.mark.parametrize("function", [F.conv2d, F.conv_transpose2d])
def test_the_gradients_of_a_convolution_have_gradients(function, case):
    size, kernel, options = case
    if function is F.conv_transpose2d and options.get("groups", 1) == 1:
        kernel = (size[1], kernel[0], *kernel[2:])
    elif function is F.conv_transpose2d:
        kernel = (size[1], 2, *kernel[2:])

    def second(x, weight):
        y = function(x, weight, **options)
        grads = torch.autograd.grad((y**3).sum(), [x, weight], create_graph=True)
        return torch.autograd.grad(sum((grad**2).sum() for grad in grads), [x, weight])

    x, weight = torch.randn(size, dtype=torch.float64), torch.randn(kernel, dtype=torch.float64)
    wanted = second(x.clone().requires_grad_(), weight.clone().requires_grad_())
    got = second(x.jax().requires_grad_(), weight.jax().requires_grad_())
    for ours, theirs in zip(got, wanted, strict=True):
        largest = theirs.abs().max().item()
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-9, atol=1e-9 * largest)


def test_attention_is_one_op_and_so_is_its_gradient():
    q, k, v = (x.jax().requires_grad_() for x in (Q, K, V))
    grad = torch.ones(2, 3, 5, 8, device="jax")
    torch_xla_lite.sync()
    before = debug.metrics()["recorded_ops"]
    F.scaled_dot_product_attention(q, k, v).backward(grad)
    assert debug.metrics()["recorded_ops"] - before <= 5


def test_a_batch_norm_that_updates_nothing():
    x, weight, mean = torch.randn(4, 3, 5), torch.rand(3) + 1, torch.randn(3)
    arguments = (x, weight, mean, mean, weight)
    op = torch.ops.aten._batch_norm_no_update
    wanted = op(*arguments, 0.1, 1e-5)
    torch_xla_lite.debug.use_lowerings("aten::_batch_norm_no_update")
    try:
        # torch's meta function says that there are statistics, its kernel saves none.
        got, *_ = (t.cpu() for t in op(*(t.jax() for t in arguments), 0.1, 1e-5))
    finally:
        torch_xla_lite.debug.use_lowerings()
    torch.testing.assert_close(got, wanted[0], rtol=1e-5, atol=1e-5)


def test_batch_norm_of_data_that_needs_no_gradient():
    gradients = []
    for device in ("jax", "cpu"):
        module = torch.nn.BatchNorm1d(4).to(device)
        x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)).to(device)
        (module(x) * x).sum().backward()
        gradients.append([parameter.grad.cpu() for parameter in module.parameters()])
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_a_checkpoint_repeats_itself_on_the_tensors_that_it_was_given(use_reentrant):
    def run(device: str) -> list[float]:
        x = torch.linspace(-1, 2, 12).view(3, 4).to(device).requires_grad_()
        mean, var = torch.zeros(3, device=device), torch.ones(3, device=device)

        def layer(x, mean, var):
            return F.batch_norm(x.t().view(4, 3), mean, var, training=True).sin()

        checkpoint(layer, x.t(), mean, var, use_reentrant=use_reentrant).sum().backward()
        return [*x.grad.flatten().tolist(), *mean.tolist(), *var.tolist()]

    assert run("jax") == pytest.approx(run("cpu"), rel=1e-5, abs=1e-6)
