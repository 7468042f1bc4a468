"""Modules of TorchScript move to jax and back, and are saved there and loaded."""

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch

import torch_xla_lite  # noqa: F401
from bazel.pytest_plugin import mostly_nightly


class _Cell(torch.nn.Module):
    """Parameters, a buffer, tensors in lists and dictionaries, and a module below."""

    tensors: list[torch.Tensor]
    named: dict[str, list[torch.Tensor]]
    pair: tuple[torch.Tensor, int]
    maybe: torch.Tensor | None

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0]))
        self.tensors = [torch.ones(3), torch.arange(6.0).view(2, 3).t()]
        self.named = {"a": [torch.full((3,), 2.0)]}
        self.pair = (torch.full((3,), 3.0), 1)
        self.maybe = torch.full((3,), 4.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x) * self.scale
        maybe = self.maybe
        if maybe is not None:
            y = y + maybe
        return y + self.tensors[0] + self.tensors[1][:, 0] + self.named["a"][0] + self.pair[0]


class _Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(2, 3), torch.nn.Sequential(_Affine(), _Affine())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).relu())


class _Affine(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))
        self.register_buffer("bias", torch.tensor([0.5, 0.0, 1.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight + self.bias


_X = torch.tensor([[1.0, -2.0]])

_MADE: dict[str, Callable[[torch.nn.Module], Any]] = {
    "scripted": torch.jit.script,
    "traced": lambda net: torch.jit.trace(net, _X.to(next(net.parameters()).device)),
}


def _loaded(module: Any, **options: Any) -> Any:
    file = io.BytesIO()
    torch.jit.save(module, file)
    file.seek(0)
    return torch.jit.load(file, **options)


def _places(module: Any) -> set[str]:
    return {tensor.device.type for tensor in [*module.parameters(), *module.buffers()]}


def _assert_agrees(module: Any, net: torch.nn.Module, device: str) -> None:
    """`module`, on `device`, computes the values and gradients of `net`, on the CPU."""
    assert _places(module) == {device}
    expected, result = net(_X), module(_X.to(device))
    assert result.device.type == device
    torch.testing.assert_close(result.detach().cpu(), expected.detach())
    for one in (module, net):
        one.zero_grad()
    expected.sum().backward()
    result.sum().backward()
    named = dict(module.named_parameters())
    for name, parameter in net.named_parameters():
        torch.testing.assert_close(named[name].grad.cpu(), parameter.grad)


@pytest.mark.parametrize("made", _MADE)
def test_a_module_moves_to_jax_and_back(made: str) -> None:
    net = _Net()
    module = _MADE[made](net)
    expected = net(_X)
    assert module.to("jax") is module
    assert _places(module) == {"jax"}
    torch.testing.assert_close(module(_X.to("jax")).cpu(), expected)
    module.to("cpu")
    assert _places(module) == {"cpu"}
    torch.testing.assert_close(module(_X), expected)


@pytest.mark.parametrize("made", _MADE)
def test_a_module_made_on_jax_moves_to_the_cpu(made: str) -> None:
    net = _Net()
    expected = net(_X)
    module = _MADE[made](net.to("jax")).cpu()
    assert _places(module) == {"cpu"}
    torch.testing.assert_close(module(_X), expected)


def test_parameters_in_lists_move_too() -> None:
    net = torch.nn.Sequential(torch.nn.LSTM(2, 3))
    x = torch.rand(2, 1, 2)
    expected = net(x)[0]
    module = torch.jit.script(net).to("jax")
    torch.testing.assert_close(module(x.to("jax"))[0].cpu(), expected)


def test_a_script_in_a_module_moves() -> None:
    net = _Net()
    module = torch.nn.Sequential(torch.jit.script(net), torch.nn.ReLU())
    expected = module(_X)
    torch.testing.assert_close(module.to("jax")(_X.to("jax")).cpu(), expected)


def test_parameters_stay_the_same_objects_for_an_optimizer() -> None:
    module = torch.jit.script(_Net())
    before = list(module.parameters())
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    module.to("jax")
    assert all(one is other for one, other in zip(before, module.parameters(), strict=True))
    weight = module.first.weight.tolist()
    module(_X.to("jax")).sum().backward()
    optimizer.step()
    assert module.first.weight.tolist() != weight


def test_gradients_and_requires_grad_move_with_the_parameters() -> None:
    module = torch.jit.script(_Net())
    module.first.bias.requires_grad_(False)
    module(_X).sum().backward()
    gradient = module.first.weight.grad
    module.to("jax")
    assert module.first.weight.grad.device.type == "jax"
    torch.testing.assert_close(module.first.weight.grad.cpu(), gradient)
    assert not module.first.bias.requires_grad


@pytest.mark.parametrize("made", mostly_nightly(_MADE, ["scripted"]))
@pytest.mark.parametrize("saved", ["cpu", "jax"])
@pytest.mark.parametrize("mapped", [None, "cpu", "jax"])
def test_a_file_is_loaded_where_it_is_mapped_to(mapped: str | None, saved: str, made: str) -> None:
    net = _Net()
    module = _loaded(_MADE[made](_copy(net, saved)), map_location=mapped)
    _assert_agrees(module, net, mapped or saved)


@pytest.mark.parametrize("saved", ["cpu", "jax"])
def test_a_loaded_module_moves_to_jax_and_back(saved: str) -> None:
    net = _Net()
    module = _loaded(torch.jit.script(_copy(net, saved)), map_location="cpu")
    _assert_agrees(module.to("jax"), net, "jax")
    _assert_agrees(module.to("cpu"), net, "cpu")


def test_tensors_in_attributes_are_mapped() -> None:
    cell = _Cell()
    x = torch.tensor([1.0, 2.0, 3.0])
    module = _loaded(torch.jit.script(cell), map_location="jax")
    torch.testing.assert_close(module(x.to("jax")).cpu(), cell(x))
    assert module.tensors[1].stride() == (1, 3)
    again = _loaded(module)
    torch.testing.assert_close(again(x.to("jax")).cpu(), cell(x))
    back = _loaded(module, map_location="cpu")
    torch.testing.assert_close(back(x), cell(x))


@pytest.mark.parametrize("saved", ["cpu", "jax"])
@pytest.mark.parametrize("mapped", ["cpu", "jax", torch.device("jax", 0)], ids=str)
def test_constants_of_one_shape_are_mapped(mapped: str | torch.device, saved: str) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)).to(saved).eval()
    x = torch.ones(2, 3)
    frozen = torch.jit.freeze(torch.jit.script(net))
    module = _loaded(frozen, map_location=mapped)
    torch.testing.assert_close(module(x.to(mapped)).cpu(), net(x.to(saved)).cpu())
    torch.testing.assert_close(_loaded(module)(x.to(mapped)).cpu(), net(x.to(saved)).cpu())


def test_constants_of_functions_are_mapped() -> None:
    weight = torch.tensor([[2.0], [3.0]])
    scale = torch.jit.trace(lambda x: x * weight[:, 0], _X)

    class Scaled(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return scale(x) + torch.jit.wait(torch.jit.fork(scale, x))

    module = _loaded(torch.jit.script(Scaled()), map_location="jax")
    assert module(_X.to("jax")).tolist() == (2 * _X * weight[:, 0]).tolist()


def test_torch_load_of_a_script_is_mapped() -> None:
    net = _Net()
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(net), file)
    file.seek(0)
    _assert_agrees(torch.load(file, map_location="jax", weights_only=False), net, "jax")


def _copy(net: torch.nn.Module, device: str) -> torch.nn.Module:
    copied = type(net)()
    copied.load_state_dict(net.state_dict())
    return copied.to(device)
