"""Properties of linked libraries with CUDA code."""

import subprocess
from pathlib import Path

import pytest

from test.bazel.made import made
from test.build.nvidia import codes

_LIBRARIES = [
    made("test/bazel/cuda/libscale.so"),
    made("torch_xla_lite/lib/libtorch_xla_lite_cuda.so"),
]
_ALL = pytest.mark.parametrize("library", _LIBRARIES, ids=lambda path: path.name)


def _requested() -> set[str]:
    """The architectures that this tree is configured for, such as sm_90 and compute_90."""
    (file,) = Path("..").glob("*cuda/codes.txt")
    return set(file.read_text().split())


@_ALL
def test_a_library_contains_code_for_each_requested_architecture(library: Path):
    assert _requested()
    assert codes(library) == _requested()


@_ALL
def test_the_runtime_is_linked_in_and_not_exported(library: Path):
    command = ["nm", "--dynamic", "--format=posix", str(library)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "cuda" not in {line.split()[0][:4] for line in listed.splitlines()}
