"""Programs of the kinds that people have do on device jax what they do on the CPU.

Short runs compile nothing: the model of costs says that it would not pay. What they cost by that
model is listed, so that ops that are recorded needlessly are noticed. The nightly ones are as long
as a first try, and compile the same graphs in each run.
"""

import warnings
from types import ModuleType

import pytest

from bazel.pytest_plugin import mostly_nightly
from test.models import libraries
from test.programs import (
    cnn,
    custom_op,
    dcgan,
    gaussian_process,
    language,
    mixed_precision,
    physics,
    plots,
    profiled,
    prompt,
    reinforce,
    resume,
    trainer,
    vae,
)
from test.python import tiers
from torch_xla_lite import _XLAC, debug
from torch_xla_lite.compiler import costs

pytestmark = pytest.mark.needs("interpreter")

_LIBRARIES = {plots: "matplotlib", prompt: "IPython", trainer: "transformers"}

# Program -> steps of a short run, and the microseconds that they cost by the model.
PROGRAMS = {
    cnn: (3, 1184),
    custom_op: (4, 21),
    dcgan: (2, 1296),
    gaussian_process: (3, 302),
    language: (3, 1146),
    mixed_precision: (3, 275),
    physics: (2, 1117),
    plots: (2, 3),
    profiled: (3, 7),
    prompt: (3, 4),
    reinforce: (2, 343),
    resume: (4, 152),
    trainer: (3, 2926),
    vae: (3, 220),
}
DAILY = [cnn, language, mixed_precision, reinforce, vae]


@pytest.fixture(autouse=True)
def _runs_as_by_default():
    with tiers.as_by_default():
        yield


def name_of(program: ModuleType) -> str:
    return program.__name__.rpartition(".")[2]


def run(program: ModuleType, device: str, steps: int) -> list[float]:
    if program in _LIBRARIES:
        libraries.require(_LIBRARIES[program])
    with warnings.catch_warnings():
        # Libraries warn of their own deprecations.
        warnings.simplefilter("ignore")
        return program.run(device, steps)


@pytest.mark.parametrize("program", mostly_nightly(PROGRAMS, DAILY), ids=name_of)
def test_a_short_run_compiles_nothing(program: ModuleType):
    steps, microseconds = PROGRAMS[program]
    expected = run(program, "cpu", steps)
    debug.reset_metrics()
    assert run(program, "jax", steps) == pytest.approx(expected, rel=2e-3, abs=1e-4)
    metrics = debug.metrics()
    assert metrics["interpretations"] > 0
    assert (metrics["executions"], metrics["fallbacks"]) == (0, {})
    # Other versions of torch and of the libraries have a few other ops.
    assert _XLAC.costs_so_far() == (pytest.approx(microseconds, rel=0.2), 0)


@pytest.mark.nightly
@pytest.mark.parametrize("program", mostly_nightly(PROGRAMS, [vae]), ids=name_of)
def test_each_run_decides_the_same(program: ModuleType):
    """Compilations cost a hundredth, as if the run were a hundred times as long."""
    table = costs.table()
    graph, kinds = table["graph"], table["kinds"]
    cheap = {name: [*kind[:-1], kind[-1] / 100] for name, kind in kinds.items()}
    costs.use({"graph": [graph[0] / 100, 0, 0, 0, 1e30, 0], "kinds": cheap})
    try:
        first = run(program, "jax", 20)
        counts = _counts()
        interpreted, compiled = _XLAC.costs_so_far()
        _XLAC.clear_cache()
        debug.reset_metrics()
        second = run(program, "jax", 20)
    finally:
        costs.register()
    assert _counts() == counts
    # What was compiled had cost as much before.
    assert compiled <= interpreted
    # Bit by bit, because a model decides and not a clock.
    assert second == first


def _counts() -> tuple:
    metrics = debug.metrics()
    programs = metrics["compiles"] + metrics["loads"]
    return metrics["interpretations"], programs, metrics["executions"], _XLAC.costs_so_far()
