"""Shows what happened to recorded ops: counts, new graphs and their causes, the pending graph.

    torch_xla_lite.debug.reset_metrics()
    train_one_step()
    torch_xla_lite.debug.metrics()
    # {'compiles': 0, 'loads': 0, 'executions': 0, 'cache_hits': 0, 'interpretations': 1,
    #  'recorded_ops': 46, 'fallbacks': {}}
    print(*torch_xla_lite.debug.explain_recompile(), sep="\\n")
    # train.py:31 in <module>: the first graph
    # train.py:31 in <module>: input 0 is float32[7,784], was float32[64,784] (interpreted)
    print(torch_xla_lite.debug.report())      # seconds and runs of each graph
    print(torch_xla_lite.debug.graph())       # what would run now

With TORCH_XLA_LITE_IR_DEBUG=1 in the environment every recorded op remembers the line that recorded
it, and the error of an op that fails when the graph runs names that line. It costs a walk up the
Python stack for each op.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

from .. import _XLAC
from ..compiler import edited_lowerings, new_graphs
from ..compiler.new_graphs import NewGraph
from ..lowering.base import registry
from ..mesh.base import communication, placements
from ..startup import preflight, variables
from . import times
from .tables import Table, short_path

if TYPE_CHECKING:
    import torch

    from .comparison import Comparison
    from .graph_view import PendingGraph

_WITH_LINES = ("TORCH_XLA_LITE_IR_DEBUG", "TORCH_XLA_LITE_CHECK_INDICES")


class Metrics(TypedDict):
    """Counts since the process started or since reset_metrics()."""

    compiles: int  # graphs, and operations of interpreted graphs, that XLA compiled
    loads: int  # graphs whose compiled program was on disk (compilation_cache.py)
    executions: int  # graphs that ran compiled
    interpretations: int  # graphs that ran without being compiled (compiler.py)
    planned: int  # of these, runs of graphs that came back, by a plan
    plans: int  # plans that were made
    cache_hits: int  # graphs that ran with the program of an earlier, equal graph
    recorded_ops: int  # ops that were recorded
    fallbacks: dict[str, int]  # op -> how often torch's CPU kernel ran in place of XLA's code
    gathered: dict[str, int]  # op -> how often all devices of a mesh ran it on all of the data


def metrics() -> Metrics:
    """The current counts. Does not run the recorded ops."""
    return {**_XLAC.metrics(), "gathered": dict(communication.gathered)}


def reset_metrics() -> None:
    """Sets all counts to zero. Compiled graphs stay in the cache."""
    _XLAC.reset_metrics()
    communication.gathered.clear()


class NewGraphs(list[NewGraph]):
    """A list that interpreters and notebooks show as a table."""

    def __repr__(self) -> str:
        return str(self._table())

    def _repr_html_(self) -> str:
        return self._table().html()

    def _table(self) -> Table:
        rows = []
        for graph in self:
            program = "compiled" if not graph.loaded else "loaded"
            program = "interpreted" if graph.interpreted else program
            rows.append((program, str(graph.num_ops), f"{short_path(graph.line)}: {graph.cause}"))
        return Table(("program", "ops", "line: what is new"), rows, wraps=True)


class Report(str):
    """The text of a table, which notebooks show as one."""

    table: Table

    def __new__(cls, table: Table) -> Report:
        report = super().__new__(cls, table)
        report.table = table
        return report

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.table.html()


def explain_recompile() -> NewGraphs:
    """Each graph that was new, with the line that needed it and what differs from the most similar
    graph before it: an op, the shape of an input, a constant, torch's default dtype, or donation.

    A graph that is interpreted and later compiled is one graph. Graphs are forgotten, oldest first,
    when there are more than 1,000, or more than 20,000 ops in all. A line of the program that
    compiles its tenth graph gets a `RecompilationWarning` with the cause.

    Example:
      >>> print(*torch_xla_lite.debug.explain_recompile(), sep="\\n")
      train.py:31 in <module>: the first graph
      train.py:31 in <module>: input 0 is float32[7,784], was float32[64,784] (interpreted)

    The list itself is shown as a table.
    """
    return NewGraphs(new_graphs.explain())


def report() -> Report:
    """A table of the time that the process spent on graphs since it started, the most expensive
    ones first: of their runs, interpreted and compiled, and of compiling or loading them.

    Graphs of one line of the program that have as many ops are one row. "until compiled" says why
    a graph is interpreted: what its runs have cost and at which cost it is compiled, by the model
    of costs, or that a compiled run is not faster. An op that interpreted graphs run compiled, such
    as one with a lowering of the user, has rows of its own, with its name. At the end are lines of
    the program that waited for more than two compilations, and what the last was needed for.

    Example:
      >>> torch_xla_lite.debug.report()
      seconds  runs  graphs  ops         form  until compiled  line
         1.90    60       1    3     compiled                  train.py:31 in step
         0.31     1       1    3    compiling                  train.py:31 in step
         0.02     8       1   46  interpreted   0.016 of 3 s   train.py:9 in load
      1 compiled, 0 loaded from disk, 8 interpreted, 60 executions, 2.23 s
    """
    rows = times.rows()
    new = new_graphs.all_graphs()
    loaded = sum(graph.loaded for graph in new)
    parts = {graph.number for graph in new if graph.op}
    executions = sum(
        runs for number, (runs, _) in enumerate(_XLAC.executions()) if number not in parts
    )
    interpreted = sum(row.runs for row in rows if row.form == "interpreted")
    return Report(
        Table(
            ("seconds", "runs", "graphs", "ops", "form", "until compiled", "line"),
            [
                (
                    f"{row.seconds:.2f}",
                    *map(str, (row.runs, row.graphs, row.num_ops)),
                    row.form,
                    row.missing,
                    short_path(row.line),
                )
                for row in rows
            ],
            "\n".join(
                [
                    f"{len(new) - loaded} compiled, {loaded} loaded from disk, "
                    f"{interpreted} interpreted, {executions} executions, "
                    f"{sum(row.seconds for row in rows):.2f} s",
                    *map(short_path, times.waits()),
                ]
            ),
        )
    )


def compare(function: Callable[..., Any], *args: Any) -> Comparison:
    """Runs a function on the device and each of its operations on the CPU, too, and names the first
    whose results differ, with the line of the program and the difference.

    Each operation gets the same operands on both. Graphs are compiled, so that lowerings compute
    them. Random operations are left out.

    Args:
      function: such as a step of training. Modules that it uses are on the device.
      *args: its arguments; tensors are copied to the device.

    Example:
      >>> torch_xla_lite.debug.compare(model, images)
      aten::gelu at net.py:9 in forward: 12 of 64 elements differ, most at [3]: 0.5 here, 2.0 on ...
    """
    from . import comparison  # Most programs do not compare.

    return comparison.compare(function, *args)


def use_lowerings(*ops: str) -> None:
    """Graphs that are interpreted run the lowerings of these ops, as compiled ones do, in place of
    torch's kernels: to see what a lowering computes.

    In a checkout, lowerings that were edited before the import are used without a call.

    Args:
      *ops: such as "aten::relu"; without any, those whose functions were edited in the checkout.

    Raises:
      ValueError: an op has no lowering.
    """
    unknown = [str(op) for op in ops if registry.find(op) is None]
    if unknown:
        raise ValueError(
            f"{', '.join(unknown)}: there is no such lowering.\n"
            "Name it as in its decorator:  "
            'torch_xla_lite.debug.use_lowerings("aten::add.Tensor")'
        )
    edited_lowerings.use(ops or edited_lowerings.ops(preflight.PACKAGE.parent))


def shardings(module: torch.nn.Module) -> str:
    """A table of the parameters and buffers of a module: where on the mesh each is, and the bytes
    that one device has of it.

    Example:
      >>> print(torch_xla_lite.debug.shardings(model))
      name       tensor           place       bytes of a device
      up.weight  float32[256,64]  P('model')              16384
    """
    rows = [("name", "tensor", "place", "bytes of a device")]
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        dtype = str(tensor.dtype).removeprefix("torch.")
        text = f"{dtype}[{','.join(map(str, tensor.shape))}]"
        number = _XLAC.placement_of(tensor) if tensor.device.type == "jax" else None
        if number is None:
            place, size = "not on jax" if tensor.device.type != "jax" else "not decided", ""
        else:
            place = placements.spec_text(number)
            size = str(placements.num_bytes(number, tensor.shape, tensor.element_size()))
        rows.append((name, text, place, size))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        f"{name:{widths[0]}}  {text:{widths[1]}}  {place:{widths[2]}}  {size:>{widths[3]}}"
        for name, text, place, size in rows
    )


def collectives() -> list[tuple[str, dict[str, tuple[int, int]]]]:
    """The communication of each program that was compiled or loaded for a mesh, oldest first: the
    line that needed it, and by kind how many collectives it has and how many bytes of their
    results one device gets in each execution.

    Example, a training step with parameters that are divided:
      >>> torch_xla_lite.debug.collectives()[-1]
      ('train.py:31 in step', {'all-gather': (37, 664576), 'all-reduce': (3, 664586)})
    """
    on_mesh = [graph for graph in new_graphs.all_graphs() if graph.placements is not None]
    return [(graph.line, graph.collectives) for graph in on_mesh]


def graph() -> PendingGraph:
    """The ops that this thread has recorded and that nothing has run yet, as text and as SVG.

    Example:
      >>> x = torch.ones(2, device="jax") * 3
      >>> print(torch_xla_lite.debug.graph())
      %0 = aten::ones() -> float32[2]
      %1 = aten::mul.Tensor(%0) -> float32[2]
      needed: %1
      >>> torch_xla_lite.debug.graph().save("graph.svg")
    """
    from .graph_view import pending  # Most programs do not look.

    return pending()


def register() -> None:
    """Enables line recording if a variable is set whose errors name lines."""
    if any(variables.enabled(os.environ, name) for name in _WITH_LINES):
        from .recorded_lines import describe

        _XLAC.set_ir_debug(describe)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "collectives",
    "compare",
    "explain_recompile",
    "graph",
    "metrics",
    "report",
    "reset_metrics",
    "shardings",
    "use_lowerings",
]
