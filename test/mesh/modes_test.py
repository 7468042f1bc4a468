"""A transformer trains on a mesh as on one device: the losses, one program, donation, and the
communication that each way of dividing it has."""

import copy
import functools
import pickle
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

import torch_xla_lite as txl
from bazel.pytest_plugin import mostly_nightly
from test.mesh import devices  # noqa: F401  before jax starts
from test.mesh.transformer import RULES, VOCABULARY, LanguageModel
from torch_xla_lite import _XLAC, debug
from torch_xla_lite.compiler import new_graphs
from torch_xla_lite.mesh.base import communication
from torch_xla_lite.stacked_layers import StackedLayers

import jax  # isort: skip

STEPS, BATCH, LENGTH = 4, 16, 32

Place = Callable[[nn.Module], object]


def _line(axis: str = "data") -> jax.sharding.Mesh:
    return jax.make_mesh((8,), (axis,))


def _grid() -> jax.sharding.Mesh:
    return jax.make_mesh((2, 4), ("data", "model"))


MODES: dict[str, tuple[Callable[[], jax.sharding.Mesh], Place]] = {
    "dp": (_line, lambda model: txl.shard_module(model)),
    "fsdp": (_line, lambda model: txl.fully_shard(model)),
    "tp": (lambda: _line("model"), lambda model: txl.shard_module(model, RULES)),
    "tp+dp": (_grid, lambda model: txl.shard_module(model, RULES)),
    "tp+fsdp": (_grid, lambda model: txl.shard_module(model, RULES, fsdp="data")),
}


@pytest.fixture(autouse=True)
def _without_mesh() -> Iterator[None]:
    yield
    txl.set_mesh(None)


def _model(mode: str | None, dropout: float = 0.0) -> LanguageModel:
    txl.set_mesh(None)
    torch.manual_seed(0)
    model = LanguageModel(dropout=dropout)
    if mode is None:
        return model.to("jax")
    mesh, place = MODES[mode]
    batch = "data" if mode != "tp" else None
    txl.set_mesh(mesh(), batch=batch)
    place(model)
    return model


def _losses(
    model: LanguageModel,
    optimizer: torch.optim.Optimizer,
    *,
    parts: int = 1,
    autocast: bool = False,
    checkpoint: bool = False,
) -> list[float]:
    """A loop that says nothing of devices but `.to("jax")`."""
    draw = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(parts):
            tokens = torch.randint(VOCABULARY, (BATCH, LENGTH + 1), generator=draw)
            x, y = tokens[:, :-1].to("jax"), tokens[:, 1:].to("jax")
            with torch.autocast("jax", torch.bfloat16, enabled=autocast):
                if checkpoint:
                    scores = torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False)
                else:
                    scores = model(x)
                loss = nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten()) / parts
            loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@functools.cache
def _on_one_device(option: str | None) -> tuple[list[float], int]:
    """The losses, and how many inputs the program overwrites."""
    dropout, optimizer_of, options = OPTIONS[option] if option else (0.0, _adamw, {})
    _XLAC.clear_cache()  # A step is run in pieces if graphs before had some of them.
    model = _model(None, dropout)
    losses = _losses(model, optimizer_of(model), **options)
    return losses, _num_donated()


def _adamw(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-3)


def _num_donated() -> int:
    """Inputs that the last program overwrites."""
    return len(list(new_graphs._history)[-1].graph().donated)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of the programs that a test compiles for a mesh."""
    texts: list[str] = []
    of_program = communication.of_program
    monkeypatch.setattr(
        communication, "of_program", lambda hlo: texts.append(hlo) or of_program(hlo)
    )
    return texts


@pytest.mark.parametrize("mode", mostly_nightly(MODES, ["tp+fsdp"]))
def test_a_mode_trains_as_one_device_does(mode: str, compiled: list[str]):
    expected, _ = _on_one_device(None)
    model = _model(mode)
    optimizer = _adamw(model)
    txl.sync()
    debug.reset_metrics()
    losses = _losses(model, optimizer)
    assert losses == pytest.approx(expected, abs=1e-5)
    assert debug.metrics()["compiles"] == 1
    assert debug.metrics()["gathered"] == {}
    parameters = list(model.parameters())
    # With both states: the program that XLA made overwrites them, not only the graph.
    num_aliases = compiled[-1].partition("\n")[0].count("-alias")
    assert num_aliases == _num_donated() == 3 * len(parameters)
    for parameter in parameters:
        places = {txl.sharding.spec_of(x) for x in (parameter, parameter.grad)}
        places |= {txl.sharding.spec_of(optimizer.state[parameter]["exp_avg"])}
        assert len(places) == 1

    # What is communicated: for each device, in bytes.
    line, kinds = debug.collectives()[-1]
    assert "modes_test.py" in line
    size = sum(parameter.nbytes for parameter in parameters)
    reduced = kinds["all-reduce"][1]
    if mode in ("dp", "fsdp"):
        assert size <= reduced <= size + 64  # gradients, and the loss
        gathered = kinds.get("all-gather", (0, 0))
        assert gathered == ((len(parameters), size) if mode == "fsdp" else (0, 0))
    else:
        assert reduced < 4 * size
    assert set(kinds) <= {"all-reduce", "all-gather", "collective-permute", "all-to-all"}


def test_weights_move_and_activations_stay():
    """Also where an activation is smaller than its weight, which XLA would rather move."""
    txl.set_mesh(jax.make_mesh((8,), ("data",)), batch="data")
    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256, bias=False) for _ in range(3)))
    txl.fully_shard(model[1])  # Each layer and the whole, as for FSDP2.
    txl.shard_module(model, fsdp="data")
    assert [len(part._forward_hooks) for part in model] == [1, 1, 1]
    copied = copy.deepcopy(model)  # With its hooks.
    looped = txl.fully_shard(StackedLayers([torch.nn.Linear(256, 256, bias=False)] * 3))
    size = model[0].weight.nbytes
    # A loop is counted once forward, and once back, where it gathers the weights again.
    for each, gathered, reduced in ((model, 3, 3), (copied, 3, 3), (looped, 2, 1)):
        each(torch.ones(8, 256).to("jax")).square().mean().backward()
        txl.sync()
        kinds = debug.collectives()[-1][1]
        assert kinds["all-gather"] == (gathered, gathered * size)
        assert kinds["all-reduce"][1] == reduced * size
    pickle.dumps(list(model[0]._forward_hooks.values()))

    txl.set_mesh(None)
    model.to("cpu")(torch.ones(8, 256))
    txl.set_mesh(jax.make_mesh((4,), ("data",), devices=jax.devices()[4:]), batch="data")
    txl.fully_shard(looped)(torch.ones(8, 256).to("jax")).sum().item()


OPTIONS = {
    "dropout": (0.1, _adamw, {}),
    "two parts": (0.0, _adamw, {"parts": 2}),
    "sgd": (0.0, lambda model: torch.optim.SGD(model.parameters(), lr=0.1), {}),
    "adam": (0.0, lambda model: torch.optim.Adam(model.parameters(), foreach=False), {}),
    "fused adam": (0.0, lambda model: torch.optim.Adam(model.parameters(), fused=True), {}),
    "autocast": (0.0, _adamw, {"autocast": True}),
    "checkpoint": (0.0, _adamw, {"checkpoint": True}),
}


def _first_gradients(mode: str | None) -> dict[str, torch.Tensor]:
    """Under autocast, of each weight of a product."""
    model = _model(mode)
    tokens = torch.randint(VOCABULARY, (BATCH, LENGTH), generator=torch.Generator().manual_seed(1))
    x = tokens.to("jax")
    with torch.autocast("jax", torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten())
    loss.backward()
    found = {name: p.grad.cpu() for name, p in model.named_parameters()}
    return {name: x for name, x in found.items() if (x == x.bfloat16()).all()}


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["dp", "fsdp"])
def test_under_autocast_few_gradients_are_rounded_elsewhere(mode: str):
    expected, found = _first_gradients(None), _first_gradients(mode)
    assert len(expected) > 20
    for name, x in expected.items():
        difference = (x - found[name]).abs()
        assert (difference > 0).sum() <= max(2, x.numel() // 500), name
        # One unit of the last place, at most, and what float32 loses where terms cancel.
        assert (difference <= x.abs() / 128 + 1e-6 * x.abs().max()).all(), name


@pytest.mark.nightly
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("mode", MODES)
def test_an_option_trains_as_on_one_device(mode: str, option: str):
    dropout, optimizer_of, options = OPTIONS[option]
    expected, donated = _on_one_device(option)
    model = _model(mode, dropout)
    optimizer = optimizer_of(model)
    txl.sync()
    debug.reset_metrics()
    losses = _losses(model, optimizer, **options)
    # Sums in another order, of parts, are rounded to another bfloat16: in the first step of "dp",
    # 1 to 3 elements of a weight's gradient, by one unit. Which, depends on the processor.
    assert losses == pytest.approx(expected, abs=1e-3 if option == "autocast" else 1e-5)
    assert debug.metrics()["compiles"] == 1
    # Parameters with their states; the fused kernel has its counters of steps on the device, too.
    arrays = {"sgd": 1, "fused adam": 4}.get(option, 3)
    assert _num_donated() == donated == arrays * len(list(model.parameters()))
