"""Packages with C++ code of their own, built and run against an installed torch_xla_lite."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from test.extension.installed import Installed

_PROGRAM = """
import importlib.util, json
import torch, torch_xla_lite, xla_isotonic
from torch_xla_lite import debug

torch.manual_seed(0)
values = torch.randn(3, 50) + torch.linspace(0, 2, 50)
weights = torch.randn(3, 50)


def fitted_and_gradient(device):
    leaf = values.clone().to(device).requires_grad_()
    fitted = xla_isotonic.fit(leaf)
    (fitted * weights.to(device)).sum().backward()
    return fitted.tolist(), leaf.grad.tolist()


on_cpu = fitted_and_gradient("cpu")
torch_xla_lite.sync()
debug.reset_metrics()
on_jax = fitted_and_gradient("jax")
together = debug.metrics()
values_on_jax = values.to("jax")
debug.reset_metrics()
(xla_isotonic.fit(values_on_jax * 2) + 1).tolist()
alone = debug.metrics()
try:
    xla_isotonic.fit(values_on_jax.double())
    refused = ""
except Exception as error:
    refused = str(error)
small = torch.tensor([1.0, 3.0, 2.0, 4.0]).to("jax").requires_grad_()
fitted = xla_isotonic.fit(small)
(fitted * torch.tensor([1.0, 2.0, 4.0, 8.0]).to("jax")).sum().backward()
print(json.dumps({
    "cpu": on_cpu,
    "jax": on_jax,
    "small": fitted.tolist(),
    "small gradient": small.grad.tolist(),
    "together": together,
    "alone": alone,
    "refused": refused,
    "library": importlib.util.find_spec("xla_isotonic._handlers").origin,
    "bridge": torch_xla_lite.__file__,
}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed") / "environment")


@pytest.fixture(scope="module")
def facts(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the example says after pip has built and installed it."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree("test/extension/example", folder / "example")
    installed.install(".", cwd=folder / "example")
    program = folder / "program.py"
    program.write_text(_PROGRAM)
    return installed.facts(program)


def _flat(rows: list[list[float]]) -> list[float]:
    return [value for row in rows for value in row]


def test_both_packages_are_the_installed_ones(installed: Installed, facts: dict[str, Any]):
    for file in (facts["library"], facts["bridge"]):
        assert Path(file).is_relative_to(installed.site)


def test_the_op_does_what_it_is_for(facts: dict[str, Any]):
    assert facts["small"] == [1, 2.5, 2.5, 4]


def test_a_gradient_is_shared_by_what_has_one_value(facts: dict[str, Any]):
    assert facts["small gradient"] == [1, 3, 3, 8]


def test_its_values_are_those_of_the_cpu(facts: dict[str, Any]):
    assert _flat(facts["jax"][0]) == pytest.approx(_flat(facts["cpu"][0]), abs=1e-4)


def test_its_gradient_is_that_of_the_cpu(facts: dict[str, Any]):
    assert _flat(facts["jax"][1]) == pytest.approx(_flat(facts["cpu"][1]), abs=1e-4)


def test_it_is_one_op_of_the_graph_of_its_neighbours(facts: dict[str, Any]):
    assert (facts["alone"]["recorded_ops"], facts["alone"]["executions"]) == (3, 1)


def test_no_op_of_it_falls_back_to_the_cpu(facts: dict[str, Any]):
    assert facts["together"]["fallbacks"] == {}


def test_what_it_refuses_it_refuses_when_it_is_called(facts: dict[str, Any]):
    assert "xla_isotonic takes rows of float32" in facts["refused"]


_PEEK_SETUP = """
from setuptools import setup
from torch_xla_lite.utils.cpp_extension import XLAExtension

setup(name="peek", ext_modules=[XLAExtension("peek", ["peek.cc"], uses_torch=True)])
"""

_PEEK_SOURCE = """
#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"

extern "C" long RecordedOps() {
  return torch_xla_lite::runtime::Runtime::Get().counters().recorded_ops;
}

extern "C" long Elements() {
  return torch_xla_lite::tensor::ShapeOf(at::kFloat, {2, 3}, "peek")->NumElements();
}
"""

_PEEK_PROGRAM = """
import ctypes, glob, json, os
import torch, torch_xla_lite

(torch.ones(2, device="jax") + 1).tolist()
(file,) = glob.glob(os.path.abspath("peek*.so"))
peek = ctypes.CDLL(file)
print(json.dumps({
    "file": file,
    "recorded": [peek.RecordedOps(), torch_xla_lite.debug.metrics()["recorded_ops"]],
    "elements": peek.Elements(),
}))
"""


@pytest.fixture(scope="module")
def peek(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a library with our public headers says, built in place and loaded from there."""
    folder = tmp_path_factory.mktemp("peek")
    (folder / "setup.py").write_text(_PEEK_SETUP)
    (folder / "peek.cc").write_text(_PEEK_SOURCE)
    process = installed.run("setup.py", "build_ext", "--inplace", cwd=folder)
    assert process.returncode == 0, process.stdout + process.stderr
    (folder / "program.py").write_text(_PEEK_PROGRAM)
    return installed.facts(folder / "program.py")


def test_c_plus_plus_code_of_others_sees_the_runtime_that_runs(peek: dict[str, Any]):
    seen, counted = peek["recorded"]
    assert seen == counted > 0


def test_headers_that_include_torch_s_can_be_used(peek: dict[str, Any]):
    assert peek["elements"] == 6


def test_a_library_finds_the_bridge_beside_which_it_is_installed(
    installed: Installed, peek: dict[str, Any]
):
    file = shutil.copy(peek["file"], installed.site)
    # torch is not beside them in this environment, so it is loaded first.
    process = installed.run(
        "-c", f"import ctypes, torch; ctypes.CDLL({file!r})", cwd=installed.site
    )
    assert process.returncode == 0, process.stderr
