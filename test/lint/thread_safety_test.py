"""clang checks which locks the C++ code holds (torch_xla_lite/csrc/ir/thread_annotations.h)."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from test.lint.source_tree import ROOT, files

_CLANG_TIDY = Path(sys.executable).parent / "clang-tidy"
_CHECKS = ("--quiet", "--allow-no-checks", "--checks=-*,clang-diagnostic-thread-safety*")
_CSRC = Path("torch_xla_lite/csrc")
# device and infer include headers that the build makes, and use no lock of the runtime.
_LAYERS = (
    *("ir", "runtime", "tensor", "ops", "aten"),
    *("record", "kernels_of_torch", "interpreter", "ffi", "python"),
)

# Code that uses a result of a node without the lock, and with it.
_USE = """
#include "torch_xla_lite/csrc/runtime/runtime.h"
using namespace torch_xla_lite;
bool IsPending(const ir::Value& value) { %s return value.buffer() == nullptr; }
"""


def clang(*sources: Path) -> subprocess.CompletedProcess[str]:
    """Compiles sources without output, with the analysis of locks; its findings are errors."""
    site = Path(sysconfig.get_path("purelib"))
    headers = [site / f"{name}/include" for name in ("torch", "pybind11", "jaxlib")]
    headers += [site / "torch/include/torch/csrc/api/include", Path(sysconfig.get_path("include"))]
    flags = ["-std=c++20", f"-I{ROOT}", "-Wthread-safety"]
    flags += [word for header in headers for word in ("-isystem", str(header))]
    command = [_CLANG_TIDY, *_CHECKS, "--warnings-as-errors=*", *sources, "--", *flags]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_result_is_read_below_the_record_lock(tmp_path: Path):
    source = tmp_path / "use.cc"
    source.write_text(_USE % "const runtime::RecordScope scope;")
    assert clang(source).returncode == 0
    source.write_text(_USE % "")
    assert "'buffer' requires holding record lock 'record_lock'" in clang(source).stdout


@pytest.mark.nightly
@pytest.mark.parametrize("layer", _LAYERS)
def test_functions_hold_the_locks_that_annotations_name(layer: str):
    sources = [file for file in files(".cc") if file.is_relative_to(_CSRC / layer)]
    result = clang(*sources)
    if result.returncode:
        pytest.fail(f"{result.stdout}{result.stderr}", pytrace=False)
