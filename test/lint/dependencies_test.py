"""Checks that C++ targets depend on exactly the targets whose headers they include, in order.

A compiler also sees the headers of indirect dependencies. A target that uses these breaks when a
dependency of another target is removed.
"""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from test.lint.source_tree import ROOT, files
from third_party.torch.layers import LAYERS

_RULES = ("lite_cc_library", "lite_cc_test", "lite_cuda_library", "lite_pybind_library")
_ATTRIBUTES = ("alwayslink", "deps", "hdrs", "name", "srcs")
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


class Target(NamedTuple):
    label: str
    folder: Path
    sources: list[str]
    headers: list[str]
    written_deps: list[str]
    deps: list[str]
    linked_for_effect: bool


@cache
def _targets() -> list[Target]:
    """All C++ targets. BUILD files are parsed as Python."""
    targets = []
    for file in files("BUILD.bazel"):
        for statement in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
            call = statement.value if isinstance(statement, ast.Expr) else None
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
                continue
            if call.func.id not in _RULES:
                continue
            attributes = [word for word in call.keywords if word.arg in _ATTRIBUTES]
            values = {word.arg: ast.literal_eval(word.value) for word in attributes}
            package = f"//{file.parent.as_posix()}"
            targets.append(
                Target(
                    f"{package}:{values['name']}",
                    file.parent,
                    values.get("srcs", []),
                    values.get("hdrs", []),
                    values.get("deps", []),
                    [_absolute(dep, package) for dep in values.get("deps", [])],
                    values.get("alwayslink", False),
                )
            )
    assert targets
    return targets


def _absolute(label: str, package: str) -> str:
    if label.startswith(":"):
        return package + label
    if label.startswith("//") and ":" not in label:
        return f"{label}:{label.rpartition('/')[2]}"
    return label


def _owner_of_header() -> dict[str, str]:
    return {(t.folder / name).as_posix(): t.label for t in _targets() for name in t.headers}


def _included(target: Target) -> set[str]:
    """Labels of the targets whose headers the files of this target include."""
    owners = _owner_of_header()
    included = set()
    for name in target.sources + target.headers:
        for header in _INCLUDE.findall((ROOT / target.folder / name).read_text(encoding="utf-8")):
            included.add(owners.get(header, header))
    return included - {target.label}


@cache
def _layer_of_header() -> dict[str, str]:
    """Layer of each header of torch, from the file that the repository rule writes."""
    owners = {}
    # Modules call the repository _main~external~torch.
    (file,) = Path("..").glob("*torch/layers.bzl")
    for statement in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            for header in ast.literal_eval(statement.value):
                layer = f"@torch//:{statement.targets[0].id.lower()}"
                owners[header.removeprefix("include/")] = layer
    return owners


@cache
def _reached(label: str) -> frozenset[str]:
    """The label and all its dependencies in this tree and in the layers of torch."""
    below = {
        f"@torch//:{e.name.lower()}": [f"@torch//:{b.lower()}" for b in e.below] for e in LAYERS
    }
    deps = {target.label: target.deps for target in _targets()} | below
    return frozenset({label}).union(*(_reached(dep) for dep in deps.get(label, [])))


_WITH_FILES = pytest.mark.parametrize(
    "target", [t for t in _targets() if t.sources or t.headers], ids=lambda target: target.label
)


@_WITH_FILES
def test_targets_of_included_headers_are_dependencies(target: Target):
    assert _included(target) - set(target.deps) == set()


@_WITH_FILES
def test_each_dependency_is_included(target: Target):
    for_effect = {t.label for t in _targets() if t.linked_for_effect}
    ours = {dep for dep in target.deps if dep.startswith("//")}
    assert ours - for_effect - _included(target) == set()


@_WITH_FILES
def test_headers_of_torch_are_in_a_layer_that_is_reached(target: Target):
    # Outside a sandbox the compiler finds the other headers too.
    for name in target.sources + target.headers:
        text = (ROOT / target.folder / name).read_text(encoding="utf-8")
        for header in re.findall(r"#include <((?:ATen|c10|torch)/[^>]+)>", text):
            layer = _layer_of_header().get(header, "no layer")
            assert layer in _reached(target.label), f"{name} includes {header}, of {layer}"


@pytest.mark.parametrize("target", _targets(), ids=lambda target: target.label)
def test_dependencies_are_sorted(target: Target):
    # As buildifier sorts them: this package, this tree, other repositories.
    ranks = [(":/@".index(dep[0]), dep) for dep in target.written_deps]
    assert ranks == sorted(ranks)
