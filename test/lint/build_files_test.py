"""BUILD files: they load rules from defs.bzl only, name every source file, and are complete."""

import re
import sysconfig
from pathlib import Path

import pytest

from scripts import cc_deps, python_deps
from test.lint.source_tree import ROOT, expect_none, files, text
from third_party.torch import layers

_BUILD_FILES = files("BUILD.bazel")
_LOAD = re.compile(r'^load\(\s*"([^"]+)"', re.MULTILINE)
_OUT_OF_CACHES = ("external", "local", "no-cache", "no-remote", "no-remote-cache")


def test_rules_are_loaded_from_defs_bzl_only():
    generated = {f"//{path.parent}:{path.name}" for path in files("_deps.bzl")}
    expect_none(
        f"{file}: load from //bazel:defs.bzl in place of {place}"
        for file in _BUILD_FILES
        for place in _LOAD.findall(text(file))
        if place not in {"//bazel:defs.bzl", *generated}
    )


def _exists(package: str, target: str) -> bool:
    inside = [file for file in _BUILD_FILES if file.is_relative_to(package)]
    build_file = Path(package) / "BUILD.bazel"
    is_named = build_file in inside and f'"{target}"' in text(build_file)
    return bool(inside) if not target else is_named or (ROOT / package / f"{target}.py").exists()


def test_labels_of_pages_and_workflows_exist():
    label = re.compile(r"(?<![:\w])//([a-z][\w/]*)(?::(\w+)|(?=/\.\.\.|[\s`]))")
    # A source distribution has no workflows.
    workflows = [file.relative_to(ROOT) for file in (ROOT / ".github/workflows").glob("*.yml")]
    pages = [*files(".md"), *workflows]
    labels = {(file, *found) for file in pages for found in label.findall(text(file))}
    assert len(labels) > 10
    expect_none(
        f"{file}: there is no //{package}:{target}"
        for file, package, target in sorted(labels)
        if not _exists(package, target)
    )


def test_no_result_is_kept_out_of_the_caches():
    expect_none(
        f"{file}: remove the tag {tag}"
        for file in _BUILD_FILES
        for tag in _OUT_OF_CACHES
        if f'"{tag}"' in text(file)
    )


@pytest.mark.parametrize("script", [cc_deps, python_deps], ids=lambda script: script.__name__)
def test_generated_lists_are_current(script):
    if outdated := python_deps.outdated(ROOT, script.texts):
        remedy = f"Write them again:  python {script.__name__.replace('.', '/')}.py"
        pytest.fail(f"Out of date: {', '.join(outdated)}\n{remedy}", pytrace=False)


def test_headers_of_torch_are_in_the_layers_of_their_targets():
    # Outside of a sandbox a compiler finds all headers of torch.
    include = Path(sysconfig.get_path("purelib"), "torch", "include")
    roots = {layer.name: set(layer.roots) for layer in layers.LAYERS}
    reached = {
        layer.name.lower(): layers.closure(
            include, roots[layer.name].union(*map(roots.get, layer.below))
        )
        for layer in layers.LAYERS
    }
    sources = [file for file in files(".cc", ".h") if "csrc" in file.parts]
    headers = {
        file: re.findall(r"(?m)^#include <(ATen/.*|torch/.*)>", text(file)) for file in sources
    }
    expect_none(
        f"{file}: {header} is in no layer of its target (third_party/torch/layers.py)"
        for file in sources
        for header in headers[file]
        if not any(header in reached[name] for name in layers.highest(headers[file]))
    )


def _is_named(file: Path) -> bool:
    build_file = file.parent / "BUILD.bazel"
    if not (ROOT / build_file).exists():
        return False
    # The files of a folder become targets at once; lists of others may have no suffix.
    of_all = "lite_py_files(" if file.suffix == ".py" else "lite_cc_files("
    return any(name in text(build_file) for name in (of_all, f'"{file.name}"', f'"{file.stem}"'))


def test_every_source_is_named_by_the_build_file_beside_it():
    # What another workspace builds is named there.
    expect_none(
        f"{file}: name it in {file.parent}/BUILD.bazel"
        for file in files(".cc", ".cu", ".cuh", ".h", ".py")
        if len(file.parts) > 1 and not file.is_relative_to("test/extension/workspace")
        if not _is_named(file)
    )
