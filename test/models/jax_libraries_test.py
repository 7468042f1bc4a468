"""Libraries of jax in a torch program: layers of equinox, optimizers of optax."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn

from bazel.pytest_plugin import mostly_nightly
from torch_xla_lite import call_jax, jax_view, torch_view
from torch_xla_lite.interop.jax_modules import JaxModule
from torch_xla_lite.interop.optax import OptaxOptimizer


def tensors_of(tree: Any) -> Any:
    """A pytree with parameters of torch in place of its arrays."""

    def parameter(leaf: Any) -> Any:
        return nn.Parameter(torch_view(leaf)) if isinstance(leaf, jax.Array) else leaf

    return jax.tree.map(parameter, tree)


@pytest.mark.nightly
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


# The functions of optax that make a transformation.
TRANSFORMATIONS: dict[str, Callable[[Any], Any]] = {
    "adam": lambda optax: optax.adam(1e-2),
    "adamw, cosine": lambda optax: optax.adamw(optax.cosine_decay_schedule(0.1, 10)),
    "lion": lambda optax: optax.lion(1e-2),
    "clipped": lambda optax: optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(0.1, 0.9)),
    "by name": lambda optax: optax.multi_transform(
        {"weight": optax.lion(1e-2), "bias": optax.set_to_zero()},
        lambda params: {name: name.rpartition(".")[2] for name in params},
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", mostly_nightly(TRANSFORMATIONS, ["by name"]))
def test_transformations_compute_and_resume_as_in_jax(name: str, tmp_path: Path):
    optax = pytest.importorskip("optax")
    transformation = TRANSFORMATIONS[name](optax)
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to("jax")
    parameters = {n: jnp.array(jax_view(p.detach())) for n, p in module.named_parameters()}
    state = transformation.init(parameters)
    optimizer = OptaxOptimizer(module.named_parameters(), transformation)

    def loss(p: dict[str, jax.Array]) -> jax.Array:
        hidden = jnp.tanh(X @ p["0.weight"].T + p["0.bias"])
        return ((hidden @ p["2.weight"].T + p["2.bias"]) ** 2).mean()

    for step in range(8):
        if step == 4:
            torch.save(optimizer.state_dict(), tmp_path / "state.pt")
            optimizer = OptaxOptimizer(module.named_parameters(), transformation)
            optimizer.load_state_dict(torch.load(tmp_path / "state.pt"))
        optimizer.zero_grad()
        found = module(torch_view(X)).square().mean()
        found.backward()
        optimizer.step()
        expected, gradients = jax.value_and_grad(loss)(parameters)
        updates, state = transformation.update(gradients, state, parameters)
        parameters = optax.apply_updates(parameters, updates)
        assert found.item() == pytest.approx(float(expected), rel=1e-4), step


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


@pytest.mark.nightly
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


IMAGES = jnp.linspace(-1, 1, 2 * 8 * 8 * 3).reshape(2, 8, 8, 3)
SEQUENCES = jnp.linspace(-1, 1, 2 * 5 * 8).reshape(2, 5, 8)
TOKENS = jnp.arange(10).reshape(2, 5) % 7


# Layers that models of images, sequences and translation have.
LINEN: dict[str, tuple[Callable[[Any], Any], jax.Array]] = {
    "convolution": (lambda nn: nn.Conv(4, (3, 3)), IMAGES),
    "strided convolution": (lambda nn: nn.Conv(4, (3, 3), (2, 2), padding=[(1, 1)] * 2), IMAGES),
    "transposed convolution": (lambda nn: nn.ConvTranspose(4, (3, 3), (2, 2)), IMAGES),
    "pooled": (
        lambda nn: nn.Sequential([nn.Conv(4, (3, 3)), lambda x: nn.avg_pool(x, (2, 2), (2, 2))]),
        IMAGES,
    ),
    "group norm": (lambda nn: nn.GroupNorm(num_groups=3), IMAGES),
    "recurrent": (lambda nn: nn.RNN(nn.LSTMCell(6)), SEQUENCES),
    "gated": (lambda nn: nn.RNN(nn.GRUCell(6)), SEQUENCES),
    "embedding": (lambda nn: nn.Sequential([nn.Embed(7, 8), nn.LayerNorm()]), TOKENS),
    "attention": (lambda nn: nn.MultiHeadDotProductAttention(num_heads=2), SEQUENCES),
    "general": (lambda nn: nn.DenseGeneral((2, 4), axis=-1), SEQUENCES),
}
NNX: dict[str, tuple[Callable[[Any, Any], Any], jax.Array]] = {
    "convolution": (lambda nnx, rngs: nnx.Conv(3, 4, (3, 3), rngs=rngs), IMAGES),
    "recurrent": (lambda nnx, rngs: nnx.RNN(nnx.LSTMCell(8, 6, rngs=rngs)), SEQUENCES),
    "embedding": (lambda nnx, rngs: nnx.Embed(7, 8, rngs=rngs), TOKENS),
    "norm": (lambda nnx, rngs: nnx.LayerNorm(8, rngs=rngs), SEQUENCES),
    "attention": (
        lambda nnx, rngs: nnx.MultiHeadAttention(2, 8, decode=False, rngs=rngs),
        SEQUENCES,
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", mostly_nightly(LINEN, ["convolution"]))
def test_layers_of_linen_train_as_in_jax(name: str):
    make, x = LINEN[name]
    layer = make(pytest.importorskip("flax.linen"))
    parameters = layer.init(jax.random.key(1), x)["params"]
    expected = steps_in_jax(lambda p, x: layer.apply({"params": p}, x), parameters, x)
    module = JaxModule(layer, torch_view(x), seed=1)
    assert steps_of(module, torch_view(x)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.nightly
@pytest.mark.parametrize("name", NNX)
def test_layers_of_nnx_train_as_in_jax(name: str):
    nnx = pytest.importorskip("flax.nnx")
    make, x = NNX[name]
    graph, params, others = nnx.split(make(nnx, nnx.Rngs(0)), nnx.Param, ...)
    expected = steps_in_jax(
        lambda p, x: nnx.merge(graph, p, jax.tree.map(jnp.copy, others))(x), params, x
    )
    module = JaxModule(make(nnx, nnx.Rngs(0)))
    assert steps_of(module, torch_view(x)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.nightly
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
