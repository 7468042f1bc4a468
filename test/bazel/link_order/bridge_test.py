"""The bridge, linked with the measured order of functions."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bazel.link_order import generate
from test.bazel.link_order import layout
from test.bazel.made import made

_ORDERED = made("test/bazel/link_order/libtorch_xla_lite.so")
_PACKAGE = Path("torch_xla_lite")
_NAMES = generate.read_symbols(Path("bazel/link_order/symbols.txt").read_text())


def _addresses(library: Path) -> dict[str, int]:
    """Addresses of functions by name, without the suffixes that a compiler adds."""
    found = layout.functions(library)
    return {function.name.partition(".")[0]: function.address for function in reversed(found)}


@pytest.mark.skipif(
    "GCC 12." not in (_PACKAGE / "_build_info.py").read_text(),
    reason="the list was made with GCC 12; other versions inline other functions",
)
def test_nine_tenths_of_the_listed_functions_exist():
    # If not, count again which functions run most (valgrind --tool=callgrind).
    known = set(_addresses(_ORDERED)) | set(_addresses(_PACKAGE / "_XLAC.so"))
    assert len([name for name in _NAMES if name in known]) >= 0.9 * len(_NAMES)


def test_the_functions_are_first_and_in_the_order_of_the_list():
    addresses = _addresses(_ORDERED)
    listed = [addresses[name] for name in _NAMES if name in addresses]
    assert len(listed) > 20
    assert listed == sorted(listed)
    # And no other functions; a function may have two names.
    first = {f.address for f in layout.functions(_ORDERED) if f.address <= listed[-1]}
    assert first == set(listed)


def test_the_package_works_with_the_ordered_library(tmp_path: Path):
    package = tmp_path / "torch_xla_lite"
    shutil.copytree(_PACKAGE, package)
    (package / "lib" / _ORDERED.name).unlink()
    shutil.copy(_ORDERED, package / "lib" / _ORDERED.name)
    program = (
        "import torch, torch_xla_lite; x = torch.ones(3, device='jax');"
        "print(torch_xla_lite.__file__, (x + x).sum().item())"
    )
    process = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.split() == [str(package / "__init__.py"), "6.0"]
