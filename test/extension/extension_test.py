"""Packages with C++ and CUDA code, built and run against an installed torch_xla_lite."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from test.extension.installed import Installed
from torch_xla_lite.utils.cpp_extension import find_nvcc

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
    xla_isotonic.fit(values_on_jax.half())
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
    "options": {
        device: xla_isotonic.fit(
            torch.tensor([3.0, 1.0, 2.0, -1.0]).to(device), increasing=False, lower=0, upper=2
        ).tolist()
        for device in ("cpu", "jax")
    },
    "bridge": torch_xla_lite.__file__,
}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed") / "environment")


@pytest.fixture(scope="module")
def folder(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where programs can use the example: pip has built and installed it."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree("test/extension/example", folder / "example")
    installed.install(".", cwd=folder / "example")
    return folder


@pytest.fixture(scope="module")
def facts(installed: Installed, folder: Path) -> dict[str, Any]:
    """The output of a program that uses the example."""
    program = folder / "program.py"
    program.write_text(_PROGRAM)
    return installed.facts(program)


@pytest.fixture(scope="module")
def checks(installed: Installed, folder: Path) -> dict[str, Any]:
    """The results of torch's own checks for the example."""
    return installed.facts(Path(shutil.copy("test/extension/checks.py", folder)))


def _flat(rows: list[list[float]]) -> list[float]:
    return [value for row in rows for value in row]


def test_both_packages_are_the_installed_ones(installed: Installed, facts: dict[str, Any]):
    for file in (facts["library"], facts["bridge"]):
        assert Path(file).is_relative_to(installed.site)


def test_the_op_fits_a_non_decreasing_sequence(facts: dict[str, Any]):
    assert facts["small"] == [1, 2.5, 2.5, 4]


def test_values_of_one_block_share_their_gradient(facts: dict[str, Any]):
    assert facts["small gradient"] == [1, 3, 3, 8]


def test_its_values_are_those_of_the_cpu(facts: dict[str, Any]):
    assert _flat(facts["jax"][0]) == pytest.approx(_flat(facts["cpu"][0]), abs=1e-4)


def test_its_gradient_is_that_of_the_cpu(facts: dict[str, Any]):
    assert _flat(facts["jax"][1]) == pytest.approx(_flat(facts["cpu"][1]), abs=1e-4)


def test_it_is_one_op_in_the_graph_of_its_neighbours(facts: dict[str, Any]):
    assert (facts["alone"]["recorded_ops"], facts["alone"]["executions"]) == (3, 1)


def test_no_op_of_it_falls_back_to_the_cpu(facts: dict[str, Any]):
    assert facts["together"]["fallbacks"] == {}


def test_a_wrong_dtype_is_refused_when_the_op_is_called(facts: dict[str, Any]):
    assert "xla_isotonic takes rows of float32 or float64" in facts["refused"]


@pytest.mark.parametrize("device", ["cpu", "jax"])
def test_its_options_reach_the_kernel(facts: dict[str, Any], device: str):
    assert facts["options"][device] == [2, 1.5, 1.5, 0]


_DEVICES = pytest.mark.parametrize("device", ["cpu", "jax"])
_OPCHECK = ["test_schema", "test_autograd_registration", "test_faketensor"]


@pytest.mark.nightly
@_DEVICES
@pytest.mark.parametrize("op", ["fit float32", "fit float64", "fit with options", "pool"])
def test_it_passes_opcheck(checks: dict[str, Any], device: str, op: str):
    expected = dict.fromkeys([*_OPCHECK, "test_aot_dispatch_dynamic"], "SUCCESS")
    assert checks[device]["opcheck"][op] == expected


@pytest.mark.nightly
@_DEVICES
@pytest.mark.parametrize("check", ["gradcheck", "gradcheck with options", "gradgradcheck"])
def test_it_passes_gradcheck_in_float64(checks: dict[str, Any], device: str, check: str):
    assert checks[device][check] == "passed"


@pytest.mark.nightly
@_DEVICES
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_vmap_over_any_dimension_gives_what_a_loop_gives(
    checks: dict[str, Any], device: str, dim: int
):
    assert checks[device]["vmap"][dim] == checks[device]["loop"][dim]


@pytest.mark.nightly
@_DEVICES
def test_vmap_calls_the_op_once(checks: dict[str, Any], device: str):
    assert checks[device]["calls under vmap"] == 1


@pytest.mark.nightly
def test_float64_keeps_its_precision(checks: dict[str, Any]):
    # In float32 all three values are 1.
    assert checks["jax"]["precise"] == pytest.approx([1, 1 + 2e-12, 1 + 2e-12], rel=1e-15)


@pytest.mark.nightly
def test_torch_func_grad_names_what_torch_s_custom_op_lacks(checks: dict[str, Any]):
    # docs/extensions.md says so; the same message on both devices.
    assert "setup_context" in checks["cpu"]["func.grad"]
    assert checks["jax"]["func.grad"] == checks["cpu"]["func.grad"]


@pytest.fixture(scope="module")
def cuda_library(installed: Installed, folder: Path) -> Path:
    """The CUDA half of the example, which the other tests have loaded beside the CPU's."""
    if find_nvcc() is None:
        pytest.skip("there is no nvcc in CUDA_HOME, on PATH or in /usr/local/cuda")
    (library,) = (installed.site / "xla_isotonic").glob("_cuda_handlers*.so")
    return library


def _readelf(library: Path, *options: str) -> str:
    command = ["readelf", "--wide", *options, str(library)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_where_there_is_nvcc_the_cuda_half_is_built_without_a_gpu(cuda_library: Path):
    assert ".nv_fatbin" in _readelf(cuda_library, "--sections")


def test_the_cuda_half_defines_the_handlers_of_the_cpu_half(cuda_library: Path):
    symbols = _readelf(cuda_library, "--dyn-syms").split()
    assert {"XlaIsotonicFit", "XlaIsotonicPool"} <= set(symbols)


def test_the_cuda_half_needs_no_library_of_cuda_to_load(cuda_library: Path):
    needed = [line for line in _readelf(cuda_library, "--dynamic").splitlines() if "NEEDED" in line]
    assert needed
    assert not [line for line in needed if "cuda" in line]


@pytest.mark.nightly
def test_its_handlers_are_registered_for_cuda(cuda_library: Path, checks: dict[str, Any]):
    assert {"xla_isotonic.fit", "xla_isotonic.pool"} <= set(checks["registered for CUDA"])


_ATTRIBUTES_SETUP = """
from setuptools import setup
from torch_xla_lite.utils.cpp_extension import XLAExtension

setup(name="attributes", ext_modules=[XLAExtension("attributes", ["attributes.cc"])])
"""

_ATTRIBUTES_SOURCE = """
#include <string_view>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// Writes the attributes: the numbers, then each element of the string and of the lists.
ffi::Error Echo(int64_t i, double d, bool b, std::string_view text, ffi::Span<const int64_t> ints,
                ffi::Span<const double> doubles, ffi::Span<const uint8_t> bools,
                ffi::ResultBuffer<ffi::F64> result) {
  double* out = result->typed_data();
  *out++ = i;
  *out++ = d;
  *out++ = b;
  for (const char c : text) *out++ = c;
  for (const int64_t value : ints) *out++ = value;
  for (const double value : doubles) *out++ = value;
  for (const uint8_t value : bools) *out++ = value;
  return out == result->typed_data() + result->element_count()
             ? ffi::Error::Success()
             : ffi::Error::InvalidArgument("another number of values");
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(AttributesEcho, Echo,
                              ffi::Ffi::Bind()
                                  .Attr<int64_t>("i")
                                  .Attr<double>("d")
                                  .Attr<bool>("b")
                                  .Attr<std::string_view>("text")
                                  .Attr<ffi::Span<const int64_t>>("ints")
                                  .Attr<ffi::Span<const double>>("doubles")
                                  .Attr<ffi::Span<const uint8_t>>("bools")
                                  .Ret<ffi::Buffer<ffi::F64>>());
"""

_ATTRIBUTES_PROGRAM = """
import glob, json, os
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np
import torch, torch_xla_lite
from torch_xla_lite.utils import cpp_extension

(file,) = glob.glob(os.path.abspath("attributes*.so"))
cpp_extension.register_ffi_library(Path(file), {"attributes.echo": "AttributesEcho"})


@torch.library.custom_op("attributes::echo", mutates_args=(), device_types="cpu")
def echo(x: torch.Tensor, i: int, d: float, b: bool, text: str, ints: Sequence[int],
         doubles: Sequence[float], bools: Sequence[bool]) -> torch.Tensor:
    return torch.tensor([i, d, b, *text.encode(), *ints, *doubles, *bools], dtype=torch.float64)


@echo.register_fake
def _(x, i, d, b, text, ints, doubles, bools):
    count = 3 + len(text.encode()) + len(ints) + len(doubles) + len(bools)
    return x.new_empty(count, dtype=torch.float64)


@torch_xla_lite.register_lowering("attributes::echo")
def _(x, i, d, b, text, ints, doubles, bools, *, outs):
    return jax.ffi.ffi_call("attributes.echo", outs[0])(
        i=i, d=d, b=b, text=text,
        ints=np.array(ints, np.int64),
        doubles=np.array(doubles, np.float64),
        bools=np.array(bools, np.uint8),
    )


cases = {
    "one": (3, 0.1, True, "ab", [1, -2], [0.5, 1e300], [True, False, True]),
    "other": (-(2**40), float("inf"), False, "c", [7], [-1.5], [True]),
    "empty": (0, 0.0, False, "", [], [], []),
}
print(json.dumps({
    name: [echo(torch.zeros(1).to(device), *values).tolist() for device in ("jax", "cpu")]
    for name, values in cases.items()
}))
"""


@pytest.fixture(scope="module")
def attributes(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """For each case: the values that the handler got, and those that were passed to the op."""
    folder = tmp_path_factory.mktemp("attributes")
    (folder / "setup.py").write_text(_ATTRIBUTES_SETUP)
    (folder / "attributes.cc").write_text(_ATTRIBUTES_SOURCE)
    process = installed.run("setup.py", "build_ext", "--inplace", cwd=folder)
    assert process.returncode == 0, process.stdout + process.stderr
    (folder / "program.py").write_text(_ATTRIBUTES_PROGRAM)
    return installed.facts(folder / "program.py")


@pytest.mark.nightly
@pytest.mark.parametrize("case", ["one", "other", "empty"])
def test_numbers_strings_and_lists_reach_a_handler_as_attributes(
    attributes: dict[str, Any], case: str
):
    got, given = attributes[case]
    assert got == given


_PEEK_SETUP = """
from setuptools import setup
from torch_xla_lite.utils.cpp_extension import XLAExtension

setup(name="peek", ext_modules=[XLAExtension("peek", ["peek.cc"], uses_torch=True)])
"""

_PEEK_SOURCE = """
#include "torch_xla_lite/csrc/ir/shape.h"
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
    """The output of a program with a library that uses our public headers, built in place."""
    folder = tmp_path_factory.mktemp("peek")
    (folder / "setup.py").write_text(_PEEK_SETUP)
    (folder / "peek.cc").write_text(_PEEK_SOURCE)
    process = installed.run("setup.py", "build_ext", "--inplace", cwd=folder)
    assert process.returncode == 0, process.stdout + process.stderr
    (folder / "program.py").write_text(_PEEK_PROGRAM)
    return installed.facts(folder / "program.py")


@pytest.mark.nightly
def test_c_plus_plus_code_of_others_uses_the_same_runtime(peek: dict[str, Any]):
    recorded, counted = peek["recorded"]
    assert recorded == counted > 0


@pytest.mark.nightly
def test_headers_that_include_torch_s_can_be_used(peek: dict[str, Any]):
    assert peek["elements"] == 6


@pytest.mark.nightly
def test_a_library_finds_the_bridge_beside_which_it_is_installed(
    installed: Installed, peek: dict[str, Any]
):
    file = shutil.copy(peek["file"], installed.site)
    # torch is not installed beside them in this environment, so it is loaded first.
    process = installed.run(
        "-c", f"import ctypes, torch; ctypes.CDLL({file!r})", cwd=installed.site
    )
    assert process.returncode == 0, process.stderr


@pytest.mark.nightly
def test_the_package_of_the_page_can_be_built_and_used(installed: Installed, tmp_path: Path):
    page = Path("docs/extensions.md").read_text()
    section = page.partition("## An FFI handler\n")[2].partition("\n## ")[0]
    file = r"^```\w+\n(?:#|//) (\S+\.\w+)\n(.*?)^```$"
    for name, content in re.findall(file, section, re.M | re.S):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    installed.install(".", cwd=tmp_path)
    program = tmp_path / "elsewhere" / "program.py"
    program.parent.mkdir()
    program.write_text("""
import json, torch, mine
x = torch.tensor([1.0, -3.0], device="jax")
values = {str(y.dtype): mine.softsign(y).tolist() for y in (x, x.double())}
try:
    mine.softsign(x.half())
except TypeError as error:
    values["refused"] = str(error)
print(json.dumps(values))
""")
    assert installed.facts(program) == {
        "torch.float32": [0.5, -0.75],
        "torch.float64": [0.5, -0.75],
        "refused": "mine::softsign: expected float32 or float64, found torch.float16",
    }
