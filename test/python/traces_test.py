"""Traces of torch.profiler and of jax.profiler name the ops of torch."""

from pathlib import Path

import jax
import pytest
import torch

import torch_xla_lite
from torch_xla_lite.compiler import compilation_cache
from torch_xla_lite.debug import recorded_lines


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


def names_in_a_trace_of_jax(model: torch.nn.Module, folder: Path) -> bytes:
    x = torch.randn(3, 4).to("jax")
    step(model, x)
    with jax.profiler.trace(str(folder)):
        step(model, x)
    (file,) = folder.glob("**/*.xplane.pb")
    return file.read_bytes()


@pytest.fixture
def compiled_here(monkeypatch) -> None:
    """What is on disk may be of a test with other names."""
    monkeypatch.setattr(compilation_cache, "key", lambda *_: None)
    torch_xla_lite._XLAC.clear_cache()


@pytest.mark.usefixtures("compiled_here")
def test_a_trace_of_jax_has_the_op_of_each_operation_of_xla(model, tmp_path):
    trace = names_in_a_trace_of_jax(model, tmp_path)
    for name in (b"aten::linear/dot_general", b"aten::tanh/tanh", b"aten::linear_backward/"):
        assert name in trace


@pytest.mark.usefixtures("compiled_here")
def test_a_trace_of_jax_has_the_modules_if_they_are_remembered(tmp_path):
    inner = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh())
    model = torch.nn.Sequential(inner, torch.nn.ModuleList([torch.nn.Linear(8, 2)])[0]).to("jax")
    torch_xla_lite._XLAC.set_ir_debug(recorded_lines.describe)
    try:
        trace = names_in_a_trace_of_jax(model, tmp_path)
    finally:
        torch_xla_lite._XLAC.set_ir_debug(None)
    for name in (
        b"aten::linear/Sequential.0.0/dot_general",
        b"aten::tanh/Sequential.0.1/tanh",
        b"aten::linear/Sequential.1/dot_general",
        b"aten::linear_backward/Sequential.0.0/",
        b"aten::tanh_backward/Sequential.0.1/",
        b"aten::linear_backward/Sequential.1/",
    ):
        assert name in trace
