"""scripts/accelerator.py: one JSON of what a device does, and the page that is made from it."""

import json
import os
import shutil
import sys
from pathlib import Path

import jax
import pytest

from bazel import pytest_plugin
from scripts import accelerator

_CASES = """
import pytest
def test_passes(): pass
def test_fails(): assert False
@pytest.mark.needs("interpreter")
def test_needs_the_interpreter(): pass
@pytest.mark.needs("rounding")
def test_needs_the_rounding_of_the_cpu_that_is_here(): pass
"""


def test_the_page_is_made_from_the_results():
    results = json.loads((accelerator.ROOT / accelerator.RESULTS).read_text())
    assert accelerator.section(results) in (accelerator.ROOT / accelerator.PAGE).read_text()


def test_on_a_gpu_what_needs_a_cpu_is_skipped_by_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    with pytest.raises(pytest.skip.Exception, match="needs the CPU's rounding"):
        pytest_plugin.require("rounding")


@pytest.mark.parametrize("package", ["jax_plugins", "libtpu", "no package"])
def test_compilers_for_accelerators_are_given_no_flags(
    package: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pytest_plugin, "find_spec", lambda name: name == package)
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.delenv("XLA_FLAGS")
    pytest_plugin.pytest_configure(request.config)
    assert ("XLA_FLAGS" in os.environ) == (package == "no package")


@pytest.mark.nightly
def test_a_small_run_on_a_cpu_that_stands_for_an_accelerator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(pytest_plugin.AS_AN_ACCELERATOR, "1")
    shutil.copy(accelerator.ROOT / "test/conftest.py", tmp_path)
    (tmp_path / "some_test.py").write_text(_CASES)
    (tmp_path / "ends_test.py").write_text("import os\n\ndef test_ends():\n    os._exit(1)\n")
    files, limits = sorted(tmp_path.glob("*_test.py")), dict.fromkeys(accelerator.LIMITS, 300)
    results = accelerator.measure(files, sys.executable, limits, models=1)
    tests = results["tests"]
    assert (tests["cases"], tests["passed"]) == (5, 2)
    assert tests["skipped"] == {"needs the interpreter": 1}
    ended, fails = tests["failed"]
    assert ended.endswith("ends_test.py (its process ended)")
    assert fails.endswith("some_test.py::test_fails")
    text = accelerator.section(json.loads(json.dumps(results)))
    for part in (
        "2 of 5 cases pass",
        "1 skipped: needs the interpreter",
        fails,
        "of XLA: 10 classes",
    ):
        assert part in text
    assert results["digits"]["accuracy"] > 0.9
    ((row,), _) = results["speed"]["sections"].values()
    assert row["values"].keys() == {"ours"}
