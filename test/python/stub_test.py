"""_XLAC.pyi agrees with the module."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import torch_xla_lite

_PACKAGE = Path(torch_xla_lite.__file__).parent
_STUB = {
    node.name: node
    for node in ast.parse((_PACKAGE / "_XLAC.pyi").read_text()).body
    if isinstance(node, ast.FunctionDef)
}
_MODULE = {
    name: value for name, value in vars(torch_xla_lite._XLAC).items() if not name.startswith("__")
}


def _signature(function: ast.FunctionDef) -> dict[str, str]:
    """Types by the names of the arguments and "return", without the modules that they are from."""
    annotations = {argument.arg: argument.annotation for argument in function.args.args}
    annotations["return"] = function.returns
    return {
        name: re.sub(r"\b[\w.]+\.(?=\w)", "", ast.unparse(annotation))
        for name, annotation in annotations.items()
        if annotation is not None
    }


def _says_as_much(stub: str, docstring: str) -> bool:
    """Whether a type of the stub is that of the docstring, or one that pybind11 knows less of."""
    if docstring == "object" or stub == docstring:
        return True
    return stub.startswith(f"{docstring}[") or (docstring, stub) == ("dict", "Metrics")


def test_the_stub_has_what_the_module_has_and_nothing_else():
    assert sorted(_STUB) == sorted(_MODULE)


@pytest.mark.parametrize("name", sorted(_MODULE))
def test_a_function_has_the_signature_that_pybind11_gives_it(name: str):
    signature = _MODULE[name].__doc__.splitlines()[0]
    (function,) = ast.parse(f"def {signature}: ...").body
    actual, stated = _signature(function), _signature(_STUB[name])
    assert list(stated) == list(actual)
    for argument, docstring in actual.items():
        assert _says_as_much(stated[argument], docstring), argument


@pytest.mark.nightly
def test_mypy_finds_the_stub_right(tmp_path: Path):
    # Only the stub is tested: the types of torch and jax would take a minute to read.
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\ncache_dir = {tmp_path}\n"
        "[mypy-torch.*,jax.*,numpy.*]\nfollow_imports = skip\nfollow_imports_for_stubs = True\n"
        "[mypy-torch_xla_lite.*]\nignore_errors = True\n"
        "[mypy-torch_xla_lite._XLAC]\nignore_errors = False\n"
    )
    arguments = ["torch_xla_lite._XLAC", "--mypy-config-file", str(tmp_path / "mypy.ini")]
    command = [sys.executable, "-P", "-m", "mypy.stubtest", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_package_says_that_it_has_types():
    assert (_PACKAGE / "py.typed").exists()
