"""The shared objects, as they are linked."""

import difflib
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
_LIST = Path("test/bazel/exported_symbols.txt")
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


def test_what_is_offered_to_others_is_on_the_list():
    files = [_MODULE, _BRIDGE, _FFI]
    command = (
        f"python setup.py develop && python -m third_party.elf {' '.join(map(str, files))} "
        f"> {_LIST}"
    )
    if elf.interface(files) != _LIST.read_text():
        changes = difflib.unified_diff(
            _LIST.read_text().splitlines(), elf.interface(files).splitlines(), n=0, lineterm=""
        )
        pytest.fail("\n".join([*changes, f"If this is meant:  {command}"]), pytrace=False)


@_ALL
def test_copies_of_inline_functions_of_others_are_not_offered(library: Path):
    names = {symbol.name for symbol in elf.exported_symbols(library)}
    ours = re.compile(r"PyInit_|TorchXlaLite|_Z(|TV|TI|TS|GV|Z|GVZ)NK?14torch_xla_lite")
    assert {name for name in names if not ours.match(name)} == set()


def test_threads_that_wait_are_counted_in_one_library_only():
    # A thread that sleeps on an atomic in one would not be woken from another. Newer compilers
    # count them in the C++ library.
    command = ["nm", "--format=posix", _MODULE, _BRIDGE]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    tables = [line for line in listed.splitlines() if "__waiter_pool_base" in line]
    assert len([line for line in tables if line.startswith("_ZZN")]) <= 1


def test_a_c10_error_of_the_bridge_is_the_exception_that_torch_has_for_it():
    # c10::TypeError has no code of its own: each library has a description of the type.
    with pytest.raises(TypeError, match="XLA has no element type"):
        torch.zeros(2, dtype=torch.complex32).to("jax")


def test_a_c10_error_of_the_module_is_the_exception_that_torch_has_for_it():
    with pytest.raises(TypeError, match="expected a tensor on jax"):
        torch_xla_lite._XLAC.to_jax(torch.zeros(1))


def test_an_error_of_python_passes_through_the_bridge_and_torch_unchanged(monkeypatch):
    def upload(array: object) -> None:
        raise KeyError("from Python")

    compiler = torch_xla_lite.compiler
    monkeypatch.setattr(compiler, "_upload", upload)
    compiler.register()
    try:
        with pytest.raises(KeyError, match="from Python"):
            torch.ones(2).to("jax")
    finally:
        monkeypatch.undo()
        compiler.register()


def test_the_module_knows_the_type_of_a_tensor_that_the_bridge_made():
    tensor = torch.ones(2, device="jax")
    assert torch_xla_lite._XLAC.to_jax(tensor).tolist() == [1, 1]
