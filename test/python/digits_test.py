"""The digits example: the same training on both devices, and the table at its end."""

import subprocess

import pytest

from test.python import programs
from torch_xla_lite.examples import digits

# Trained once; the tests check different properties of the same two runs.
EPOCHS = 10


@pytest.fixture(scope="module")
def on_jax() -> digits.Result:
    return digits.train("jax", epochs=EPOCHS)


@pytest.fixture(scope="module")
def on_cpu() -> digits.Result:
    return digits.train("cpu", epochs=EPOCHS)


def test_the_losses_of_the_first_epoch_agree(on_jax, on_cpu):
    steps = len(on_jax.losses) // EPOCHS
    assert steps == 22
    assert on_jax.losses[:steps] == pytest.approx(on_cpu.losses[:steps], abs=1e-3)


def test_the_digits_are_recognised(on_jax, on_cpu):
    assert on_jax.accuracy >= 0.97
    assert on_cpu.accuracy >= 0.97


def test_nothing_falls_back(on_jax):
    assert on_jax.fallbacks == {}


def test_few_graphs_are_compiled(on_jax):
    # The first step, in which the optimizer creates its state; later steps; the evaluation.
    assert on_jax.compiles <= 5


@pytest.mark.nightly
def test_the_script_prints_its_table_at_the_end():
    done = subprocess.run(
        [*programs.python(), "-m", "torch_xla_lite.examples.digits", "--device", "jax"],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    for column in ("device", "test accuracy", "ms per step", "graphs compiled", "fell back"):
        assert column in done.stdout
    assert " none " in done.stdout.splitlines()[-2]
