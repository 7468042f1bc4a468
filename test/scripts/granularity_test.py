"""Each kind of target that is too coarse is named, in a small copy of this tree."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import check_granularity
from scripts.check_granularity import Target
from test.build.nested import Nested
from test.build.tree import ROOT

_MORE = """
lite_cc_library(
    name = "three",
    srcs = ["three.cc"],
    deps = ["@torch//:c10"],
)

lite_cc_library(
    name = "four",
    srcs = ["four.cc"],
    deps = [
        ":constants",
        ":numbers",
        "@torch//:c10",
    ],
)

lite_cc_library(
    name = "constants",
    hdrs = ["constants.h"],
)

lite_cc_library(
    name = "numbers",
    hdrs = ["numbers.h"],
)

lite_py_library(
    name = "many",
    srcs = ["many%d.py" % i for i in range(9)],
)

lite_py_library(
    name = "module",
    srcs = ["module.py"],
    deps = [
        ":many",
        ":torch_xla_lite",
    ],
)
"""
_FINDINGS = """\
sources: //torch_xla_lite:many has 9 files. Make several targets of it.
torch: //torch_xla_lite:three reads no header of ['@torch//:c10']. Remove them from its deps.
unused: //torch_xla_lite:four uses no file of //torch_xla_lite:numbers. Remove it from its deps.
unused: //torch_xla_lite:module uses no file of //torch_xla_lite:many. Remove it from its deps.
unused: //torch_xla_lite:three uses no file of @torch//:c10. Remove it from its deps.
"""


@pytest.fixture
def nested(tmp_path: Path) -> Iterator[Nested]:
    tree = Nested(tmp_path / "nested", tmp_path)
    (tree.root / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/check_granularity.py", tree.root / "scripts")
    tree.configure()
    yield tree
    tree.close()


def test_each_finding_is_a_line_with_its_remedy(nested: Nested):
    bazel = f"bazel {nested.environ()['TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS']}"
    command = [nested.python, "scripts/check_granularity.py", "--bazel", bazel]
    unbuilt = nested.run(*command)
    assert unbuilt.returncode == 2, unbuilt.stderr
    assert "bazel build //..." in unbuilt.stderr

    assert nested.bazel("build", "//torch_xla_lite/...").returncode == 0
    fine = nested.run(*command)
    assert (fine.returncode, fine.stdout) == (0, "0 findings\n"), fine.stderr

    with (nested.root / "torch_xla_lite" / "BUILD.bazel").open("a") as file:
        file.write(_MORE)
    nested.write("three.cc", "int three() { return 3; }\n")
    code = '#include "c10/core/Device.h"\n#include "torch_xla_lite/constants.h"\n'
    nested.write("four.cc", f'{code}bool four() {{ return c10::Device("cpu").is_cpu(); }}\n')
    nested.write("constants.h", "#pragma once\n")
    nested.write("numbers.h", "#pragma once\n")
    for number in range(9):
        nested.write(f"many{number}.py", "")
    nested.write("module.py", "import torch_xla_lite\n")
    built = nested.bazel("build", "//torch_xla_lite/...")
    assert built.returncode == 0, built.stderr
    coarse = nested.run(*command)
    assert coarse.returncode == 1, coarse.stderr
    assert sorted(coarse.stdout.splitlines()) == sorted([*_FINDINGS.splitlines(), "5 findings"])


def test_a_header_that_too_many_sources_include_is_named(tmp_path: Path):
    header, most = next(iter(check_granularity.COMPILATIONS.items()))
    for number in range(most + 1):
        assert list(check_granularity.findings({}, tmp_path)) == []
        objects = tmp_path / "torch_xla_lite" / "csrc" / "ir" / "_objs" / str(number)
        objects.mkdir(parents=True)
        (objects / "a.d").write_text(f"a.o: a.cc \\\n {header}\n")
    (finding,) = check_granularity.findings({}, tmp_path)
    assert finding.startswith(f"width: {most + 1} sources include {header}, not {most}.")


@pytest.mark.parametrize("label", ["//bazel/pybuild:all", "//torch_xla_lite/lowering:all"])
def test_a_library_of_three_modules_is_named_where_each_has_a_target(label: str, tmp_path: Path):
    package = label.removeprefix("//").partition(":")[0]
    target = Target("lite_py_library", [f"{package}:__init__.py"] * 3, [], [], [])
    (finding,) = check_granularity.findings({label: target}, tmp_path)
    assert finding == f"sources: {label} has 3 files. Make several targets of it."
    tight = target._replace(sources=target.sources[:2])
    assert list(check_granularity.findings({label: tight}, tmp_path)) == []


def test_a_file_that_is_an_input_of_too_many_tests_is_named(tmp_path: Path):
    label, most = next(iter(check_granularity.WIDTHS.items()))
    graph = {f"//test:{i}_test": Target("_lite_py_test", [], [], [], [label]) for i in range(most)}
    assert list(check_granularity.findings(graph, tmp_path)) == []
    graph["//test:one_more_test"] = Target("_lite_py_test", [], [], [], [label])
    (finding,) = check_granularity.findings(graph, tmp_path)
    assert finding.startswith(f"width: {label} is an input of {most + 1} tests, not {most}.")


def test_a_test_that_has_only_the_name_of_a_file_does_not_run_after_an_edit():
    def target(kind: str, *inputs: str) -> Target:
        return Target(kind, [], [], [], list(inputs))

    graph = {
        "//:all": target("filegroup", "//:a.py"),
        "//:names": target("lite_file_names", "//:all"),
        "//:lint": target("_lite_py_test", "//:all"),
        "//:listing_test": target("_lite_py_test", "//:names"),
    }
    assert check_granularity.tests_of("//:a.py", graph) == {"//:lint"}
