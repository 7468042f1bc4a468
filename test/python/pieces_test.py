"""Loops in which something grows: what stays is planned, and results are those of the CPU."""

import pytest

from test.programs import generation, padded
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
    assert padded.run("jax", 16) == pytest.approx(padded.run("cpu", 16), rel=1e-4)
    assert debug.metrics()["planned"] > 0
