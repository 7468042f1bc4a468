"""Numbers that change from step to step cause no compilation."""

from unittest import mock

import pytest
import torch
from jax import lax

import torch_xla_lite
from torch_xla_lite.compiler import compilation_cache


def compiles_of(loop, steps=10, warm_up=3):
    """Graphs compiled in `steps` calls of `loop(index)` after `warm_up` calls."""
    for index in range(warm_up):
        loop(index)
    torch_xla_lite.debug.reset_metrics()
    for index in range(warm_up, warm_up + steps):
        loop(index)
    metrics = torch_xla_lite.debug.metrics()
    assert metrics["executions"] >= steps
    return metrics["compiles"]


READS = {
    "a row": lambda x, i: x[i] * 1,
    "a slice": lambda x, i: x[i : i + 4].sum(),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_reading_at_another_place(read):
    x = torch.arange(32)
    y = x.jax()
    assert compiles_of(lambda i: read(y, i).item()) == 0
    assert read(y, 7).item() == read(x, 7).item()


def test_writing_at_another_place():
    x = torch.zeros(32, device="jax")

    def write(index):
        x[index] = float(index)
        torch_xla_lite.sync()

    assert compiles_of(write) == 0
    assert x[:4].tolist() == [0, 1, 2, 3]


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("numbers", [(0, 1, 7), (0.0, 1.5, -0.0), (False, True, False)])
@pytest.mark.parametrize("like", [False, True])
def test_full_of_zeros_and_then_of_another_number(numbers, like):
    x = torch.ones(7, device="jax")
    full = torch.full_like if like else lambda x, number: torch.full((7,), number, device="jax")
    results = [full(x, number) for number in numbers]
    assert [result[0].item() for result in results] == list(numbers)
    assert [result.signbit().any().item() for result in results] == [
        torch.tensor(number).signbit().item() for number in numbers
    ]


@pytest.mark.few_daily(3)
@pytest.mark.parametrize("exponent", [-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4])
def test_a_common_exponent_needs_no_power(exponent, monkeypatch):
    monkeypatch.setattr(compilation_cache, "key", lambda *_: None)
    x = torch.tensor([-1.5, 0.0, 0.5, 3.0])
    powers = x.jax() ** exponent
    with mock.patch.object(lax, "pow", side_effect=AssertionError("a power")):
        torch.testing.assert_close(powers.cpu(), x**exponent, equal_nan=True)


OPERATIONS = {
    "add": lambda x, number: x + number,
    "mul": lambda x, number: x * number,
    "alpha": lambda x, number: x.sub(x, alpha=number),
    "clamp": lambda x, number: x.clamp(min=number),
    "masked_fill": lambda x, number: x.masked_fill(x > 1, number),
    "full_like": lambda x, number: torch.full_like(x, number),
    "greater": lambda x, number: x > number,
    "addcmul": lambda x, number: torch.addcmul(x, x, x, value=number),
    "power": lambda x, number: x**number,
    "integer power": lambda x, number: x ** int(number),
    "flag at the end": lambda x, number: torch.full((2,), number == 15.5, device=x.device),
}


@pytest.mark.few_daily(6)
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_another_scalar(operation):
    x, results = torch.full((4,), 2.0), []
    y = x.jax()
    assert compiles_of(lambda i: results.append(operation(y, 3.5 + i).sum().item())) == 0
    expected = [operation(x, 3.5 + i).sum().item() for i in range(13)]
    assert results == pytest.approx(expected, rel=1e-5)


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize("foreach", [False, True], ids=["loop", "foreach"])
def test_a_learning_rate_that_changes_each_step(optimizer, foreach):
    weight = torch.nn.Parameter(torch.ones(3, device="jax"))
    steps = optimizer([weight], lr=0.1, foreach=foreach)
    schedule = torch.optim.lr_scheduler.ExponentialLR(steps, 0.9)

    def step(index):
        steps.zero_grad()
        loss = (weight * weight).sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([weight], 1.0 + index)
        steps.step()
        schedule.step()
        loss.item()

    assert compiles_of(step) == 0


@pytest.mark.few_daily(1)
@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.1, fused=True),
        lambda p: torch.optim.Adam(p, 0.1, weight_decay=0.1, fused=True),
        lambda p: torch.optim.AdamW(p, 0.1, fused=True),
        lambda p: torch.optim.Adagrad(p, 0.1, lr_decay=0.1, fused=True),
    ],
    ids=["SGD", "Adam", "AdamW", "Adagrad"],
)
def test_settings_of_a_fused_optimizer_that_change_each_step(optimizer):
    pairs = [
        (p, optimizer([p]))
        for p in (torch.nn.Parameter(torch.ones(3, device=device)) for device in ("jax", "cpu"))
    ]
    fallbacks = torch_xla_lite.debug.metrics()["fallbacks"]

    def step(index):
        for parameter, steps in pairs:
            for group in steps.param_groups:
                for name, value in group.items():
                    if isinstance(value, float) and value:
                        group[name] = value * 0.9
                if "betas" in group:
                    group["betas"] = tuple(beta * 0.9 for beta in group["betas"])
            parameter.grad = torch.ones_like(parameter) * (1 + index)
            steps.step()
        torch_xla_lite.sync()

    assert compiles_of(step) == 0
    assert torch_xla_lite.debug.metrics()["fallbacks"] == fallbacks
    torch.testing.assert_close(pairs[0][0].detach().cpu(), pairs[1][0].detach())


def test_another_seed():
    def draw(index):
        torch.manual_seed(index)
        return torch.rand(4, device="jax").tolist()

    assert compiles_of(draw) == 0


def test_another_shape_compiles_once():
    sizes = [8, 16, 8, 16, 32, 8]
    torch_xla_lite.debug.reset_metrics()
    for size in sizes:
        (torch.zeros(size).to("jax") + 1).sum().item()
    assert torch_xla_lite.debug.metrics()["compiles"] == len(set(sizes))
