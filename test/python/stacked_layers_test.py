"""StackedLayers: a loop over layers computes what the layers compute."""

import copy

import pytest
import torch
from torch import nn

import torch_xla_lite
from torch_xla_lite.interop.stacked_layers import StackedLayers


def blocks(count: int) -> list[nn.Module]:
    torch.manual_seed(0)
    return [
        nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4, momentum=0.5), nn.Tanh())
        for _ in range(count)
    ]


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("device", ["cpu", "jax"])
def test_results_gradients_and_buffers_are_those_of_the_layers(device: str):
    layers = blocks(3)
    stacked = StackedLayers(layers).to(device)
    x = torch.linspace(-1, 1, 20).reshape(5, 4)
    expected = nn.Sequential(*layers)(x)
    found = stacked(x.to(device))
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-3, atol=1e-4)
    expected.square().sum().backward()
    found.square().sum().backward()
    for i, layer in enumerate(layers):
        gradient = stacked.layer[0].weight.grad[i].cpu()
        torch.testing.assert_close(gradient, layer[0].weight.grad, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(stacked.layer[1].running_var[i].cpu(), layer[1].running_var)


def test_the_mode_of_the_layers_may_change():
    layers = blocks(2)
    stacked = StackedLayers(layers)
    x = torch.linspace(-1, 1, 20).reshape(5, 4)
    stacked(x)
    expected = nn.Sequential(*layers)
    expected(x)
    torch.testing.assert_close(stacked.eval()(x), expected.eval()(x))


def test_layers_come_back():
    layers = blocks(3)
    back = StackedLayers(copy.deepcopy(layers)).to_layers()
    for layer, other in zip(layers, back, strict=True):
        assert layer.state_dict().keys() == other.state_dict().keys()
        for name, value in layer.state_dict().items():
            assert torch.equal(value, other.state_dict()[name])


def test_the_graph_has_as_many_ops_for_all_depths():
    found = []
    for depth in (2, 5):
        stacked = StackedLayers(blocks(depth)).to("jax")
        x = torch.ones(5, 4, device="jax")
        torch_xla_lite.sync()
        stacked(x)
        found.append(len(torch_xla_lite._XLAC.pending_graph()[0]))
        torch_xla_lite.sync()
    assert found[0] == found[1]


def _frozen() -> nn.Module:
    return nn.Linear(4, 4).requires_grad_(False)


DIFFERENT = {
    "shapes": (nn.Linear(4, 4), nn.Linear(4, 5)),
    "functions": (
        nn.Sequential(nn.Linear(4, 4), nn.Tanh()),
        nn.Sequential(nn.Linear(4, 4), nn.ReLU()),
    ),
    "settings": (nn.LayerNorm(4), nn.LayerNorm(4, eps=10.0)),
    "dtypes": (nn.Linear(4, 4), nn.Linear(4, 4).double()),
    "modes": (nn.Dropout(0.5), nn.Dropout(0.5).eval()),
    "frozen": (nn.Linear(4, 4), _frozen()),
    "sizes": (nn.Sequential(nn.Tanh()), nn.Sequential(nn.Tanh(), nn.Tanh())),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_layers_that_differ_in_more_than_values_are_refused(name: str):
    with pytest.raises(ValueError, match=r"of layer 1 is .* of layer 0"):
        StackedLayers(DIFFERENT[name])


def test_the_state_of_a_list_of_layers_is_loaded():
    layers = blocks(3)
    stacked = StackedLayers(blocks(3)[::-1])
    stacked.load_state_dict(nn.ModuleList(layers).state_dict())
    for layer, other in zip(layers, stacked.to_layers(), strict=True):
        assert torch.equal(layer[0].weight, other[0].weight)
    stacked.load_state_dict(stacked.state_dict())


@pytest.mark.nightly
def test_each_layer_draws_numbers_of_its_own():
    stacked = StackedLayers([nn.Dropout(0.5) for _ in range(3)]).to("jax")
    x = torch.ones(64, 64, device="jax")
    kept = (stacked(x) != 0).float().mean().item()
    assert abs(kept - 0.125) < 0.02
    assert not torch.equal(stacked(x), stacked(x))
    assert torch.equal(stacked.eval()(x), x)


def test_further_arguments_go_to_each_layer():
    class Scaled(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor, *, scale: torch.Tensor) -> torch.Tensor:
            return x * scale + y

    x = torch.ones(2)
    assert StackedLayers([Scaled(), Scaled()])(x, x, scale=x * 2).tolist() == [7, 7]


def test_autocast_is_that_of_the_call():
    layers = [nn.Linear(4, 4) for _ in range(3)]
    stacked = StackedLayers(layers).to("jax")
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    assert stacked(x.to("jax")).dtype == torch.float32
    with torch.autocast("jax", torch.bfloat16):
        found = stacked(x.to("jax"))
    with torch.autocast("cpu", torch.bfloat16):
        expected = nn.Sequential(*layers)(x)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.cpu(), expected, rtol=2e-2, atol=2e-2)
