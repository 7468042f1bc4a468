"""scripts/op_coverage.py: its results are a file and a table, and no op ends a run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import op_coverage, op_results
from scripts.op_results import Job, Result

JOB = Job("add", "forward", "float32")


@pytest.mark.nightly
def test_a_process_that_crashes_or_hangs_is_replaced() -> None:
    child = op_coverage._Child(num_samples=1)
    child._process.kill()
    assert child.run(JOB, timeout=300).status == "crashes"
    child._is_fresh = False
    assert child.run(JOB, timeout=0).status == "timeout"
    assert child.run(JOB, timeout=300).status == "agrees"
    child._stop()


TABLE = """\
| mode | dtype | the CPU computes | passes | passes without fallback | accepts | differs | raises |\
 timeout | crashes | extends | tpu |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
| forward | float32 | 1 | 1 (100.0 %) | 0 (0.0 %) | 0 | 0 | 0 | 0 | 0 | 0 | 0 |
"""


@pytest.mark.nightly
def test_the_results_are_a_table_and_json_and_are_continued(tmp_path: Path) -> None:
    file, document = tmp_path / "results.json", tmp_path / "results.md"
    document.write_text("\n".join(("before", *op_results.MARKS, "after")))

    def run(*options: str) -> str:
        command = [sys.executable, op_coverage.__file__, "--json", str(file), *options]
        command += ["--op", "linalg_ldl_factor_ex", "--verbose"]
        process = subprocess.run(command, capture_output=True, text=True)
        assert process.returncode == 0, process.stderr
        return process.stdout

    assert run() == "linalg_ldl_factor_ex forward float32 agrees \n" + TABLE
    assert run("--markdown", str(document)) == TABLE
    assert json.loads(file.read_text()) == {
        "linalg_ldl_factor_ex": {
            "agrees": {"forward": "float32"},
            "fallbacks": {"aten::linalg_ldl_factor_ex": {"forward": "float32"}},
        }
    }
    assert document.read_text().startswith("before\n")
    assert TABLE in document.read_text()


def result(op: str, mode: str, dtype: str, status: str, **details) -> Result:
    return Result(op, mode, dtype, status, **details)


def test_a_file_has_one_line_for_all_ops_with_the_same_results(tmp_path: Path) -> None:
    results = [
        result("add", "forward", "bool", "agrees"),
        result("add", "forward", "float32", "agrees", fallbacks=("aten::a", "aten::b")),
        result("add", "out", "float32", "raises", detail="because"),
        result("mul", "forward", "float32", "agrees", on_paper="compiles"),
        result("svd", "forward", "float32", "agrees", on_paper="on the host"),
        result("neg", "forward", "bool", "no"),
        result("not", "forward", "bool", "no"),
    ]
    jobs = {Job(x.op, x.mode, x.dtype): x for x in results}
    op_results.write(jobs, tmp_path / "results.json")
    assert len((tmp_path / "results.json").read_text().splitlines()) == 6
    assert op_results.read(tmp_path / "results.json") == jobs
    assert "| `add` | out float32 | because |" in op_results.failures(jobs)
    assert "| `svd` | forward float32 | on the host |" in op_results.not_on_tpu(jobs)
    assert "`mul`" not in op_results.not_on_tpu(jobs)
    assert " 1 (50.0 %) |" in op_results.table(jobs)


def test_an_error_of_a_write_leaves_no_other_file(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    file.mkdir()
    with pytest.raises(OSError, match="directory"):
        op_results.write({}, file)
    assert list(tmp_path.iterdir()) == [file]


def test_the_document_has_the_table_of_the_results() -> None:
    docs = Path(__file__).parents[2] / "docs"
    results = op_results.read(docs / "op_coverage.json")
    assert op_results.section(results) in (docs / "op_coverage.md").read_text()
