"""scripts/bench/edit_costs.py: what it counts in answers of Bazel and in depfiles."""

from pathlib import Path

from scripts.bench import edit_costs

_GRAPH = """\
digraph mygraph {
  node [shape=box];
  "//test:a_test"
  "//test:a_test" -> "//test:a_test.py"
  "//test:a_test" -> "//package:b"
  "//test:other_test" -> "//package:b"
  "//package:b" -> "//package:b.py"
  "//package:b" -> "//package:c"
  "//package:c" -> "//:c.txt"
  "//package:c" -> "@python//:packages.txt"
}
"""


def test_an_edit_runs_the_tests_that_use_the_file_through_others_too():
    counts = edit_costs.tests(_GRAPH, {"//test:a_test", "//test:other_test"})
    files = {"test/a_test.py": 1, "package/b.py": 2, "c.txt": 2}
    assert {file: counts[file] for file in files} == files
    assert "@python//:packages.txt" not in counts


def test_a_header_costs_each_compilation_that_read_it_once(tmp_path: Path):
    for name, headers in {"a": "ir/a.h ir/b.h ir/a.h", "b": "ir/b.h"}.items():
        depfile = tmp_path / "torch_xla_lite" / "csrc" / "ir" / "_objs" / name / f"{name}.d"
        depfile.parent.mkdir(parents=True)
        depfile.write_text(f"{name}.o: {headers}\n")
    counts = edit_costs.compilations(tmp_path)
    assert (counts["ir/a.h"], counts["ir/b.h"]) == (1, 2)
