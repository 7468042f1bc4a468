"""A checkpoint of one mesh is restored to others, with the same bits."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

import torch_xla_lite as txl
from test.mesh import devices  # noqa: F401  before jax starts
from torch_xla_lite.mesh.sharding import spec_of

import jax  # isort: skip

pytest.importorskip("orbax.checkpoint")

MESHES = {"one device": None, "8": ((8,), ("data",)), "2x4": ((2, 4), ("data", "model"))}


@pytest.fixture(autouse=True)
def _without_mesh() -> Iterator[None]:
    yield
    txl.set_mesh(None)


def _model(mesh: str, seed: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    txl.set_mesh(None)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Linear(8, 8)).to(torch.bfloat16)
    model[2].float()
    model[2].weight = nn.Parameter(model[2].weight.data)
    if MESHES[mesh] is None:
        model.to("jax")
    else:
        txl.set_mesh(jax.make_mesh(*MESHES[mesh]))
        rules = [(r"2\.weight", (None, "model"))] if mesh == "2x4" else []
        txl.shard_module(model, rules, fsdp="data")
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def _step(model: nn.Module, optimizer: torch.optim.Optimizer) -> float:
    optimizer.zero_grad()
    x = torch.linspace(-1, 1, 64).view(4, 16).to("jax", torch.bfloat16)
    loss = model[2](model[1](model[0](x)).float()).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def _bits(model: nn.Module) -> list[list]:
    return [tensor.cpu().tolist() for tensor in model.state_dict().values()]


@pytest.mark.parametrize(
    ("mesh", "other"),
    [
        ("8", "one device"),
        pytest.param("2x4", "8", marks=pytest.mark.nightly),
        pytest.param("one device", "2x4", marks=pytest.mark.nightly),
        pytest.param("8", "2x4", marks=pytest.mark.nightly),
    ],
)
def test_a_checkpoint_is_restored_to_another_mesh(mesh: str, other: str, tmp_path: Path):
    model, optimizer = _model(mesh, 0)
    _step(model, optimizer)
    drawn = torch.rand(3, device="jax")
    txl.save_checkpoint(tmp_path / "one", model, optimizer, step=1)
    bits, after = _bits(model), torch.rand(3, device="jax").tolist()
    losses = [_step(model, optimizer) for _ in range(2)]

    model, optimizer = _model(other, 1)
    assert _bits(model) != bits
    assert txl.load_checkpoint(tmp_path / "one", model, optimizer) == 1
    assert _bits(model) == bits
    assert torch.rand(3, device="jax").tolist() == after != drawn.tolist()
    assert [_step(model, optimizer) for _ in range(2)] == pytest.approx(losses, rel=1e-2)
    for parameter in model.parameters():
        assert spec_of(optimizer.state[parameter]["exp_avg"]) == spec_of(parameter)
    whole = txl.full_state_dict(model)
    assert list(whole) == list(model.state_dict())
    assert all(tensor.is_cpu for tensor in whole.values())


def test_what_does_not_fit_is_refused_and_changes_nothing(tmp_path: Path):
    model, optimizer = _model("one device", 0)
    txl.save_checkpoint(tmp_path / "one", model, optimizer)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        txl.save_checkpoint(tmp_path / "one", model)
    txl.save_checkpoint(tmp_path / "one", model, optimizer, overwrite=True)
    with pytest.raises(FileNotFoundError, match="two"):
        txl.load_checkpoint(tmp_path / "two", model)
    other = nn.Sequential(nn.Linear(16, 4), nn.Linear(4, 2)).to("jax")
    before = _bits(other)
    with pytest.raises(ValueError, match=r"lacks 1\.weight|also has|0\.bias is bfloat16"):
        txl.load_checkpoint(tmp_path / "one", other)
    assert _bits(other) == before
    with pytest.raises(ValueError, match=r"groups of \[1\] parameters, and the checkpoint \[6\]"):
        sgd = torch.optim.SGD([model[0].weight])
        txl.load_checkpoint(tmp_path / "one", model, sgd)
