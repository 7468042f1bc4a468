"""torch's program transformations on device jax: torch.compile, torch.func, double backward."""

import pytest
import torch

import torch_xla_lite  # noqa: F401


def program(x: torch.Tensor) -> torch.Tensor:
    return (x.sin() * 2 + x[0]).sum()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_function_gives_what_it_gives_on_the_cpu(backend):
    x = torch.arange(12.0).view(3, 4)
    compiled = torch.compile(program, backend=backend)
    assert compiled(x.to("jax")).item() == pytest.approx(program(x).item(), rel=1e-6)


def test_vmap_maps_over_a_jax_tensor():
    x = torch.arange(12.0, device="jax").view(3, 4)
    assert torch.func.vmap(torch.sum)(x).tolist() == [6, 22, 38]


def test_func_grad_differentiates_a_jax_program():
    x = torch.arange(12.0).view(3, 4)
    gradient = torch.func.grad(program)
    torch.testing.assert_close(gradient(x.to("jax")).cpu(), gradient(x))


def test_second_derivatives_agree_with_the_cpu():
    def second(x):
        first = torch.autograd.grad((x**3).sum(), x, create_graph=True)[0]
        return torch.autograd.grad(first.sum(), x)[0]

    x = torch.tensor([1.0, 2.0, 3.0])
    found = second(x.to("jax").requires_grad_())
    assert found.tolist() == second(x.requires_grad_()).tolist()


def test_a_fake_tensor_on_jax_has_a_shape_and_no_value():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        x = torch.empty(2, 3, device="jax")
        assert (x.detach().t() + 1).shape == (3, 2)
