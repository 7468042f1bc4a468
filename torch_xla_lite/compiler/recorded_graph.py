"""A recorded graph as the bridge describes it, and the key of its program.

    RecordedGraph.of(steps, roots).key()

The key is the same in every process that would make the same machine code.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from torch_xla_lite.startup.late_jax import jax

from ..lowering.base import registry, target
from ..mesh.base import placements
from ..mesh.base.placements import Root
from . import compilation_cache, graph_errors, jax_programs, words

if TYPE_CHECKING:
    from jax.sharding import Mesh, NamedSharding

# A shape as the bridge passes it: torch's number of the dtype, and the dimensions.
Shape = tuple[int, tuple[int, ...]]


def struct(shape: Shape) -> jax.ShapeDtypeStruct:
    dtype, dims = shape
    return jax.ShapeDtypeStruct(dims, registry.DTYPES[dtype])


@dataclasses.dataclass(frozen=True, slots=True)
class Leaf:
    """An array that a graph takes, as a step: `outputs` is its shape, and all else that a `Call`
    has is nothing.

    Attributes:
      donated: whether the graph may overwrite it.
      placement: where it is (placements.py).
    """

    dtype: int
    dims: tuple[int, ...]
    donated: bool
    placement: int

    op: ClassVar[str] = ""
    label: ClassVar[str] = ""
    source: ClassVar[str] = ""
    operands: ClassVar[Sequence[tuple[int, int]]] = ()
    num_scalars: ClassVar[int] = 0

    @property
    def outputs(self) -> list[Shape | None]:
        return [(self.dtype, self.dims)]

    def description(self, _: dict[int, int]) -> tuple:
        return self.dtype, self.dims, self.donated, placements.text_of(self.placement)


@dataclasses.dataclass(frozen=True, slots=True)
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
    def label(self) -> str:
        """The op, as in `aten::relu`, or `a write through aten::t`."""
        return self.op if self.written is None else f"a write through {self.op}"

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
      roots: (step, result, placement) of each value to compute; a placement of None is for the
        compiler to choose.
    """

    steps: Sequence[Leaf | Call]
    roots: Sequence[Root]

    @classmethod
    def of(cls, steps: Sequence[tuple], roots: Sequence[Root]) -> Self:
        """The graph of steps as the bridge gives them: the fields of a `Leaf` or a `Call`."""
        return cls([Call(*s) if isinstance(s[0], str) else Leaf(*s) for s in steps], roots)

    @functools.cached_property
    def leaves(self) -> list[Leaf]:
        return [step for step in self.steps if isinstance(step, Leaf)]

    @property
    def calls(self) -> list[Call]:
        return [step for step in self.steps if isinstance(step, Call)]

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """The label of each step."""
        return tuple(step.label for step in self.steps)

    @functools.cached_property
    def counts(self) -> collections.Counter[str]:
        """How often each label is among the steps."""
        return collections.Counter(self.labels)

    @functools.cached_property
    def mesh(self) -> Mesh | None:
        """The devices that it is for, if not for one: those of its leaves, or of constraints.

        Raises:
          RuntimeError: there are two meshes.
        """
        numbers = [leaf.placement for leaf in self.leaves]
        numbers += [
            placements.mesh_of_constraint(words.constants(call.op, call.words)["spec"])
            for call in self.calls
            if call.op == placements.CONSTRAIN
        ]
        return placements.mesh_of(numbers)

    @property
    def structs(self) -> list[jax.ShapeDtypeStruct]:
        """Shapes and dtypes of the leaves, and of the scalars if there are any."""
        count = sum(step.num_scalars for step in self.steps)
        scalars = [jax.ShapeDtypeStruct((count, 2), np.int32)] if count else []
        return [*(struct((leaf.dtype, leaf.dims)) for leaf in self.leaves), *scalars]

    @property
    def donated(self) -> tuple[int, ...]:
        """The leaves that it may overwrite."""
        return tuple(i for i, leaf in enumerate(self.leaves) if leaf.donated)

    @property
    def everywhere(self) -> NamedSharding:
        """What each device of the mesh has in full."""
        return jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec())

    @property
    def shardings(self) -> tuple[list[NamedSharding], list[NamedSharding | None]]:
        """Where its program for a mesh takes the leaves and leaves the roots; None for wherever XLA
        does."""
        takes, gives = [leaf.placement for leaf in self.leaves], [root[2] for root in self.roots]
        return (
            [placements.sharding_of(place) if place else self.everywhere for place in takes],
            [placements.sharding_of(place) if place else None for place in gives],
        )

    @property
    def is_shared(self) -> bool:
        """Whether other processes run it, too."""
        return self.mesh is not None and jax.process_count() > 1

    @property
    def description(self) -> str:
        """What decides how the graph is compiled, equal in every process."""
        programs: dict[int, int] = {}
        steps = [step.description(programs) for step in self.steps]
        gives = [(*root[:2], root[2] and placements.text_of(root[2])) for root in self.roots]
        return repr((steps, gives))

    def key(self, traced: str = "") -> str | None:
        """The key of its program on disk; None if nothing is kept there.

        Args:
          traced: the text of what jax has traced, for a graph that `is_known_when_traced`. The
            description counts, too, because a program names ops and steps of its graph.
        """
        precision = target.float32_precision()
        settings = placements.devices_text(self.mesh) + (precision.name if precision else "")
        return compilation_cache.key(self.description, traced + settings)

    @functools.cached_property
    def is_known_when_traced(self) -> bool:
        """Whether a jax function or a lowering of the user may be part of it, also in a
        decomposition of torch: what these do is known only after they were traced."""
        ops = {step.op for step in self.steps}
        return jax_programs.OP in ops or any(
            op in ops or op.startswith("aten::") for op in registry.registered_by_users()
        )

    def placements_in(self, program: jax.stages.Compiled) -> tuple[list[int], list[int]] | None:
        """Where a program for its mesh takes its leaves, and where it leaves its results; None for
        a graph of one device."""
        if self.mesh is None:
            return None
        everywhere = placements.number_of(self.everywhere, 0)
        takes = [leaf.placement or everywhere for leaf in self.leaves]
        results = program.output_shardings
        gives = [
            placements.number_of_result(
                results[i], self.mesh, len(self.steps[step].outputs[output][1])
            )
            for i, (step, output, _) in enumerate(self.roots)
        ]
        return takes, gives
