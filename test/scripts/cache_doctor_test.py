"""Why a build misses the cache: keys of recorded actions, and of two builds of a small tree."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bazel.pybuild.invocation.execution_log import Spawn
from scripts import cache_doctor
from test.build.nested import Nested
from test.build.tree import ROOT

_SPAWN = Spawn(
    mnemonic="CppCompile",
    target="",
    outputs=("bazel-out/k8-opt/bin/a.o",),
    arguments=("gcc", "-c", "a.cc"),
    variables={"PATH": "/bin"},
    properties={"toolchain": "1"},
    inputs={"a.cc": "11"},
    products={"bazel-out/k8-opt/bin/a.o": "22"},
    key="",
    cacheable=True,
    hit=False,
    runner="local",
)
_NAME = "CppCompile bazel-out/k8-opt/bin/a.o"
_LINK = _SPAWN._replace(
    mnemonic="CppLink",
    outputs=("bazel-out/k8-opt/bin/a.so",),
    inputs={"bazel-out/k8-opt/bin/a.o": "22"},
    products={},
)


def _differences(a: Spawn, b: Spawn) -> list[tuple[str, str, str, str]]:
    found = cache_doctor.compare([a], [b]).different.get(_NAME, ())
    return [(each.kind, each.name, each.a, each.b) for each in found]


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        ({"arguments": ("gcc", "-g", "-c", "a.cc")}, ("argument", "", "missing", "-g")),
        ({"arguments": ("gcc", "-c", "b.cc")}, ("argument", "", "a.cc", "b.cc")),
        ({"arguments": ("gcc", "a.cc", "-c")}, ("argument", "", "gcc -c a.cc", "gcc a.cc -c")),
        ({"variables": {"PATH": "/usr/bin"}}, ("variable", "PATH", "/bin", "/usr/bin")),
        ({"variables": {}}, ("variable", "PATH", "/bin", "missing")),
        ({"properties": {"toolchain": "2"}}, ("property", "toolchain", "1", "2")),
        ({"inputs": {"a.cc": "12"}}, ("input", "a.cc", "11", "12")),
        ({"key": "9"}, ("key", "", "", "9")),
        (
            {"products": {"bazel-out/k8-opt/bin/a.o": "23"}},
            ("output", "bazel-out/k8-opt/bin/a.o", "22", "23"),
        ),
    ],
)
def test_what_differs_is_named(changed: dict[str, Any], difference: tuple[str, ...]):
    assert _differences(_SPAWN, _SPAWN._replace(**changed)) == [difference]


def test_equal_actions_are_equal():
    result = cache_doctor.compare([_SPAWN], [_SPAWN])
    assert result.equal
    assert (result.common, result.different, result.uncached) == (1, {}, [])


def test_an_action_that_only_follows_is_named_with_the_one_that_made_its_input():
    changed = {"inputs": {"bazel-out/k8-opt/bin/a.o": "23"}}
    compile_b = _SPAWN._replace(inputs={"a.cc": "12"}, products={"bazel-out/k8-opt/bin/a.o": "23"})
    result = cache_doctor.compare([_SPAWN, _LINK], [compile_b, _LINK._replace(**changed)])
    (follows,) = result.different["CppLink bazel-out/k8-opt/bin/a.so"]
    assert follows.made_by == _NAME
    assert cache_doctor.text(result).splitlines() == [
        _NAME,
        "  input a.cc: 11 | 12",
        "CppLink bazel-out/k8-opt/bin/a.so",
        f"  because of what {_NAME} made",
        "2 actions in both builds; 2 keys differ",
    ]


def test_an_action_of_one_build_is_named_with_the_build():
    result = cache_doctor.compare([_SPAWN, _LINK], [_SPAWN])
    assert not result.equal
    assert list(result.only_a) == ["CppLink bazel-out/k8-opt/bin/a.so"]


def test_an_action_that_no_cache_may_hold_is_listed():
    local = _SPAWN._replace(cacheable=False)
    assert cache_doctor.compare([local], [local]).uncached == [_NAME]


def _run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, ROOT / "scripts/cache_doctor.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_exit_code_is_0_for_equal_builds_1_for_different_ones_and_2_without_a_log(
    tmp_path: Path,
):
    recorded = ROOT / "test/build/testdata"
    old, new = (recorded / f"bazel-{version}/spawns.json" for version in ("4.2.3", "7.7.1"))
    assert _run(old, old).returncode == 0
    assert _run(old, new).returncode == 1
    missing = _run(old, tmp_path / "none")
    assert missing.returncode == 2
    assert missing.stderr == f"error: {tmp_path / 'none'} is missing, or has no actions.\n"


# Tests, and two actions whose keys depend on the clone.
_MORE = """
load("//bazel:defs.bzl", "lite_cc_test", "lite_py_test")
load("@python//:python.bzl", "PYTHON")

lite_py_test(
    name = "module_test",
    srcs = ["module_test.py"],
)

lite_py_test(
    name = "alone_test",
    srcs = ["module_test.py"],
    tags = [
        "exclusive",
        "no-sandbox",
    ],
)

lite_cc_test(
    name = "tensor_test",
    srcs = ["tensor_test.cc"],
    deps = ["@torch//:c10"],
)

genrule(
    name = "argument",
    outs = ["argument.txt"],
    cmd = "echo %s > $@" % PYTHON.executable,
)

genrule(
    name = "follows",
    srcs = [":argument"],
    outs = ["follows.txt"],
    cmd = "echo > $@",
)
"""


_CPP_TEST = """
#include "c10/core/Device.h"
#include "gtest/gtest.h"

TEST(Device, HasAName) { EXPECT_EQ(c10::Device("cpu").str(), "cpu"); }
"""
_TESTS = [f"//torch_xla_lite:{name}_test" for name in ("alone", "module", "tensor")]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


def _tree(folder: Path, shared: Path) -> Nested:
    tree = Nested(folder, shared)
    (tree.root / "scripts").mkdir()
    for name in ("cache_doctor.py", "clones.py"):
        shutil.copy(ROOT / "scripts" / name, tree.root / "scripts")
    with (tree.root / "torch_xla_lite" / "BUILD.bazel").open("a") as file:
        file.write(_MORE)
    tree.write("module_test.py", "def test_it():\n    pass\n")
    tree.write("tensor_test.cc", _CPP_TEST)
    tree.configure()
    return tree


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Iterator[Nested]:
    tree = _tree(tmp_path_factory.mktemp("nested"), shared)
    yield tree
    tree.close()


def test_a_second_clone_runs_no_test_again_in_a_sandbox_or_not(
    nested: Nested, shared: Path, tmp_path: Path
):
    first = nested.bazel("test", *_TESTS)
    assert "Executed 3 out of 3 tests: 3 tests pass." in first.stdout, first.stderr
    other = _tree(tmp_path / "far" / "away", shared)
    try:
        second = other.bazel("test", "--spawn_strategy=sandboxed,local", *_TESTS)
    finally:
        other.close()
    assert "Executed 0 out of 3 tests: 3 tests pass." in second.stdout, second.stderr


def test_two_clones_differ_in_what_names_one_of_them_and_in_nothing_else(nested: Nested):
    nested.run("git", "init", "--quiet")
    with (nested.root / ".bazelrc").open("a") as file:
        file.write("\nbuild --action_env=HOME\n")
    bazel = shutil.which("bazelisk") or "bazel"
    process = nested.run(
        nested.python,
        *("scripts/cache_doctor.py", "--make", "--json", "--bazel", bazel),
        *(f"//torch_xla_lite:{name}" for name in ("argument", "follows")),
        *_TESTS,
    )
    assert process.returncode == 1, process.stderr
    result = json.loads(process.stdout)
    assert result["only_a"] == result["only_b"] == result["uncached"] == []
    found = {
        (Path(name).name, d["kind"], Path(d["name"]).name, Path(d["made_by"]).name)
        for name, differences in result["different"].items()
        for d in differences
    }
    # The variable is one of genrules and tests.
    assert {each for each in found if each[0].endswith(".txt")} == {
        ("argument.txt", "argument", "", ""),
        ("argument.txt", "variable", "HOME", ""),
        ("follows.txt", "input", "argument.txt", "argument.txt"),
        ("follows.txt", "variable", "HOME", ""),
    }
    assert {each[1:3] for each in found if not each[0].endswith(".txt")} <= {("variable", "HOME")}
