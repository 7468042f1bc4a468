"""Tensors that move to and from jax and stay the same objects (torch_hooks/moves.py)."""

import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from torch.testing._internal.two_tensor import TwoTensor

import torch_xla_lite  # noqa: F401

WAYS = [("cpu", "jax"), ("jax", "cpu")]
both_ways = pytest.mark.parametrize(("source", "target"), WAYS)


class Quantized(torch.nn.Parameter):
    """A parameter that quantizes its data when it first moves, as those of bitsandbytes do."""

    def __new__(cls, data: torch.Tensor, scale: torch.Tensor | None = None) -> "Quantized":
        self = torch.Tensor._make_subclass(cls, data, False)
        self.scale = scale
        return self

    def to(self, *args, **kwargs):
        device = torch._C._nn._parse_to(*args, **kwargs)[0]
        if self.scale is None:
            data = self.data.to(device)
            self.scale = data.abs().max() / 127
            self.data = (data / self.scale).round().to(torch.int8)
            return self
        return Quantized(super().to(*args, **kwargs), self.scale.to(device))


class QuantizedLinear(torch.nn.Module):
    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = Quantized(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ (self.weight * self.weight.scale).T


@both_ways
def test_a_parameter_that_wraps_tensors_moves(source: str, target: str):
    module = torch.nn.Linear(2, 2, bias=False)
    parts = torch.full((2, 2), 2.0, device=source), torch.full((2, 2), 3.0, device=source)
    module.weight = weight = torch.nn.Parameter(TwoTensor(*parts))
    module.to(target)
    assert module.weight is weight
    assert type(weight) is TwoTensor
    assert {weight.device.type, weight.a.device.type, weight.b.device.type} == {target}
    assert (weight.a.tolist(), weight.b.tolist()) == ([[2, 2], [2, 2]], [[3, 3], [3, 3]])


def test_a_quantized_parameter_moves_with_its_attributes():
    values, x = torch.randn(3, 4), torch.randn(2, 4)
    module, on_cpu = QuantizedLinear(values), QuantizedLinear(values)
    on_cpu.weight.to("cpu")
    weight = module.weight
    for device in ("jax", "cpu", "jax"):
        module.to(device)
        assert module.weight is weight
        assert type(weight) is Quantized
        assert weight.scale.device.type == weight.device.type == device
        assert weight.dtype == torch.int8
        torch.testing.assert_close(module(x.to(device)).cpu(), on_cpu(x))


@both_ways
@pytest.mark.parametrize("option", ["record_shapes", "profile_memory", "with_stack"])
def test_a_module_moves_that_torchs_profiler_saw(source: str, target: str, option: str):
    module = torch.nn.Linear(4, 2).to(source)
    module.weight.register_hook(lambda gradient: gradient * 2)
    with profile(activities=[ProfilerActivity.CPU], **{option: True}) as profiler:
        module(torch.ones(1, 4, device=source)).sum().backward()
    module.to(target)
    assert profiler.events()
    assert module.weight.grad.tolist() == [[2] * 4] * 2
    module(torch.ones(1, 4, device=target)).sum().backward()
    assert module.weight.grad.tolist() == [[4] * 4] * 2


def test_a_move_that_fails_leaves_the_parameter_as_it_was():
    module = torch.nn.Linear(2, 1, bias=False)
    module(torch.ones(1, 2)).sum().backward()
    weight, gradient = module.weight, module.weight.grad
    calls = []
    weight.register_hook(calls.append)

    def convert(tensor: torch.Tensor) -> torch.Tensor:
        if tensor is gradient:
            raise MemoryError
        return tensor.to("jax")

    with pytest.raises(MemoryError):
        module._apply(convert)
    assert weight.is_cpu
    assert weight.grad is gradient
    module(torch.ones(1, 2)).sum().backward()
    assert len(calls) == 1


# --- x.data = y -----------------------------------------------------------------------------------


@both_ways
def test_data_of_another_device_moves_a_tensor(source: str, target: str):
    tensor, data = torch.zeros(2, device=source), torch.ones(3, device=target)
    tensor.data = data
    assert tensor.device.type == target
    tensor += 1
    assert data.tolist() == [2, 2, 2]  # They share memory.


def double_gradient(parameter: torch.Tensor) -> None:
    parameter.grad *= 2


@both_ways
def test_data_of_another_device_moves_a_parameter_with_its_gradient(source: str, target: str):
    parameter = torch.nn.Parameter(torch.ones(2, device=source))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    parameter.register_post_accumulate_grad_hook(double_gradient)
    (parameter * 3).sum().backward()
    parameter.data = parameter.data.to(target)
    assert parameter.is_leaf
    assert parameter.requires_grad
    assert parameter.grad.tolist() == [6, 6]
    (parameter * 3).sum().backward()
    optimizer.step()
    assert parameter.device.type == target
    assert parameter.tolist() == [1 - 18, 1 - 18]


@both_ways
def test_a_backward_pass_to_what_has_moved_is_an_error(source: str, target: str):
    parameter = torch.nn.Parameter(torch.ones(2, device=source))
    loss = (parameter * 3).sum()
    parameter.data = torch.ones(2, device=target)
    with pytest.raises(RuntimeError, match=f"moved to {target}.* after the forward pass"):
        loss.backward()


@both_ways
def test_data_of_another_device_cannot_replace_a_result(source: str, target: str):
    result = torch.ones(2, device=source, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match=rf"cannot move x to {target}.*\n.*x = x.to"):
        result.data = torch.ones(2, device=target)
    assert result.device.type == source


def test_data_of_a_tensor_that_wraps_others_is_refused():
    tensor = TwoTensor(torch.ones(2), torch.ones(2))
    with pytest.raises(RuntimeError, match="wraps other tensors"):
        tensor.data = torch.ones(2, device="jax")
    assert tensor.is_cpu


def test_data_that_torch_refuses_is_refused_in_its_words():
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        torch.ones(2).data = torch.ones(2, device="meta")
    with pytest.raises(TypeError, match="Variable data has to be a tensor"):
        torch.ones(2).data = 3


def test_data_of_one_device_is_what_it_was():
    tensor, data = torch.ones(2), torch.zeros(3)
    pointer = data.data_ptr()
    tensor.data = data
    assert tensor.data.data_ptr() == pointer


def test_a_compiled_function_replaces_data():
    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.data = y
        return x.data + 1

    compiled = torch.compile(step, backend="eager", fullgraph=True)
    x = torch.zeros(2)
    assert compiled(x, torch.ones(2)).tolist() == [2, 2]
    assert x.tolist() == [1, 1]
