"""Loops in which something grows: what stays is planned, and results are those of the CPU."""

import pytest

from test.models import libraries
from test.programs import padded, texts
from test.python import tiers
from torch_xla_lite import debug

pytestmark = pytest.mark.needs("interpreter")


@pytest.fixture(autouse=True)
def _runs_as_by_default():
    with tiers.as_by_default():
        yield


@pytest.mark.parametrize("cache", ["static", "dynamic"])
def test_a_text_is_that_of_the_cpu(cache: str):
    libraries.require("transformers")
    text, expected = (texts.run(on, 24, cache_implementation=cache) for on in ("jax", "cpu"))
    assert text == expected
    assert debug.metrics()["compiles"] == 0
    if cache == "static":
        # The first four graphs are whole, and the fifth meets what stays for the first time.
        assert debug.metrics()["planned"] >= 24 - 4 - 2


def test_a_padded_batch_of_another_length_updates_parameters_by_a_plan():
    assert padded.run("jax", 16) == pytest.approx(padded.run("cpu", 16), rel=1e-4)
    assert debug.metrics()["planned"] > 0
