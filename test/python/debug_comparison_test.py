"""debug.compare() names the first operation whose results are not the CPU's."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import torch_xla_lite
from torch_xla_lite import _XLAC, debug
from torch_xla_lite.lowering.base import registry


def use(monkeypatch: pytest.MonkeyPatch, op: str, function: Callable) -> None:
    """Replaces the lowering of an op."""
    wrong = dataclasses.replace(registry.find(op), fn=function, wants_outs=False)
    monkeypatch.setitem(registry.LOWERINGS, op, wrong)


def step(x: torch.Tensor) -> torch.Tensor:
    y = x.exp()
    z = y.erf()  # this line
    return (z * 2).sum().tanh()


def test_an_op_with_a_wrong_lowering_is_named_with_its_line(monkeypatch: pytest.MonkeyPatch):
    use(monkeypatch, "aten::erf", lambda self: self * 0)
    found = debug.compare(step, torch.tensor([0.0, 1.0, 2.0]))
    assert found.op == "aten::erf"
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    line = next(i for i, text in enumerate(lines, 1) if text.endswith("# this line"))
    assert found.line == f"{__file__}:{line} in step"
    assert found.difference.startswith("3 of 3 elements differ, most at [")
    assert str(found) == f"aten::erf at {found.line}: {found.difference}"


def test_an_op_of_the_user_is_compared_with_its_kernel_for_the_cpu():
    @torch.library.custom_op("debug_comparison_test::third", mutates_args=())
    def third(x: torch.Tensor) -> torch.Tensor:
        return x / 3

    third.register_fake(lambda x: torch.empty_like(x))
    torch_xla_lite.register_lowering("debug_comparison_test::third")(lambda x: x / 4)
    found = debug.compare(lambda x: third(x + 1) * 2, torch.ones(2))
    assert (found.op, found.num_compared) == ("debug_comparison_test::third", 1)
    assert "0.5 here, 0.66" in found.difference


def test_a_step_of_training_has_no_difference():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(), nn.Linear(8, 2)).to("jax")
    optimizer = torch.optim.AdamW(model.parameters())

    def train(x: torch.Tensor) -> None:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

    found = debug.compare(train, torch.randn(5, 4))
    assert found.op == ""
    assert found.num_compared > 20
    assert str(found).startswith(f"no difference: {found.num_compared} operations")


def test_what_a_write_leaves_is_compared_and_the_argument_stays(monkeypatch: pytest.MonkeyPatch):
    use(monkeypatch, "aten::neg", lambda self: -2 * self)
    x = torch.ones(3, device="jax")
    found = debug.compare(lambda x: x.add_(1).neg_(), x)
    assert (found.op, found.num_compared) == ("aten::neg_", 1)
    assert x.tolist() == [1, 1, 1]


def test_an_error_of_the_function_is_raised_and_the_mode_is_what_it_was():
    def fails(x: torch.Tensor) -> None:
        raise KeyError(x.sum().item())

    before = _XLAC.set_compile_when("repeated")
    with pytest.raises(KeyError):
        debug.compare(fails, torch.ones(2))
    assert _XLAC.set_compile_when(before) == "repeated"
