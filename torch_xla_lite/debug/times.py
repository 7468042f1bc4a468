"""What graphs have cost so far, for debug.report().

rows()      # [Row("compiled", "train.py:31 in step", 3, seconds=1.9, runs=60), ...]
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from .. import _XLAC
from ..compiler import new_graphs


@dataclasses.dataclass
class Row:
    """Graphs of one line of the program that have as many ops, in one form.

    Attributes:
      form: "interpreted", "compiled", or what was done for that: "compiling", "loading".
      line: of the program; with the name of an op that ran compiled in an interpreted graph.
      num_ops: of each.
      seconds: of all runs.
      runs: how often they ran, or were compiled or loaded.
      graphs: how many they are.
      missing: what the runs of the graph have cost, also in earlier processes, and at which cost it
        is compiled, or that it is never compiled. Of several graphs, that of the one which is next.
      progress: the ratio of these costs.
    """

    form: str
    line: str
    num_ops: int
    seconds: float
    runs: int
    graphs: int = 1
    missing: str = ""
    progress: float = 0.0

    def add(self, other: Row) -> None:
        self.seconds += other.seconds
        self.runs += other.runs
        self.graphs += other.graphs
        if other.progress > self.progress:
            self.missing, self.progress = other.missing, other.progress


def rows() -> list[Row]:
    """All graphs of the process, the most expensive ones first."""
    groups: dict[tuple, Row] = {}
    for row in (*_interpreted(), *_compiled()):
        key = (row.form, row.line, row.num_ops, row.progress > 0)
        if key in groups:
            groups[key].add(row)
        else:
            groups[key] = row
    return sorted(groups.values(), key=lambda row: -row.seconds)


def _interpreted() -> Iterator[Row]:
    compiled = {info.structure for info in new_graphs.all_graphs()}
    accounts = _XLAC.cost_accounts()
    for structure, place, num_ops, runs, seconds in _XLAC.interpreted_graphs():
        row = Row("interpreted", str(place), num_ops, seconds, runs)
        if structure is None:
            row.line, row.graphs = "(graphs that are forgotten)", 0
        elif structure not in compiled and structure in accounts:
            spent, needed, pays, _, processes = accounts[structure]
            of = f", in {processes + 1} processes" if processes else ""
            row.missing = f"{spent / 1e6:.2g} of {needed / 1e6:.2g} s{of}" if pays else "not faster"
            row.progress = spent / needed if pays and needed else 0.0
        yield row


def _compiled() -> Iterator[Row]:
    executions = dict(enumerate(_XLAC.executions()))
    for info in new_graphs.all_graphs():
        line = f"{info.op}, in a graph of {info.line}" if info.op else info.line
        yield Row("loading" if info.loaded else "compiling", line, info.num_ops, info.seconds, 1)
        runs, seconds = executions.get(info.number, (0, 0.0))
        yield Row("compiled", line, info.num_ops, seconds, runs)


def waits() -> list[str]:
    """What lines of the program that compiled several graphs waited for, and why the last of these
    was new: the shape to keep constant. The longest first, at most three."""
    compiled: dict[str, list[new_graphs.NewGraph]] = {}
    for graph in new_graphs.all_graphs():
        if not (graph.loaded or graph.op):
            compiled.setdefault(graph.line, []).append(graph)
    seconds = {line: sum(graph.seconds for graph in graphs) for line, graphs in compiled.items()}
    repeated = sorted((line for line in compiled if len(compiled[line]) > 2), key=seconds.get)
    return [
        f"{line} waited {seconds[line]:.1f} s for {len(compiled[line])} compilations; of the last: "
        f"{new_graphs.cause(compiled[line][-1])}"
        for line in repeated[:-4:-1]
    ]
