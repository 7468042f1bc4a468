"""Training steps on a mesh of 16 devices that exist on paper: H100s in two machines, and TPUs."""

import gc
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from jax import lax
from torch import nn

import torch_xla_lite as txl
from scripts.bench import paper, paper_devices, paper_models
from test.mesh.transformer import RULES, VOCABULARY, LanguageModel
from torch_xla_lite.mesh.base import communication
from torch_xla_lite.stacked_layers import StackedLayers

pytestmark = pytest.mark.nightly

KINDS = ["h100", "v5e"]


@pytest.fixture
def chips(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[np.ndarray]:
    kind = request.getfixturevalue("kind")
    if not paper_devices.is_installed(kind):
        pytest.skip(f"see {paper_devices.__file__}")
    yield np.array(paper_devices.devices(kind, 16))
    txl.set_mesh(None)
    gc.collect()  # Else what is pending in cycles belongs to the next graph.


# Mode -> the axes of the mesh, the rules, where parameters are divided, what is sent, most bytes.
MODES: dict[str, tuple[dict[str, int], list, str | None, set[str], float]] = {
    "dp": ({"data": 16}, [], None, {"all-reduce"}, 0.8e6),
    "fsdp": ({"data": 16}, [], "data", {"all-gather"}, 2.1e6),
    "tp": ({"data": 2, "model": 8}, RULES, None, {"all-reduce"}, 1.7e6),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("blocks", ["one by one", "as a loop"])
@pytest.mark.parametrize("mode", MODES)
def test_a_training_step_compiles(mode: str, blocks: str, kind: str, chips: np.ndarray):
    axes, rules, fsdp, expected, most = MODES[mode]
    txl.set_mesh(jax.sharding.Mesh(chips.reshape([*axes.values()]), [*axes]))
    with torch.device("meta"):
        model = LanguageModel().bfloat16()
        if blocks == "as a loop":
            model.blocks = nn.ModuleList([StackedLayers(model.blocks)])
            rules = [(rf"blocks.*{x}", (None, *spec)) for x, spec in rules] + rules
    paper.without_data(model, rules, fsdp=fsdp)
    x, y = (paper.shape_alone((32, 32), torch.int64, ("data",)) for _ in range(2))

    def loss() -> torch.Tensor:
        return nn.functional.cross_entropy(model(x).view(-1, VOCABULARY), y.flatten())

    text = paper.lowered_step(model, loss).compile().as_text()
    sent = communication.bytes_sent(text)
    assert text.count(" while(") == (2 if blocks == "as a loop" else 0)
    assert expected <= sent.keys()
    assert sum(sent.values()) < most


def _pipeline(weights: jax.Array, batches: jax.Array) -> jax.Array:
    """Each chip has one layer, and gives what it computes of a batch to the next chip."""
    idle = jnp.zeros((len(weights), *batches.shape[1:]), batches.dtype)

    def tick(held: jax.Array, batch: jax.Array) -> tuple[jax.Array, jax.Array]:
        held = jnp.tanh(jnp.roll(held, 1, 0).at[0].set(batch) @ weights)
        return held, held[-1]

    return lax.scan(tick, idle, jnp.concatenate([batches, idle[1:]]))[1][len(weights) - 1 :]


@pytest.mark.parametrize("kind", KINDS)
def test_a_pipeline_compiles(kind: str, chips: np.ndarray):
    txl.set_mesh(jax.sharding.Mesh(chips, ["stage"]))
    model = nn.ParameterList([torch.empty(16, 64, 64, device="meta")])
    paper.without_data(model, [(".*", ("stage",))], fsdp=None)
    batches = paper.shape_alone((32, 8, 64), torch.float32, ())
    step = paper.lowered_step(model, lambda: txl.call_jax(_pipeline, model[0], batches).mean())
    sent = communication.bytes_sent(step.compile().as_text())
    assert "collective-permute" in sent
    assert sum(sent.values()) < 5e4  # Of the layers, 246 kB.


@pytest.mark.parametrize("name", ["gpt-small", "resnet50", "vit-b", "llama"])
def test_a_model_by_hand_of_the_benchmark_computes_what_ours_does(name: str):
    pytest.importorskip("transformers")
    model = paper_models.MODELS[name]
    module = model.make(*[1] * bool(model.layers)).requires_grad_(False)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.1)
    x, labels = model.batch(2)
    weights, buffers = paper_models.named_arrays(module)
    arrays = {at: paper_models.as_by_hand(y).numpy() for at, y in weights + buffers}
    with jax.set_mesh(jax.sharding.Mesh(np.array(jax.devices()[:1]), ["data"])):
        loss, _ = jax.jit(model.by_hand)(arrays, paper_models.as_by_hand(x).numpy(), labels.numpy())
    assert float(loss) == pytest.approx(paper_models.loss_of(module, x, labels).item(), rel=1e-4)
