"""Each public header, as packed into a wheel, compiles on its own."""

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

from bazel.pytest_plugin import mostly_nightly

_INCLUDE = Path("torch_xla_lite/include")
_HEADERS = sorted(path.relative_to(_INCLUDE) for path in _INCLUDE.rglob("*.h"))


def _headers_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "include"


@pytest.mark.parametrize("header", mostly_nightly(_HEADERS, _HEADERS[:2]), ids=str)
def test_a_public_header_compiles_without_private_headers(header: Path):
    command = [
        os.environ.get("CXX", "c++"),
        *("-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++", "-"),
        *("-I", _INCLUDE, "-isystem", _headers_of("torch"), "-isystem", _headers_of("jaxlib")),
    ]
    source = f'#include "{header}"\n'
    result = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_headers_of_all_three_parts_are_public():
    # If no library were public, the test above would pass without testing anything.
    assert {path.parts[2] for path in _HEADERS} == {"ir", "runtime", "tensor"}
