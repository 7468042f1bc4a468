"""scripts/op_coverage.py: a part of the database agrees with the CPU, and no op ends a run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import op_coverage

# Of each family one, and the modes of each dtype that tell most: bazel test must not take long.
OPS = ("add", "cumsum", "gather", "index_put", "matmul", "nn_functional_ctc_loss", "sum", "where")
MODES = [
    *(("forward", dtype) for dtype in op_coverage.DTYPES),
    ("backward", "float32"),
    ("inplace", "int64"),
    ("out", "complex64"),
]


@pytest.fixture(scope="module")
def database() -> dict:
    return op_coverage._database()


@pytest.mark.parametrize(("mode", "dtype"), MODES)
def test_a_part_of_the_database_agrees(mode: str, dtype: str, database: dict) -> None:
    jobs = [op_coverage.Job(op, mode, dtype) for op in OPS]
    results = [op_coverage._run(database[job.op], job, num_samples=2) for job in jobs]
    assert [r for r in results if r.status not in ("agrees", "no")] == []
    assert any(result.status == "agrees" for result in results)


def test_results_of_random_ops_are_not_compared(database: dict) -> None:
    for op in ("rand_like", "nn_functional_dropout", "bernoulli"):
        job = op_coverage.Job(op, "forward", "float32")
        assert op_coverage._run(database[op], job, num_samples=2).status == "agrees"


JOB = op_coverage.Job("add", "forward", "float32")


def test_a_process_that_crashes_or_hangs_is_replaced() -> None:
    child = op_coverage._Child(num_samples=1)
    child._process.kill()
    assert child.run(JOB, timeout=60).status == "crashes"
    child._is_fresh = False
    assert child.run(JOB, timeout=0).status == "timeout"
    assert child.run(JOB, timeout=60).status == "agrees"
    child._stop()


def test_the_results_are_a_table_and_json(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    process = subprocess.run(
        [sys.executable, op_coverage.__file__, "--op", "linalg_ldl_factor_ex", "--json", str(file)],
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.endswith("| forward | float32 | 1 | 0 | 0 | 0 | 0 | 0 | 0 |\n")
    (result,) = json.loads(file.read_text())
    assert result["status"] == "agrees"
    assert result["fallbacks"] == ["aten::linalg_ldl_factor_ex"]
