#!/usr/bin/env python3
"""Finds Bazel targets that make an edit compile or test more than necessary.

    bazel build //... && python scripts/check_granularity.py

    sources   a target has more than eight files; in the packages of FINE, a Python library more
              than two
    torch     a C++ target depends on torch, and reads none of its headers
    unused    a dependency none of whose headers or modules is used
    width     an edit of a file runs more tests than WIDTHS allows, or compiles more sources of the
              package than COMPILATIONS allows

The graph is that of `bazel query`. What a C++ target reads is in the depfiles of its last
compilation, so one that is not built is not checked. Python tests may depend on programs that they
start, so only libraries are checked for unused modules.

Each finding is one line that ends with its remedy. Exit code: 0 without findings, 1 with some, 2 if
Bazel fails or nothing is built.
"""

import argparse
import ast
import collections
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
MOST_SOURCES = 8
# Each program and each test depends on a few of their files.
FINE = ("//bazel/pybuild", "//torch_xla_lite/lowering")
MOST_FINE_SOURCES = 2
# File -> how many tests may run after an edit. Each test that starts setup.py or update_repos.py
# needs the second or third one of these.
WIDTHS = {
    "//torch_xla_lite/lowering:pool.py": 12,
    "//bazel/pybuild/invocation:report.py": 17,
    "//scripts/repos:plan.py": 16,
    "//torch_xla_lite/commands:doctor.py": 7,
    "//:README.md": 2,
    "//:CONTRIBUTING.md": 1,
}
# Header -> how many sources of the package may include it, directly or not.
COMPILATIONS = {
    "torch_xla_lite/csrc/ir/graph.h": 10,
    # What values are. Nearly all that records, keeps or runs them needs it.
    "torch_xla_lite/csrc/ir/node.h": 30,
    "torch_xla_lite/csrc/ir/shape.h": 12,
    "torch_xla_lite/csrc/ir/signature.h": 34,
    "torch_xla_lite/csrc/runtime/executable_cache.h": 4,
    "torch_xla_lite/csrc/runtime/executor.h": 8,
    "torch_xla_lite/csrc/runtime/pending_limit.h": 3,
    "torch_xla_lite/csrc/runtime/runtime.h": 14,
    "torch_xla_lite/csrc/runtime/tiering.h": 4,
}
_QUERY = ("query", "--output=xml", "--noimplicit_deps", "kind(rule, deps(//...))")
# Its output has the names of its inputs, not their content.
_NAMES_ONLY = "lite_file_names"


class Target(NamedTuple):
    """A rule. `inputs` are all labels that it refers to."""

    kind: str
    sources: list[str]
    headers: list[str]
    deps: list[str]
    inputs: list[str]


Graph = dict[str, Target]


def read_graph(xml: str) -> Graph:
    """Label -> target, from the output of `bazel query`."""
    graph = {}
    # Python reads XML 1.0; Bazel writes nothing that only 1.1 has.
    for rule in ElementTree.fromstring(xml.partition("?>")[2]).iter("rule"):
        lists = {
            part.get("name"): [label.get("value") for label in part.iter("label")]
            for part in rule.iter("list")
        }
        attributes = [lists.get(name, []) for name in ("srcs", "hdrs", "deps")]
        inputs = [part.get("name") for part in rule.iter("rule-input")]
        graph[rule.get("name")] = Target(rule.get("class"), *attributes, inputs)
    return graph


def findings(graph: Graph, binaries: Path) -> Iterator[str]:
    """One line for each finding; `binaries` is the folder of Bazel's outputs."""
    for label, target in sorted(graph.items()):
        if not label.startswith("//") or not target.kind.lstrip("_").startswith(("cc_", "lite_py")):
            continue
        count = len(target.sources + target.headers)
        fine = target.kind == "lite_py_library" and label.startswith(FINE)
        if count > (MOST_FINE_SOURCES if fine else MOST_SOURCES):
            yield f"sources: {label} has {count} files. Make several targets of it."
        package, _, name = label.removeprefix("//").partition(":")
        depfiles = list(binaries.glob(f"{package}/_objs/{name}/*.d"))
        if depfiles:
            used = {_short(word) for file in depfiles for word in file.read_text().split()}
            torch = [dep for dep in target.deps if dep.startswith("@torch//")]
            if torch and not any(word.startswith("external/torch/") for word in used):
                yield f"torch: {label} reads no header of {torch}. Remove them from its deps."
        elif _is_python_library(label, target):
            used = {name for source in target.sources for name in _imports(ROOT / _path(source))}
        else:
            continue
        for dep in (graph[dep] for dep in target.deps if dep in graph):
            names = {_path(file) for file in (dep.headers if depfiles else dep.sources)}
            # A library without headers is linked for its effect.
            if names and not used & names:
                unused = next(label for label in target.deps if graph.get(label) is dep)
                yield f"unused: {label} uses no file of {unused}. Remove it from its deps."
    for label, most in WIDTHS.items():
        if (count := len(tests_of(label, graph))) > most:
            yield f"width: {label} is an input of {count} tests, not {most}. Narrow their deps."
    depfiles = list(binaries.glob("torch_xla_lite/csrc/*/_objs/*/*.d"))
    included = collections.Counter(
        name for file in depfiles for name in {*file.read_text().split()}
    )
    for header, most in COMPILATIONS.items():
        if (count := included[header]) > most:
            yield f"width: {count} sources include {header}, not {most}. Declare what it defines."


def tests_of(label: str, graph: Graph) -> set[str]:
    """The tests that an edit of a file runs."""
    found, new = set(), {label}
    while new:
        found |= new
        new = {
            name
            for name, target in graph.items()
            if name not in found
            and target.kind != _NAMES_ONLY
            and not new.isdisjoint(target.inputs)
        }
    return {name for name in found - {label} if graph[name].kind.endswith("_test")}


def _path(label: str) -> str:
    """The file of a label, relative to the folder in which Bazel compiles."""
    repository, _, rest = label.partition("//")
    place = rest.replace(":", "/").removeprefix("/")
    return _short(f"external/{repository.lstrip('@')}/{place}") if repository else place


def _short(path: str) -> str:
    """Without the name of the module that declares the repository, as in external/_main~x~torch."""
    return re.sub("^external/[^/]*[~+]", "external/", path)


def _is_python_library(label: str, target: Target) -> bool:
    """Whether it is no test's, and more than a group of targets with an `__init__.py`."""
    has_code = any(not source.endswith(":__init__.py") for source in target.sources)
    return target.kind == "lite_py_library" and not label.startswith("//test/") and has_code


def _imports(source: Path) -> Iterator[str]:
    """Files that a file may import."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = source.relative_to(ROOT).parts[: -node.level] if node.level else ()
            module = ".".join([*package, *filter(None, [node.module])])
            modules = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        for module in modules:
            yield from (f"{module.replace('.', '/')}{end}" for end in (".py", "/__init__.py"))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = shutil.which("bazelisk") or "bazel"
    parser.add_argument("--bazel", default=default, help="Bazel, with its startup options")
    bazel = shlex.split(parser.parse_args().bazel)
    answers = []
    for command in (_QUERY, ("info", "bazel-bin")):
        process = subprocess.run(
            [*bazel, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
        )
        if process.returncode:
            return 2
        answers.append(process.stdout)
    binaries = Path(answers[1].strip())
    if not binaries.exists():
        print("Nothing is built. Build it:  bazel build //...", file=sys.stderr)
        return 2
    found = list(findings(read_graph(answers[0]), binaries))
    print(*found, f"{len(found)} findings", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
