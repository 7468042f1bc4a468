"""Libraries of jax in a torch program: layers of equinox, optimizers of optax."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn

from torch_xla_lite import call_jax, jax_view, torch_view
from torch_xla_lite.optax import OptaxOptimizer


def tensors_of(tree: Any) -> Any:
    """A pytree with parameters of torch in place of its arrays."""

    def parameter(leaf: Any) -> Any:
        return nn.Parameter(torch_view(leaf)) if isinstance(leaf, jax.Array) else leaf

    return jax.tree.map(parameter, tree)


def test_a_layer_of_equinox_is_a_pytree_with_gradients():
    equinox = pytest.importorskip("equinox")
    layer = equinox.nn.MLP(3, 2, 8, depth=1, key=jax.random.key(0))
    x = jnp.linspace(-1, 1, 12).reshape(4, 3)

    def loss(layer: Any, x: jax.Array) -> jax.Array:
        return (jax.vmap(layer)(x) ** 2).sum()

    on_torch = tensors_of(layer)
    call_jax(loss, on_torch, torch_view(x)).backward()
    expected = equinox.filter_grad(loss)(layer, x)
    for found, gradient in zip(on_torch.layers, expected.layers, strict=True):
        np.testing.assert_allclose(jax_view(found.weight.grad), gradient.weight, rtol=1e-5)


def trained(device: str, make: Any, steps: int = 10) -> list[float]:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
    optimizer = make(module)
    x = torch.linspace(-1, 1, 12).reshape(4, 3).to(device)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = module(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_adamw_of_optax_is_that_of_torch():
    optax = pytest.importorskip("optax")
    transformation = optax.adamw(1e-2, weight_decay=0.01)
    found = trained("jax", lambda m: OptaxOptimizer(m.parameters(), transformation))
    expected = trained("cpu", lambda m: torch.optim.AdamW(m.parameters(), 1e-2, weight_decay=0.01))
    assert found == pytest.approx(expected, abs=1e-5)


def test_a_schedule_is_part_of_the_transformation():
    optax = pytest.importorskip("optax")
    transformation = optax.sgd(optax.cosine_decay_schedule(0.1, 10))

    def with_torch(module: nn.Module) -> torch.optim.Optimizer:
        optimizer = torch.optim.SGD(module.parameters(), 0.1)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
        optimizer.register_step_post_hook(lambda *_: schedule.step())
        return optimizer

    found = trained("jax", lambda m: OptaxOptimizer(m.parameters(), transformation), 8)
    assert found == pytest.approx(trained("cpu", with_torch, 8), abs=1e-5)


def test_parameters_by_name_have_different_transformations():
    optax = pytest.importorskip("optax")
    parts = {"weights": optax.lion(1e-2), "rest": optax.set_to_zero()}

    def labels(params: dict) -> dict:
        return {name: "weights" if name.endswith("weight") else "rest" for name in params}

    module = nn.Linear(3, 2).to("jax")
    before = {name: value.tolist() for name, value in module.named_parameters()}
    optimizer = OptaxOptimizer(module.named_parameters(), optax.multi_transform(parts, labels))
    module(torch.ones(1, 3, device="jax")).sum().backward()
    optimizer.step()
    after = {name: value.tolist() for name, value in module.named_parameters()}
    assert after["bias"] == before["bias"]
    assert after["weight"] != before["weight"]
