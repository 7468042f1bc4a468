"""Traces of torch.profiler and of jax.profiler name the ops of torch."""

from pathlib import Path

import jax
import pytest
import torch

import torch_xla_lite
from torch_xla_lite import compilation_cache


def step(model: torch.nn.Module, x: torch.Tensor) -> float:
    model.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    return loss.item()


@pytest.fixture
def model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh()).to("jax")


def test_a_trace_of_torch_has_the_recorded_ops(model):
    x = torch.randn(3, 4).to("jax")
    step(model, x)
    with torch.profiler.profile() as profile:
        step(model, x)
    names = {event.key for event in profile.key_averages()}
    assert names >= {"aten::linear", "aten::tanh", "aten::linear_backward", "aten::item"}


def test_a_trace_of_jax_has_the_op_of_each_operation_of_xla(model, tmp_path, monkeypatch):
    monkeypatch.setattr(compilation_cache, "key", lambda description: None)
    torch_xla_lite._XLAC.clear_cache()
    x = torch.randn(3, 4).to("jax")
    step(model, x)
    with jax.profiler.trace(str(tmp_path)):
        step(model, x)
    (file,) = Path(tmp_path).glob("**/*.xplane.pb")
    trace = file.read_bytes()
    for name in (b"aten::linear/dot_general", b"aten::tanh/tanh", b"aten::linear_backward/"):
        assert name in trace
