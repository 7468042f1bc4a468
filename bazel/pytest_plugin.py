"""What all tests of this project share, below Bazel (pytest_runner.py) and below plain pytest.

test/conftest.py loads it for the latter, so an editor's test button runs what Bazel runs:
- variables that the tests need, for this process and those that it starts;
- random numbers of hypothesis and torch with the same seed each time, and another one in each run
  of `bazel test --runs_per_test=20`;
- `@pytest.mark.nightly` for long cases, by `few_daily(4)` for all cells of a matrix but four: they
  run with `-m nightly`, or by name. Below Bazel `x_nightly_test` has those of `x_test`;
- `@pytest.mark.needs("kernels")` for what cannot pass on a GPU or TPU, where it is skipped.
"""

import itertools
import os
import re
import sys
from collections.abc import Collection, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

_VARIABLES = {
    # One torch thread in each test: its threads and XLA's would compete for the same cores.
    "OMP_NUM_THREADS": "1",
    # No test depends on the user's programs, or writes them. Tests of the cache switch it on.
    "TORCH_XLA_LITE_COMPILATION_CACHE": "0",
    # Lowerings are compared with torch. Tests of the interpreter switch it on.
    "TORCH_XLA_LITE_COMPILE": "first",
}

# Before any test imports torch. Bazel keeps a result until an input changes, so these and the seed
# are the same for each run.
for _name, _value in _VARIABLES.items():
    os.environ.setdefault(_name, _value)

# By day LLVM optimises nothing, and XLA emits fusions without MLIR: 53 ms a small graph, not 123.
_COMPILES_FAST = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"

# What a test may need of the device, and an accelerator lacks.
_NEEDS = {
    "interpreter": "the interpreter",
    "kernels": "torch's kernels in a graph",
    "rounding": "the CPU's rounding",
    "cpu": "a CPU as the device",
}
# By this variable torch's kernels may not read the CPU's memory either (test/conftest.py).
AS_AN_ACCELERATOR = "TEST_AS_AN_ACCELERATOR"

_SEED = int(os.environ.get("TEST_RANDOM_SEED", "0"))


def mostly_nightly(values: Iterable[Any], daily: Collection[Any]) -> list[Any]:
    """Values for `parametrize`, of which those that are not among `daily` are marked nightly."""
    marks = {False: pytest.mark.nightly, True: ()}
    return [pytest.param(value, marks=marks[value in daily]) for value in values]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    nightly = config.option.markexpr == "nightly"
    os.environ["NIGHTLY_TESTS"] = "1" if nightly else "0"  # For tests that choose at their import.
    # --config=nightly unsets the variable. XLA for GPUs reads it, too, and its kernels then access
    # memory that they do not own.
    if not (nightly or find_spec("jax_plugins") or find_spec("libtpu")):
        os.environ.setdefault("XLA_FLAGS", _COMPILES_FAST)
    config.addinivalue_line("markers", "nightly: runs with `-m nightly`, or by its name")
    config.addinivalue_line("markers", "few_daily(count): all other cases of the test are nightly")
    config.addinivalue_line("markers", f"needs(what): skipped on devices without; {[*_NEEDS]}")
    if config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = str(_SEED)  # A 0 would count as none.


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for _, cases in itertools.groupby(items, lambda item: item.nodeid.partition("[")[0]):
        matrix = [item for item in cases if item.get_closest_marker("nightly") is None]
        mark = matrix[0].get_closest_marker("few_daily") if matrix else None
        for i, item in enumerate(matrix if mark else ()):
            if i * mark.args[0] % len(matrix) >= mark.args[0]:  # Those that stay are far apart.
                item.add_marker("nightly")
    option = config.option
    if option.markexpr or option.keyword or any("::" in argument for argument in config.args):
        return
    kept = [item for item in items if item.get_closest_marker("nightly") is None]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path) -> None:
    # Importing torch takes a second, so this is done only for the files that do.
    if re.search(r"^(import|from) torch", module_path.read_text(), re.MULTILINE):
        import torch

        torch.default_generator.manual_seed(_SEED)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        require(*mark.args)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.manual_seed(_SEED)


def require(need: str) -> None:
    """Skips the test that runs if the device lacks what it needs."""
    import jax

    is_cpu = jax.default_backend() == "cpu"
    if not is_cpu or (need in ("interpreter", "kernels") and AS_AN_ACCELERATOR in os.environ):
        pytest.skip(f"needs {_NEEDS[need]}")
