"""Training steps on a mesh of 16 devices that exist on paper: H100s in two machines, and TPUs."""

import argparse
import gc
from collections.abc import Iterator

import jax
import numpy as np
import pytest
import torch
from torch import nn

import torch_xla_lite as txl
from scripts.bench import mesh_on_paper, paper, paper_devices
from test.mesh.transformer import RULES, VOCABULARY, LanguageModel
from torch_xla_lite.mesh import sharding
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


# Mode -> the axes of the mesh, the rules, where parameters are divided, and what the devices send.
MODES: dict[str, tuple[dict[str, int], list, str | None, set[str]]] = {
    "dp": ({"data": 16}, [], None, {"all-reduce"}),
    "fsdp": ({"data": 16}, [], "data", {"all-gather"}),
    "tp": ({"data": 2, "model": 8}, RULES, None, {"all-reduce"}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", MODES)
def test_a_training_step_compiles(mode: str, kind: str, chips: np.ndarray):
    axes, rules, fsdp, expected = MODES[mode]
    txl.set_mesh(jax.sharding.Mesh(chips.reshape([*axes.values()]), [*axes]))
    with torch.device("meta"):
        model = LanguageModel()
    mesh_on_paper.without_data(model, rules, fsdp=fsdp)
    if fsdp:
        sharding.keep_batch(model, "data")
    x, y = (mesh_on_paper.shape_alone((32, 32), torch.int64, ("data",)) for _ in range(2))

    def loss() -> torch.Tensor:
        return nn.functional.cross_entropy(model(x).view(-1, VOCABULARY), y.flatten())

    text = mesh_on_paper.lowered_step(model, loss).compile().as_text()
    assert expected <= communication.bytes_sent(text).keys()


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_over_layers_compiles(kind: str, chips: np.ndarray):
    txl.set_mesh(jax.sharding.Mesh(chips, ["data"]))
    with torch.device("meta"):
        model = StackedLayers([nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(4)])
    mesh_on_paper.without_data(model, [], fsdp=None)
    x = mesh_on_paper.shape_alone((32, 64), torch.float32, ("data",))
    text = mesh_on_paper.lowered_step(model, lambda: model(x).square().mean()).compile().as_text()
    assert "while(" in text
    assert "all-reduce" in communication.bytes_sent(text)


def test_the_step_by_hand_of_the_benchmark_computes_what_ours_does():
    sizes = {"layers": 1, "width": 32, "heads": 2, "vocabulary": 50, "batch": 2, "length": 16}
    options = argparse.Namespace(**sizes)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ["data"])
    txl.set_mesh(mesh)
    try:
        ours = paper._figures(lambda: paper._our_step(options, torch.float32))
    finally:
        txl.set_mesh(None)
    by_hand = paper._figures(lambda: paper._step_by_hand(options, np.dtype(np.float32), mesh))
    assert ours["GFLOP"] == pytest.approx(by_hand["GFLOP"], rel=0.15)
