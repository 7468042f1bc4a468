"""The digits example: the same training on both devices, and the table at its end."""

import io

import pytest
from rich.console import Console

from test.python import programs
from torch_xla_lite.examples import digits

# Trained once; the tests check different properties of the same two runs.
EPOCHS = 2


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


@pytest.mark.nightly
@pytest.mark.parametrize("device", ["jax", "cpu"])
def test_the_digits_are_recognised(device):
    assert digits.train(device, epochs=10).accuracy >= 0.97


def test_nothing_falls_back(on_jax):
    assert on_jax.fallbacks == {}


def test_few_graphs_are_compiled(on_jax):
    # The first step, in which the optimizer creates its state; later steps; the evaluation.
    assert on_jax.compiles <= 5


def test_the_table_has_a_row_for_each_device():
    result = digits.Result(losses=[], accuracy=1.0, step_ms=1.0, compiles=1, fallbacks={})
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(digits.table({"jax": result, "cpu": result}))
    assert [line.split()[1] for line in console.export_text().splitlines()[3:-1]] == ["jax", "cpu"]


@pytest.mark.nightly
def test_without_rich_the_error_names_what_to_install():
    program = """
import runpy, sys
sys.modules["rich"] = None
runpy.run_module("torch_xla_lite.examples.digits", run_name="__main__")
"""
    done = programs.run(program)
    assert done.returncode == 1
    problem, remedy = done.stderr.splitlines()[-2:]
    assert problem.endswith("The examples need rich, which is not installed.")
    assert remedy.endswith("python -m pip install 'torch_xla_lite[examples]'")


@pytest.mark.nightly
def test_the_script_prints_its_table_at_the_end():
    module = "torch_xla_lite.examples.digits"
    done = programs.call(*programs.python(), "-m", module, "--device", "jax")
    for column in ("device", "test accuracy", "ms per step", "graphs compiled", "fell back"):
        assert column in done.stdout
    assert " none " in done.stdout.splitlines()[-2]
