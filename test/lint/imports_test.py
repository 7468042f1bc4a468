"""Python files import downwards: no file reaches itself, and no folder one that stands above it."""

import ast
import functools
import graphlib
from pathlib import Path

import pytest

from test.lint.source_tree import ROOT, files

_PARTS = ("bazel", "scripts", "setup.py", "third_party", "torch_xla_lite")
_FILES = [file for file in files(".py") if file.parts[0] in _PARTS]

# The order in which bazel/pybuild/__init__.py explains them: what stands lower here may be imported
# by what stands higher, and by its own line. Each file belongs to the longest entry that it is in.
_LAYERS = [
    ["third_party"],
    ["bazel/pybuild/errors.py", "bazel/pybuild/files.py", "bazel/pybuild/notices.py"],
    ["bazel/pybuild/options.py", "bazel/pybuild/lock.py"],
    ["bazel/pybuild/machine"],
    ["bazel/pybuild/invocation"],
    ["bazel/pybuild/dist"],
    ["bazel/pybuild/install"],
    ["bazel/pybuild/build.py"],
    ["bazel/pybuild/develop.py", "bazel/pybuild/wheel.py"],
    ["bazel/pybuild/commands"],
    ["bazel/pybuild"],
    ["setup.py"],
]
# Made by the build, from C++ and Starlark.
_COMPILED = {"_XLAC", "_build_info"}


def _file(module: tuple[str, ...]) -> Path | None:
    """The file of a module of ours."""
    path = Path(*module)
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if (ROOT / file).is_file():
            return file
    return None


@functools.cache
def _imports(file: Path) -> frozenset[Path]:
    """Files of ours that a file imports, wherever in it, for type checkers alone too."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {_file(tuple(alias.name.split("."))) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = file.parts[: -node.level] if node.level else ()
            module = (*package, *(node.module.split(".") if node.module else ()))
            names = {alias.name for alias in node.names} - _COMPILED
            found |= {_file((*module, name)) or _file(module) for name in names}
    return frozenset(found - {None, file})


def _layer(file: Path) -> int | None:
    """The place of a file's layer; None for those that are in none."""
    for place in (file, *file.parents):
        for index, layer in enumerate(_LAYERS):
            if place.as_posix() in layer:
                return index
    return None


def test_no_file_imports_itself_by_way_of_others():
    try:
        graphlib.TopologicalSorter({file: _imports(file) for file in _FILES}).prepare()
    except graphlib.CycleError as error:
        pytest.fail(f"cycle: {' <- '.join(map(str, error.args[1]))}", pytrace=False)


@pytest.mark.parametrize("file", [file for file in _FILES if _layer(file) is not None], ids=str)
def test_a_file_imports_only_of_its_own_layer_and_those_below(file: Path):
    above = {f for f in _imports(file) if _layer(f) is None or _layer(f) > _layer(file)}
    assert not above


@pytest.mark.parametrize("file", _FILES, ids=str)
def test_a_part_imports_only_what_it_may(file: Path):
    # Scripts call the build by its commands; the package does not know how it was built.
    allowed = {
        "bazel": {"bazel", "third_party"},
        "scripts": {"scripts", "torch_xla_lite"},
        "setup.py": {"bazel"},
    }
    part = file.parts[0]
    assert {imported.parts[0] for imported in _imports(file)} <= allowed.get(part, {part})
