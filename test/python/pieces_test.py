"""Loops in which something grows: what stays is planned, and results are those of the CPU."""

import pytest
import torch

from test.programs import generation
from test.python import tiers
from torch_xla_lite import debug

pytestmark = pytest.mark.needs("interpreter")


@pytest.fixture(autouse=True)
def _runs_as_by_default():
    with tiers.as_by_default():
        yield


@pytest.mark.parametrize("static", [True, False])
def test_a_text_is_that_of_the_cpu(static: bool):
    assert generation.run("jax", 24, static=static) == generation.run("cpu", 24, static=static)
    assert debug.metrics()["compiles"] == 0
    if static:
        # The first four graphs are whole, and the fifth meets what stays for the first time.
        assert debug.metrics()["planned"] >= 24 - 4 - 2


def test_a_padded_batch_of_another_length_updates_parameters_by_a_plan():
    def train(device: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        layers = [torch.nn.Linear(48, 48) for _ in range(16)]
        model = torch.nn.Sequential(*layers).to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, foreach=False)
        for length in range(3, 15):
            optimizer.zero_grad()
            model(torch.ones(length, 48, device=device)).tanh().sum().backward()
            optimizer.step()
        return [parameter.detach().cpu() for parameter in model.parameters()]

    torch.testing.assert_close(train("jax"), train("cpu"))
    assert debug.metrics()["planned"] > 0
