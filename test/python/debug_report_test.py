"""debug.report() says where the time of graphs went, which form they have, and why."""

import importlib
from pathlib import Path

import pytest
import torch

import torch_xla_lite
from test.python import programs, tiers
from torch_xla_lite import _XLAC, debug
from torch_xla_lite.compiler import new_graphs
from torch_xla_lite.debug import times
from torch_xla_lite.startup import program_lines


@pytest.fixture(autouse=True)
def _interprets_first():
    costs = tiers.per_op(interpretation=1e6, compilation=4e6)
    with tiers.as_by_default(), tiers.using(costs):
        yield


def rows_of(function: str) -> list[times.Row]:
    return [row for row in times.rows() if row.line.endswith(f" in {function}")]


def test_a_graph_that_is_interpreted_says_what_is_missing_until_it_is_compiled():
    def three_times():
        for _ in range(3):
            (torch.ones(201).to("jax") * 2).tolist()

    three_times()
    (row,) = rows_of("three_times")
    assert (row.form, row.runs, row.graphs, row.num_ops) == ("interpreted", 3, 1, 1)
    assert row.missing == "3 of 4 s"
    assert row.seconds > 0


@pytest.mark.needs("interpreter")
def test_a_graph_that_compiling_does_not_make_faster_says_so():
    def once():
        (torch.ones(202).to("jax") * 2).tolist()

    with tiers.using(tiers.per_op(interpretation=1, compilation=1, execution=5)):
        once()
    assert [row.missing for row in rows_of("once")] == ["not faster"]


def test_a_graph_that_was_compiled_has_a_row_for_each_form():
    def seven_times():
        for _ in range(7):
            (torch.ones(203).to("jax") * 2).tolist()

    seven_times()
    rows = {row.form: row for row in rows_of("seven_times")}
    assert {form: row.runs for form, row in rows.items()} == {
        "interpreted": 4,
        "compiling": 1,
        "compiled": 3,
    }
    assert all(row.seconds > 0 and row.missing == "" for row in rows.values())


def test_graphs_of_a_line_that_have_as_many_ops_are_one_row():
    def sizes():
        for size in (204, 205, 205, 206):
            (torch.ones(size).to("jax") * 2).tolist()

    sizes()
    (row,) = rows_of("sizes")
    assert (row.runs, row.graphs, row.missing) == (4, 3, "2 of 4 s")


@pytest.mark.needs("interpreter")
def test_an_op_with_a_lowering_of_the_user_has_a_row_with_its_name():
    @torch.library.custom_op("debug_report_test::three", mutates_args=())
    def three(x: torch.Tensor) -> torch.Tensor:
        return x * 0 + 3

    three.register_fake(lambda x: torch.empty_like(x))
    torch_xla_lite.register_lowering("debug_report_test::three")(lambda x: x * 0 + 3)

    def with_op():
        (three(torch.ones(207).to("jax")) + 1).tolist()

    with_op()
    lines = {row.form: row.line for row in rows_of("with_op")}
    assert lines["compiled"].startswith("debug_report_test::three, in a graph of ")
    assert not lines["interpreted"].startswith("debug_report_test::three")


# The counts are those since the process started, so it is one of its own.
AGREEING = """
import os
os.environ["TORCH_XLA_LITE_COMPILATION_CACHE"] = "0"
import torch, torch_xla_lite as tx
from torch_xla_lite import _XLAC
x = torch.ones(300, 300, device="jax")
for when in ("repeated", "first"):
    _XLAC.set_compile_when(when)
    for _ in range(5):
        x = torch.tanh(x @ x)
        x.sum().item()
metrics, total = tx.debug.metrics(), str(tx.debug.report()).splitlines()[-1]
counts = [metrics[name] for name in ("compiles", "loads", "interpretations", "executions")]
print(total.rpartition(",")[0], counts)
"""


@pytest.mark.needs("interpreter")
def test_the_totals_are_those_of_the_metrics():
    text = programs.run(AGREEING).stdout.strip()
    assert text == "1 compiled, 0 loaded from disk, 5 interpreted, 5 executions [1, 0, 5, 5]"


def test_the_time_of_compiled_runs_has_the_time_that_their_results_took():
    x = torch.ones(600, 600, device="jax") / 600

    def loop(value: torch.Tensor) -> None:
        for _ in range(20):
            value = torch.tanh(value @ x @ x)
            value.sum().item()

    _XLAC.set_compile_when("first")
    loop(x)
    row = next(row for row in rows_of("loop") if row.form == "compiled")
    # Starting a program of so many multiplications takes a small part of what it takes.
    assert row.runs in (19, 20)
    assert row.seconds / row.runs > 1e-4


def test_who_reads_a_value_is_named():
    def make():
        torch.distributions.Normal(torch.zeros(211).to("jax"), torch.ones(211).to("jax"))

    make()
    lines = [str(graph) for graph in debug.explain_recompile() if " in make" in str(graph)]
    assert "read by torch.distributions.distribution.Distribution.__init__" in lines[0]


def test_the_line_that_called_a_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package = tmp_path / "a_package.py"
    package.write_text("def read(x):\n    return (x * 2).sum().item()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(program_lines, "_INSTALLED", (f"{tmp_path}/",))
    read = importlib.import_module("a_package").read
    read(torch.ones(212, device="jax"))
    (line,) = [row.line for row in times.rows() if str(package) in row.line]
    assert line.startswith(f"{package}:2 in read (called at {__file__}:")
    assert line.endswith(f" in {test_the_line_that_called_a_package_is_named.__name__})")


def test_the_report_says_what_a_line_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(new_graphs, "_infos", [])
    _XLAC.set_compile_when("first")
    for size in (5, 6, 7):
        torch.ones(size, device="jax").sum().item()
    waits = str(debug.report()).splitlines()[-1]
    assert "debug_report_test.py" in waits
    assert "for 3 compilations; of the last: " in waits
    assert "size of aten::ones is [7], was [6]" in waits
