"""OptaxOptimizer: optimizers of jax for parameters of torch."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest
import torch
from torch import nn

from torch_xla_lite.interop.optax import OptaxOptimizer


class Transformation(NamedTuple):
    init: Any
    update: Any


def momentum(rate: float = 0.1, decay: float = 0.9) -> Transformation:
    """torch.optim.SGD(lr=rate, momentum=decay), as optax would write it, and a count of steps."""

    def init(params):
        return {"trace": jax.tree.map(jnp.zeros_like, params), "count": jnp.zeros((), jnp.int32)}

    def update(gradients, state, params=None):
        trace = jax.tree.map(lambda g, t: g + decay * t, gradients, state["trace"])
        updates = jax.tree.map(lambda t: -rate * t, trace)
        return updates, {"trace": trace, "count": state["count"] + 1}

    return Transformation(init, update)


def train(module: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> list[float]:
    device = next(module.parameters()).device
    x = torch.linspace(-1, 1, 12).reshape(4, 3).to(device)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = module(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def modules() -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    other = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    other.load_state_dict(module.state_dict())
    return module, other


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("device", ["cpu", "jax"])
@pytest.mark.parametrize("named", [False, True])
def test_it_trains_as_torch_does(device: str, named: bool):
    module, other = modules()
    other.to(device)
    parameters = other.named_parameters() if named else other.parameters()
    found = train(other, OptaxOptimizer(parameters, momentum()), 5)
    expected = train(module, torch.optim.SGD(module.parameters(), 0.1, momentum=0.9), 5)
    assert found == pytest.approx(expected, abs=1e-5)


def test_training_resumes_from_its_state():
    module, other = (m.to("jax") for m in modules())
    whole = train(module, OptaxOptimizer(module.parameters(), momentum()), 6)
    first = OptaxOptimizer(other.parameters(), momentum())
    begun = train(other, first, 3)
    second = OptaxOptimizer(other.parameters(), momentum())
    second.load_state_dict(first.state_dict())
    assert begun + train(other, second, 3) == pytest.approx(whole, abs=1e-6)


def test_the_state_of_another_transformation_is_refused():
    module, _ = modules()
    optimizer = OptaxOptimizer(module.parameters(), momentum())
    state = optimizer.state_dict()
    state["transformation"] = state["transformation"][1:]
    with pytest.raises(ValueError, match="of another transformation or of other parameters"):
        optimizer.load_state_dict(state)


def test_groups_are_refused():
    module, _ = modules()
    groups = [{"params": layer.parameters()} for layer in (module[0], module[2])]
    with pytest.raises(ValueError, match=r"one group of parameters.\nUse optax.multi_transform"):
        OptaxOptimizer(groups, momentum())


def test_a_parameter_without_a_gradient_stays():
    module, _ = modules()
    optimizer = OptaxOptimizer(module.parameters(), momentum())
    before = module[2].bias.item()
    module[0](torch.ones(1, 3)).sum().backward()
    optimizer.step()
    assert module[2].bias.item() == before


def test_what_requires_no_gradient_stays():
    def decay(gradients, state, params):
        return jax.tree.map(lambda p: -0.5 * p, params), state

    parameters = [nn.Parameter(torch.ones(2, device="jax")) for _ in range(2)]
    parameters[1].requires_grad_(False)
    OptaxOptimizer(parameters, Transformation(lambda params: (), decay)).step()
    assert [p.tolist() for p in parameters] == [[0.5, 0.5], [1, 1]]


def test_a_second_group_and_another_state_are_refused():
    _, module = modules()
    optimizer = OptaxOptimizer(module.parameters(), momentum())
    with pytest.raises(ValueError, match="multi_transform"):
        optimizer.add_param_group({"params": [nn.Parameter(torch.ones(2))]})
    with pytest.raises(ValueError, match="another transformation"):
        optimizer.load_state_dict(torch.optim.SGD(module.parameters()).state_dict())


def test_a_schedule_of_torch_is_refused_with_the_remedy():
    module, _ = modules()
    optimizer = OptaxOptimizer(module.parameters(), momentum())
    optimizer.load_state_dict(optimizer.state_dict())
    with pytest.raises(KeyError, match=r"'lr' in its group: .* those of the transformation"):
        torch.optim.lr_scheduler.StepLR(optimizer, 1)
