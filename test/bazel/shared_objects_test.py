"""Properties of the linked shared objects: names, search paths, exported symbols, exceptions."""

import re
import subprocess
from pathlib import Path

import pytest
import torch

import torch_xla_lite
from third_party import elf

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
    names = (symbol.name for symbol in elf.exported_symbols(library))
    return {name for name in names if "14torch_xla_lite" in name}


@_ALL
def test_the_soname_of_a_library_is_its_file_name(library: Path):
    assert _dynamic(library, "SONAME") == [library.name]


@pytest.mark.parametrize("library", [_BRIDGE, _FFI], ids=lambda path: path.name)
def test_libraries_below_the_module_do_not_need_python(library: Path):
    assert not [name for name in _dynamic(library, "NEEDED") if "python" in name]


def test_the_module_links_to_the_bridge_and_contains_no_copy_of_it():
    assert _BRIDGE.name in _dynamic(_MODULE, "NEEDED")
    assert len(_ours(_BRIDGE)) > 50
    assert not _ours(_BRIDGE) & _ours(_MODULE)


def test_the_module_does_not_need_libpython():
    assert not [name for name in _dynamic(_MODULE, "NEEDED") if name.startswith("libpython")]


@_ALL
def test_inline_functions_of_other_libraries_are_not_exported(library: Path):
    names = {symbol.name for symbol in elf.exported_symbols(library)}
    ours = re.compile(r"PyInit_|TorchXlaLite|_Z(|TV|TI|TS|GV|Z|GVZ)NK?14torch_xla_lite")
    assert {name for name in names if not ours.match(name)} == set()


def test_the_table_of_waiting_threads_is_in_one_library_only():
    # A thread that waits for an atomic in one library could not be woken from another. Newer
    # compilers have the table in the C++ library.
    command = ["nm", "--format=posix", _MODULE, _BRIDGE]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    tables = [line for line in listed.splitlines() if "__waiter_pool_base" in line]
    assert len([line for line in tables if line.startswith("_ZZN")]) <= 1


def test_a_c10_error_of_the_bridge_becomes_torchs_exception():
    # c10::TypeError is defined inline: each library has its own type information for it.
    with pytest.raises(TypeError, match="XLA has no element type"):
        torch.zeros(2, dtype=torch.complex32).to("jax")


def test_a_c10_error_of_the_module_becomes_torchs_exception():
    with pytest.raises(TypeError, match="expected a tensor on jax"):
        torch_xla_lite._XLAC.to_jax(torch.zeros(1))


def test_a_python_exception_passes_through_the_bridge_and_torch_unchanged(monkeypatch):
    def has_host_memory() -> bool:
        raise KeyError("from Python")

    compiler = torch_xla_lite.compiler.compiler
    monkeypatch.setattr(compiler.Compiler, "has_host_memory", has_host_memory)
    compiler.register()
    try:
        with pytest.raises(KeyError, match="from Python"):
            torch.ones(2).to("jax")
    finally:
        monkeypatch.undo()
        compiler.register()


def test_the_module_recognises_a_tensor_made_by_the_bridge():
    tensor = torch.ones(2, device="jax")
    assert torch_xla_lite._XLAC.to_jax(tensor).tolist() == [1, 1]
