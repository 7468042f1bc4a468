"""The package of docs/extensions.md, with C++ and CUDA code, built against an installed
torch_xla_lite."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from test.extension.installed import WITH_CUDA, Installed
from torch_xla_lite.utils.cpp_extension import find_nvcc

# Compiling an extension takes as long as all other tests of a layer.
pytestmark = pytest.mark.nightly

_PROGRAM = """
import importlib.util, json
from jaxlib import xla_client

# What the CUDA plugin of jax does when it is loaded: it asks for the handlers of its platform.
for_cuda = []
xla_client.register_custom_call_handler("CUDA", lambda name, *_: for_cuda.append(name))

import torch, torch_xla_lite, mine
from torch_xla_lite import debug

x = torch.tensor([1.0, -3.0], device="jax")
debug.reset_metrics()
facts = {
    "values": {str(y.dtype): mine.softsign(y).tolist() for y in (x, x.double())},
    "attribute": [mine.softsign(y, 3).tolist() for y in (x, x.cpu())],
    "fallbacks": debug.metrics()["fallbacks"],
}
debug.reset_metrics()
(mine.softsign(x * 2) + 1).tolist()
facts["together"] = [debug.metrics()[name] for name in ("recorded_ops", "executions")]
try:
    mine.softsign(x.half())
except TypeError as error:
    facts["refused"] = str(error)
facts["files"] = [torch_xla_lite.__file__, importlib.util.find_spec("mine._handlers").origin]
facts["for CUDA"] = for_cuda
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An environment in which pip has built and installed the package."""
    installed = Installed(tmp_path_factory.mktemp("installed") / "environment")
    folder = tmp_path_factory.mktemp("package")
    file = r"^```\w+\n(?:#|//) (\S+\.\w+)\n(.*?)^```$"
    for name, content in re.findall(file, Path("docs/extensions.md").read_text(), re.M | re.S):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    installed.install(".", cwd=folder)
    return installed


@pytest.fixture(scope="module")
def facts(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    program = tmp_path_factory.mktemp("elsewhere") / "program.py"
    program.write_text(_PROGRAM)
    return installed.facts(program)


def test_both_packages_are_the_installed_ones(installed: Installed, facts: dict[str, Any]):
    assert all(Path(file).is_relative_to(installed.site) for file in facts["files"])


def test_the_handler_computes_each_dtype(facts: dict[str, Any]):
    assert facts["values"] == {"torch.float32": [0.5, -0.75], "torch.float64": [0.5, -0.75]}
    assert facts["fallbacks"] == {}


def test_an_attribute_reaches_the_handler(facts: dict[str, Any]):
    assert facts["attribute"] == [pytest.approx([0.25, -0.3])] * 2


def test_it_is_one_op_in_the_graph_of_its_neighbours(facts: dict[str, Any]):
    assert facts["together"] == [3, 1]


def test_a_wrong_dtype_is_refused_when_the_op_is_called(facts: dict[str, Any]):
    assert facts["refused"] == "mine::softsign: expected float32 or float64, found torch.float16"


def test_where_there_is_nvcc_the_cuda_half_is_built_without_a_gpu(
    installed: Installed, facts: dict[str, Any]
):
    if not WITH_CUDA or find_nvcc() is None:
        pytest.skip("it is built with -m nightly, where there is nvcc")
    (library,) = (installed.site / "mine").glob("_cuda_handlers*.so")
    command = ["readelf", "--wide", "--sections", "--dynamic", str(library)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert ".nv_fatbin" in found
    assert not [line for line in found.splitlines() if "NEEDED" in line and "cuda" in line]
    assert facts["for CUDA"] == ["mine.softsign"]
