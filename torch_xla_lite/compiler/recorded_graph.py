"""A recorded graph as the bridge describes it, and the key of its program.

    RecordedGraph.of(steps, roots).key()

The key is the same in every process that would make the same machine code.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..lowering.base import registry, target
from ..mesh.base import placements
from ..mesh.base.placements import Root
from . import compilation_cache, graph_errors, jax_programs, words

# A shape as the bridge passes it: torch's number of the dtype, and the dimensions.
Shape = tuple[int, tuple[int, ...]]


def struct(shape: Shape) -> jax.ShapeDtypeStruct:
    dtype, dims = shape
    return jax.ShapeDtypeStruct(dims, registry.DTYPES[dtype])


@dataclasses.dataclass(frozen=True)
class Call:
    """One op call of a graph.

    Attributes:
      words: its arguments, see words.py.
      operands: (step, result) of each.
      outputs: a `Shape` for each result; None for those that torch leaves undefined.
      num_scalars: how many of the graph's scalars are its own.
      source: the line that recorded it, if known.
      written: of a write through a view, which the op makes: which of its results.
    """

    op: str
    words: list[int]
    operands: list[tuple[int, int]]
    outputs: list[Shape | None]
    num_scalars: int
    source: str
    written: int | None

    @property
    def outs(self) -> list[jax.ShapeDtypeStruct | None]:
        """Shapes and dtypes of the outputs, as jax has them."""
        return [None if shape is None else struct(shape) for shape in self.outputs]

    def description(self, programs: dict[int, int]) -> tuple:
        """What decides how the call is compiled, without addresses: equal in every process.

        Args:
          programs: the place of each program of jax (jax_programs.py) among those of the graph, by
            the number that it has in this process. Those that are new are added.
        """
        arguments = words.argument_words(self.op, self.words)
        if self.op == jax_programs.OP:
            arguments[-1] = programs.setdefault(arguments[-1], len(programs))
        default = str(words.default_dtype(self.words))
        own = self.op, self.written, default, arguments
        return *own, self.operands, self.outputs, self.num_scalars

    def describe(self, message: str) -> str:
        """`message`, which op it is about, and the line that recorded the op."""
        # An assertion's message names the op that needs it (lowering/python_kernels/composites.py).
        where = "" if " (in aten::" in message else f" (in {self.op})"
        return graph_errors.with_sources(f"{message}{where}", [self.source])


@dataclasses.dataclass(frozen=True, eq=False)
class RecordedGraph:
    """Steps of which each comes after those that it uses.

    Attributes:
      calls: one for each step; None for a leaf.
      leaves: (dtype, dims, donated, placement) of each, in the order of their steps.
      roots: (step, result, placement) of each value to compute; a placement of None is for the
        compiler to choose.
    """

    calls: Sequence[Call | None]
    leaves: Sequence[tuple]
    roots: Sequence[Root]

    @staticmethod
    def of(steps: Sequence[tuple], roots: Sequence[Root]) -> RecordedGraph:
        """The graph of steps as the bridge gives them: a leaf, or the fields of a `Call`."""
        calls = [Call(*step) if isinstance(step[0], str) else None for step in steps]
        return RecordedGraph(calls, [s for s in steps if not isinstance(s[0], str)], roots)

    @functools.cached_property
    def mesh(self) -> Mesh | None:
        """The devices that it is for, if not for one: those of its leaves, or of constraints.

        Raises:
          RuntimeError: there are two meshes.
        """
        numbers = [placement for *_, placement in self.leaves]
        numbers += [
            placements.mesh_of_constraint(words.constants(call.op, call.words)["spec"])
            for call in self.calls
            if call is not None and call.op == placements.CONSTRAIN
        ]
        return placements.mesh_of(numbers)

    @property
    def is_shared(self) -> bool:
        """Whether other processes run it, too."""
        return self.mesh is not None and jax.process_count() > 1

    @functools.cached_property
    def description(self) -> str:
        """What decides how the graph is compiled, equal in every process."""
        programs: dict[int, int] = {}
        steps = [call if call is None else call.description(programs) for call in self.calls]
        takes = [(*leaf[:3], placements.text_of(leaf[3])) for leaf in self.leaves]
        gives = [(*root[:2], root[2] and placements.text_of(root[2])) for root in self.roots]
        return repr((steps, takes, gives))

    def key(self, traced: str = "") -> str | None:
        """The key of its program on disk; None if nothing is kept there.

        Args:
          traced: the text of what jax has traced, for a graph that `is_known_when_traced`. The
            description counts, too, because a program names ops and steps of its graph.
        """
        precision = target.float32_precision()
        settings = placements.devices_text(self.mesh) + (precision.name if precision else "")
        return compilation_cache.key(self.description + traced + settings)

    @functools.cached_property
    def is_known_when_traced(self) -> bool:
        """Whether a jax function or a lowering of the user may be part of it, also in a
        decomposition of torch: what these do is known only after they were traced."""
        ops = {call.op for call in self.calls if call is not None}
        return jax_programs.OP in ops or any(
            op in ops or op.startswith("aten::") for op in registry.registered_by_users()
        )

    def placements_in(self, program: jax.stages.Compiled) -> tuple[list[int], list[int]] | None:
        """Where a program for its mesh takes its leaves, and where it leaves its results; None for
        a graph of one device."""
        if self.mesh is None:
            return None
        replicated = placements.number_of(NamedSharding(self.mesh, PartitionSpec()), 0)
        takes = [placement or replicated for *_, placement in self.leaves]
        results = program.output_shardings
        gives = [
            placements.number_of_result(
                results[i], self.mesh, len(self.calls[step].outputs[output][1])
            )
            for i, (step, output, _) in enumerate(self.roots)
        ]
        return takes, gives
