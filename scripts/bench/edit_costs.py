"""Prints what an edit of each file costs: the tests that run, and the sources that are compiled.

    bazel build //... && python -m scripts.bench.edit_costs   # the 40 files that cost most
    python -m scripts.bench.edit_costs torch_xla_lite/csrc/ir  # files whose paths begin so

Tests are those of `bazel query`. Compilations are read from the depfiles of the last build.
"""

import argparse
import collections
import re
import subprocess
import sys
from pathlib import Path

from bazel.pybuild.machine import find_bazel

ROOT = Path(__file__).resolve().parents[2]
# A target of this kind has the names of its inputs, not their content.
_GRAPH = "let all = deps(//...) in $all except kind(lite_file_names, $all)"
_TESTS = 'kind("_test rule", //test/...)'
_MOST = 40


def tests(graph: str, names: set[str]) -> dict[str, int]:
    """File -> how many tests it is an input of.

    Args:
      graph: output of `bazel query --output=graph`.
      names: labels of tests.
    """
    users = collections.defaultdict(list)
    for user, used in re.findall(r'^  "(.+?)" -> "(.+?)"$', graph, re.MULTILINE):
        users[used].append(user)
    counts = {}
    for label in [label for label in users if label.startswith("//")]:
        found, new = set(), [label]
        while new:
            found.update(new)
            new = [user for used in new for user in users[used] if user not in found]
        counts[label.removeprefix("//").lstrip(":").replace(":", "/")] = len(found & names)
    return counts


def compilations(binaries: Path) -> dict[str, int]:
    """File -> how many compilations of the package read it."""
    depfiles = binaries.glob("torch_xla_lite/csrc/*/_objs/*/*.d")
    return collections.Counter(word for file in depfiles for word in {*file.read_text().split()})


def _bazel(*arguments: str) -> str:
    command = [find_bazel.default(), *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("places", nargs="*", help="files or folders, as their paths begin")
    places = tuple(parser.parse_args().places)
    options = ("--noimplicit_deps", "--output=graph", "--nograph:factored")
    named = {*_bazel("query", _TESTS).split()}
    by_tests = tests(_bazel("query", *options, _GRAPH), named)
    compiled = compilations(Path(_bazel("info", "bazel-bin").strip()))
    files = [file for file in by_tests if (ROOT / file).is_file() and file.startswith(places or "")]
    files.sort(key=lambda file: (-by_tests[file], -compiled.get(file, 0), file))
    print("tests  compilations  file")
    for file in files if places else files[:_MOST]:
        print(f"{by_tests[file]:5}  {compiled.get(file, 0):12}  {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
