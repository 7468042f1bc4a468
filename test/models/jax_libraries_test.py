"""Libraries of jax in a torch program: layers of equinox, optimizers of optax."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn

from torch_xla_lite import call_jax, jax_view, torch_view
from torch_xla_lite.jax_modules import JaxModule
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


def steps_of(module: nn.Module, x: torch.Tensor) -> list[float]:
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = (module(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def steps_in_jax(function: Any, parameters: Any, x: jax.Array) -> list[float]:
    losses = []
    for _ in range(4):
        loss, gradients = jax.value_and_grad(lambda p: (function(p, x) ** 2).mean())(parameters)
        parameters = jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)
        losses.append(float(loss))
    return losses


X = jnp.linspace(-1, 1, 24).reshape(6, 4)


def test_a_layer_of_equinox_is_a_module():
    equinox = pytest.importorskip("equinox")
    layer = equinox.nn.MLP(4, 2, 8, depth=1, key=jax.random.key(0))
    module = JaxModule(layer, call=jax.vmap)
    names = {name: tuple(p.shape) for name, p in module.named_parameters()}
    assert names == {
        "layers.0.weight": (8, 4),
        "layers.0.bias": (8,),
        "layers.1.weight": (2, 8),
        "layers.1.bias": (2,),
    }
    arrays, rest = equinox.partition(layer, equinox.is_inexact_array)
    expected = steps_in_jax(lambda p, x: jax.vmap(equinox.combine(p, rest))(x), arrays, X)
    assert steps_of(module, torch_view(X)) == pytest.approx(expected, rel=1e-5)
    copied = JaxModule(layer, call=jax.vmap)
    copied.load_state_dict(module.state_dict())
    assert copied(torch_view(X)).tolist() == module(torch_view(X)).tolist()


def test_a_layer_of_linen_is_a_module():
    linen = pytest.importorskip("flax.linen")

    class Layer(linen.Module):
        @linen.compact
        def __call__(self, x: jax.Array) -> jax.Array:
            x = linen.BatchNorm(use_running_average=False, momentum=0.9)(linen.Dense(3)(x))
            return linen.Dense(2)(linen.relu(x))

    module = JaxModule(Layer(), torch_view(X), seed=1)
    assert {"Dense_0.kernel", "BatchNorm_0.scale"} <= set(dict(module.named_parameters()))
    assert "batch_stats.BatchNorm_0.mean" in dict(module.named_buffers())
    variables = Layer().init(jax.random.key(1), X)
    stats = variables["batch_stats"]

    def function(params: Any, x: jax.Array) -> jax.Array:
        given = {"params": params, "batch_stats": stats}
        return Layer().apply(given, x, mutable=["batch_stats"])[0]

    expected = steps_in_jax(function, variables["params"], X)
    assert steps_of(module, torch_view(X)) == pytest.approx(expected, rel=1e-4)
    mean = dict(module.named_buffers())["batch_stats.BatchNorm_0.mean"]
    assert mean.abs().sum().item() > 0
    before = mean.tolist()
    module.eval()
    with pytest.raises(Exception, match=r"mutable|immutable"):
        module(torch_view(X))  # The layer itself says that it updates statistics.
    assert mean.tolist() == before


def test_a_layer_of_nnx_is_a_module():
    nnx = pytest.importorskip("flax.nnx")

    class Layer(nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.inner = nnx.Linear(4, 3, rngs=rngs)
            self.norm = nnx.BatchNorm(3, rngs=rngs)

        def __call__(self, x: jax.Array) -> jax.Array:
            return self.norm(self.inner(x))

    module = JaxModule(Layer(nnx.Rngs(0)))
    graph, params, others = nnx.split(Layer(nnx.Rngs(0)), nnx.Param, ...)

    def function(params: Any, x: jax.Array) -> jax.Array:
        # A copy, because the layer writes to its statistics.
        return nnx.merge(graph, params, jax.tree.map(jnp.copy, others))(x)

    expected = steps_in_jax(function, params, X)
    assert steps_of(module, torch_view(X)) == pytest.approx(expected, rel=1e-4)
    assert any(buffer.abs().sum().item() > 0 for buffer in module.buffers())
    module.eval()
    assert module(torch_view(X)).tolist() == module(torch_view(X)).tolist()


def test_dropout_is_for_training():
    equinox, nnx = pytest.importorskip("equinox"), pytest.importorskip("flax.nnx")
    x = torch.ones(64, device="jax")
    dropout = equinox.nn.Dropout(0.5)
    layer = equinox.nn.Sequential([equinox.nn.Linear(64, 64, key=jax.random.key(0)), dropout])
    modules = [
        (JaxModule(layer), {"key": jax.random.key(1)}),
        (
            JaxModule(
                nnx.Sequential(
                    nnx.Linear(64, 64, rngs=nnx.Rngs(0)), nnx.Dropout(0.5, rngs=nnx.Rngs(1))
                )
            ),
            {},
        ),
    ]
    for module, kwargs in modules:
        zeros = [(module(x, **kwargs) == 0).sum().item()]
        module.eval()
        zeros.append((module(x, **kwargs) == 0).sum().item())
        assert 16 < zeros[0] < 48, zeros
        assert zeros[1] == 0


def test_what_has_no_arrays_is_no_layer():
    with pytest.raises(TypeError, match="no arrays"):
        JaxModule(jnp.sin)
