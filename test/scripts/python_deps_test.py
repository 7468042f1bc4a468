"""scripts/python_deps.py: what a file uses is what it imports, in a small tree."""

from pathlib import Path

import pytest

from scripts import python_deps

_BUILD = "lite_py_files(PYTHON_DEPS)\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with a package, a program and a test, whose lists are current."""
    for path, text in {
        "bazel/source_files.bzl": "ROOT_FILES = []\n",
        "scripts/BUILD.bazel": _BUILD,
        "scripts/program.py": "",
        "test/BUILD.bazel": _BUILD,
        "test/conftest.py": "",
        "test/it_test.py": "",
        "torch_xla_lite/BUILD.bazel": _BUILD,
        "torch_xla_lite/__init__.py": "from . import a\n",
        "torch_xla_lite/a.py": "",
        "torch_xla_lite/commands/BUILD.bazel": _BUILD,
        "torch_xla_lite/commands/__init__.py": "def f():\n    from . import env\n",
        "torch_xla_lite/commands/env.py": "",
        "torch_xla_lite/csrc/BUILD.bazel": "",
        "torch_xla_lite/lowering/BUILD.bazel": _BUILD,
        "torch_xla_lite/lowering/sort.py": "import random\nfrom ..a import b\n",
        "torch_xla_lite/lowering/random.py": "",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    for path, text in python_deps.outdated(tmp_path).items():
        (tmp_path / path).write_text(text)
    return tmp_path


def _deps(root: Path, file: str) -> list[str]:
    """The labels of a file, from its list."""
    names: dict[str, dict[str, dict[str, list[str]]]] = {}
    place = Path(file)
    exec(python_deps.texts(root)[f"{place.parts[0]}/python_deps.bzl"], names)
    return names["PYTHON_DEPS"].get(str(place.parent), {}).get(place.stem, [])


@pytest.mark.parametrize(
    ("code", "labels"),
    [
        ("", []),
        ("import json", []),
        ("import torch_xla_lite", ["//torch_xla_lite:__init__"]),
        ("import torch_xla_lite.a", ["//torch_xla_lite:__init__", "//torch_xla_lite:a"]),
        ("from torch_xla_lite import a", ["//torch_xla_lite:__init__", "//torch_xla_lite:a"]),
        ("from torch_xla_lite.a import x", ["//torch_xla_lite:__init__", "//torch_xla_lite:a"]),
        ("from torch_xla_lite.lowering import sort", ["//torch_xla_lite/lowering:sort"]),
        ("def f():\n    from test import other", [":other"]),
        ("PROGRAM = 'scripts/program.py'", ["//scripts:program"]),
    ],
)
def test_a_test_uses_its_conftest_and_what_its_code_imports(
    tree: Path, code: str, labels: list[str]
):
    (tree / "test" / "other.py").write_text("")
    (tree / "test" / "it_test.py").write_text(code)
    assert _deps(tree, "test/it_test.py") == [":conftest", *labels]


def test_a_file_uses_what_is_above_it_but_not_the_package_that_contains_it(tree: Path):
    assert _deps(tree, "torch_xla_lite/lowering/sort.py") == ["//torch_xla_lite:a"]
    (tree / "torch_xla_lite" / "a.py").write_text("from . import _XLAC\nimport torch_xla_lite\n")
    assert _deps(tree, "torch_xla_lite/a.py") == []


def test_the_command_line_does_not_use_its_commands(tree: Path):
    assert _deps(tree, "torch_xla_lite/commands/__init__.py") == []


def test_a_list_is_out_of_date_after_an_import_or_a_file_is_added_or_removed(tree: Path):
    assert python_deps.outdated(tree) == {}
    test = tree / "test" / "it_test.py"
    test.write_text("import torch_xla_lite\n")
    assert [*python_deps.outdated(tree)] == ["test/python_deps.bzl"]
    test.write_text("# A comment.\n")
    assert python_deps.outdated(tree) == {}
    (tree / "scripts" / "new.py").write_text("")
    assert python_deps.outdated(tree) == {}
    (tree / "scripts" / "new.py").write_text("from scripts import program\n")
    test.unlink()
    assert [*python_deps.outdated(tree)] == ["scripts/python_deps.bzl", "test/python_deps.bzl"]


@pytest.mark.parametrize(
    ("code", "lists"),
    [
        ("", {}),
        ("@pytest.mark.nightly\ndef test_it(): pass", {"nightly": ["it_test"]}),
        ("pytestmark = pytest.mark.nightly", {"only_nightly": ["it_test"]}),
        ("pytestmark = [pytest.mark.nightly]", {"only_nightly": ["it_test"]}),
        ("pytestmark = [pytest.mark.nightly] if NIGHT else []", {"nightly": ["it_test"]}),
    ],
)
def test_files_with_nightly_cases_are_listed(tree: Path, code: str, lists: dict[str, list[str]]):
    (tree / "test" / "it_test.py").write_text(code)
    found = {key: _deps(tree, f"test/{key}.py") for key in ("nightly", "only_nightly")}
    assert {key: tests for key, tests in found.items() if tests} == lists


def test_folders_with_a_build_file_are_listed(tree: Path):
    (tree / "docs").mkdir()
    (tree / "docs" / "BUILD.bazel").write_text("")
    changed = python_deps.outdated(tree)
    assert (
        '"docs"' in changed["bazel/packages.bzl"]
        and "torch_xla_lite/csrc" in changed["bazel/packages.bzl"]
    )
