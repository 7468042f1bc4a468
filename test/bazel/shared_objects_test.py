"""The shared objects, as they are linked."""

import re
import subprocess
from pathlib import Path

import pytest

from third_party import interface

_PACKAGE = Path("torch_xla_lite")
_BRIDGE = _PACKAGE / "lib/libtorch_xla_lite.so"
_FFI = _PACKAGE / "lib/libtorch_xla_lite_ffi.so"
_MODULE = _PACKAGE / "_XLAC.so"
_ALL = pytest.mark.parametrize("library", [_BRIDGE, _FFI, _MODULE], ids=lambda path: path.name)


def _dynamic(library: Path, tag: str) -> list[str]:
    """Values of a tag of the dynamic section, such as the libraries that are NEEDED."""
    command = ["readelf", "--dynamic", "--wide", str(library)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.findall(rf"\({tag}\).*\[(.*)\]", text)


def _ours(library: Path) -> set[str]:
    """Mangled names that the library defines in our namespace."""
    names = (symbol.name for symbol in interface.exported_symbols(library))
    return {name for name in names if "14torch_xla_lite" in name}


@_ALL
def test_a_library_is_known_by_its_file_name(library: Path):
    assert _dynamic(library, "SONAME") == [library.name]


@_ALL
def test_other_libraries_are_looked_for_beside_the_file_only(library: Path):
    (path,) = _dynamic(library, "RUNPATH")
    assert all(folder.startswith("$ORIGIN/") for folder in path.split(":"))


@pytest.mark.parametrize("library", [_BRIDGE, _FFI], ids=lambda path: path.name)
def test_libraries_below_the_module_know_no_python(library: Path):
    assert not [name for name in _dynamic(library, "NEEDED") if "python" in name]


def test_the_module_uses_the_code_of_the_bridge_and_does_not_repeat_it():
    assert _BRIDGE.name in _dynamic(_MODULE, "NEEDED")
    assert len(_ours(_BRIDGE)) > 50
    assert not _ours(_BRIDGE) & _ours(_MODULE)


def test_the_module_leaves_the_choice_of_libpython_to_the_process():
    assert not [name for name in _dynamic(_MODULE, "NEEDED") if name.startswith("libpython")]
