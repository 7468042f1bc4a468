"""Traces a recorded graph with jax, op by op in recorded order.

Each op is lowered by the first of these that supports it:

    lowering.base.registry        a lowering of this project: XLA fuses it with its neighbours
    lowering.base.decomposition   PyTorch's decomposition, if all its ops have lowerings
    lowering.base.ffi             the ATen CPU kernel, called by XLA; counted as a fallback
    lowering.base.host            the same from devices whose memory the CPU cannot read
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..lowering.base import checks, ffi, promotion, registry, target
from ..lowering.base.mesh import note_gathered, on_mesh
from ..mesh.base import placements
from ..mesh.base.placements import Root
from . import foreign_code, graph_errors, index_errors, jax_programs, stored_values
from .words import Decoder, argument_words, default_dtype, split_name

# A shape as the bridge passes it: torch's number of the dtype, and the dimensions.
Shape = tuple[int, tuple[int, ...]]


@dataclasses.dataclass(frozen=True)
class LoweredGraph:
    """A graph as programs for XLA: one, or the two of foreign_code.py with the order of their
    results. The other fields are those of `Program`."""

    parts: tuple[jax.stages.Lowered, ...]
    order: tuple[int, ...]
    fallbacks: tuple[str, ...]
    foreign: frozenset[str]
    checks: tuple[tuple[int, str, str], ...]
    gathered: tuple[str, ...] = ()


def lower_graph(
    calls: Sequence[Call | None],
    leaves: Sequence[tuple],
    roots: Sequence[Root],
    mesh: Mesh | None = None,
) -> LoweredGraph:
    """Traces a graph and lowers it to programs for XLA, under `jax.enable_x64(True)`.

    Args:
      calls: one for each step; None for a leaf.
      leaves: (dtype, dims, donated, placement) of each.
      roots: of each value to compute.
      mesh: the devices that the graph is for, if not for one.

    Raises:
      RuntimeError: calls could not be lowered; `graph_errors.blaming` marks all that fail.
    """
    num_scalars = sum(call.num_scalars for call in calls if call is not None)
    by_ffi: list[str] = []
    found: list[tuple[int, str, str]] = []

    def run(*arguments: jax.Array) -> list[jax.Array]:
        by_ffi.clear()  # jax may trace this a second time.
        found.clear()
        failed: list[jax.Array] = []
        errors: dict[int, Exception] = {}
        stored = _stored(calls)
        inputs = iter(arguments)
        scalars = Scalars.unpack(arguments[-1] if num_scalars else jnp.zeros((0, 2), np.int32))
        results: list[list[jax.Array | None]] = []
        for number, call in enumerate(calls):
            if call is None:
                results.append([next(inputs)])
                continue
            operands = [results[step][output] for step, output in call.operands]
            with checks.collect(index_errors.enabled()) as of_call:
                try:
                    results.append(call.lower(operands, scalars, by_ffi, number))
                except Exception as error:
                    if graph_errors.is_lack_of_memory(error):
                        raise
                    errors[number] = error
                    # The other calls are traced all the same, to find all that fail.
                    results.append([None if x is None else jnp.zeros_like(x) for x in call.outs])
            if number in stored:
                results[-1] = [None if x is None else ffi.store(x) for x in results[-1]]
            failed += [lax.reshape(check.failed, (1,)) for check in of_call]
            found.extend((number, check.message, check.error.__name__) for check in of_call)
        if errors:
            raise graph_errors.blaming(errors, next(iter(errors.values())))
        values = [results[step][output] for step, output, _ in roots]
        return [*values, lax.concatenate(failed, 0)] if failed else values

    structs = [_struct((dtype, dims)) for dtype, dims, *_ in leaves]
    if num_scalars:
        structs.append(jax.ShapeDtypeStruct((num_scalars, 2), np.int32))
    donated = tuple(i for i, (_, _, is_donated, _) in enumerate(leaves) if is_donated)
    if mesh is not None:
        with on_mesh(mesh) as gathered:
            traced = jax.jit(run, keep_unused=True).trace(*structs)
        foreign = frozenset(foreign_code.ops(traced.jaxpr))
        may_fail = foreign or (found and index_errors.immediate())
        # A program that may fail must not use up its arguments.
        lowered = _on_mesh(traced, leaves, roots, () if may_fail else donated, mesh)
        # Nor does XLA divide the code of others.
        all_of = (*gathered, *sorted(foreign - {*gathered}))
        return LoweredGraph((lowered,), (), tuple(by_ffi), foreign, tuple(found), all_of)
    traced = jax.jit(run, keep_unused=True, donate_argnums=donated).trace(*structs)
    foreign = foreign_code.ops(traced.jaxpr)
    about = (tuple(by_ffi), frozenset(foreign), tuple(found))
    may_fail = foreign or (found and index_errors.immediate())
    parts = None
    if may_fail and not index_errors.immediate():
        parts = foreign_code.split(traced.jaxpr, donated)
    if parts is not None:
        return LoweredGraph(parts.lowered, parts.order, *about)
    if not donated or not may_fail:
        return LoweredGraph((traced.lower(),), (), *about)
    # A program that may fail must not use up its arguments.
    from jax.extend import core

    function = core.jaxpr_as_fun(traced.jaxpr)
    return LoweredGraph((jax.jit(function, keep_unused=True).lower(*structs),), (), *about)


def _on_mesh(
    traced: jax.stages.Traced,
    leaves: Sequence[tuple],
    roots: Sequence[Root],
    donated: tuple[int, ...],
    mesh: Mesh,
) -> jax.stages.Lowered:
    """A graph as one program that all devices of a mesh run. What is not among its leaves and
    roots, the scalars and the outcome of checks, each device has in full."""
    from jax.extend import core

    replicated = NamedSharding(mesh, PartitionSpec())
    takes = [
        placements.sharding_of(placement) if placement else replicated for *_, placement in leaves
    ]
    gives: list[NamedSharding | None] = [
        placements.sharding_of(placement) if placement else None for *_, placement in roots
    ]
    jaxpr = traced.jaxpr
    structs = [
        jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=place)
        for aval, place in itertools.zip_longest(jaxpr.in_avals, takes, fillvalue=replicated)
    ]
    gives += [replicated] * (len(jaxpr.out_avals) - len(gives))
    function = core.jaxpr_as_fun(jaxpr)
    jitted = jax.jit(function, keep_unused=True, donate_argnums=donated, out_shardings=gives)
    with on_mesh(mesh):
        return jitted.lower(*structs)


def _stored(calls: Sequence[Call | None]) -> set[int]:
    if not target.fuses_too_much():
        return set()
    return stored_values.find(
        [call and stored_values.Op(call.op, [step for step, _ in call.operands]) for call in calls]
    )


@dataclasses.dataclass(frozen=True)
class Call:
    """One op call of a graph."""

    op: str
    words: list[int]
    operands: list[tuple[int, int]]
    outputs: list[Shape | None]
    num_scalars: int
    source: str
    written: int | None  # Of a write through a view, which the op makes: which of its results.

    @property
    def outs(self) -> list[jax.ShapeDtypeStruct | None]:
        """Shapes and dtypes of the outputs; None for those that torch leaves undefined."""
        return [None if shape is None else _struct(shape) for shape in self.outputs]

    def description(self, programs: dict[int, int]) -> tuple:
        """What decides how the call is compiled, without addresses: equal in every process.

        Args:
          programs: the place of each program of jax (jax_programs.py) among those of the graph, by
            the number that it has in this process. Those that are new are added.
        """
        arguments = argument_words(self.op, self.words)
        if self.op == jax_programs.OP:
            arguments[-1] = programs.setdefault(arguments[-1], len(programs))
        default = str(default_dtype(self.words))
        own = self.op, self.written, default, arguments
        return *own, self.operands, self.outputs, self.num_scalars

    def describe(self, message: str) -> str:
        """`message`, which op it is about, and the line that recorded the op."""
        # An assertion's message names the op that needs it (lowering/python_kernels/composites.py).
        where = "" if " (in aten::" in message else f" (in {self.op})"
        return graph_errors.with_sources(f"{message}{where}", [self.source])

    def lower(
        self, operands: list[jax.Array], scalars: Scalars, by_ffi: list[str], step: int = -1
    ) -> list[jax.Array | None]:
        """Lowers the call while jax traces. Adds the op to `by_ffi` if it calls ATen's kernel."""
        outs = self.outs
        own = scalars.take(self.num_scalars)
        try:
            with jax.named_scope(self._scope()), promotion.default_dtype(default_dtype(self.words)):
                if self.written is not None:
                    return [self._write_view(operands, own, outs)]
                return self._lower(operands, own, outs, by_ffi, step)
        except Exception as error:
            if graph_errors.is_lack_of_memory(error):
                raise
            raise RuntimeError(graph_errors.with_sources(str(error), [self.source])) from error

    def _scope(self) -> str:
        """The name of its operations in traces: op and module, as far as that is known."""
        module = self.source.partition(" (module ")[2].removesuffix(")")
        return f"{self.op}/{module}" if module else self.op

    def _write_view(
        self, operands: list[jax.Array], scalars: Scalars, outs: list[Any]
    ) -> jax.Array:
        base, value = operands
        args = Decoder(self.op, self.words, [base], scalars).args
        returns = torch._C._get_schema(*split_name(self.op)).returns
        several = len(returns) != 1 or isinstance(returns[0].type, torch.ListType)
        new = registry.write_view(self.op, args, base, value, self.written if several else None)
        return lax.convert_element_type(new, outs[0].dtype)

    def _lower(
        self,
        operands: list[jax.Array],
        scalars: Scalars,
        outs: list[Any],
        by_ffi: list[str],
        step: int,
    ) -> list[jax.Array | None]:
        entry = registry.find(self.op)
        on_host = not target.has_complex128() and any(
            x is not None and x.dtype == np.complex128 for x in (*operands, *outs)
        )
        key = scalars.key() if entry is not None and entry.wants_key else None
        decoded = Decoder(self.op, self.words, operands, scalars)
        if entry is not None and (key is not None or not on_host):
            try:
                return registry.call(self.op, decoded.args, outs, key)
            except registry.Unsupported:
                pass
        # Imported here, because most programs need neither.
        from ..lowering.base import decomposition, host

        lowered = None if on_host else decomposition.decompose(self.op, decoded.args, outs)
        if lowered is not None:
            return lowered
        by_ffi.append(self.op)
        note_gathered(self.op)
        lower = ffi.lower_by_ffi if target.has_host_memory() else host.lower_by_host
        words = argument_words(self.op, self.words)
        return lower(self.op, words, operands, decoded.numbers, outs, step=step)


def _key(seed: jax.Array, offset: jax.Array) -> jax.Array:
    return jax.random.fold_in(jax.random.key(seed), lax.convert_element_type(offset, np.uint32))


# So few are read from the array that the program takes. A call of `ffi.split` costs 1 to 2 us.
_FEW_SCALARS = 4


class Scalars:
    """Runtime scalars of a graph, handed out in order.

    decoded: gives all scalars of the graph, each `[1]`, in one dtype. They are decoded together,
        because XLA's CPU compiler takes superlinear time over one bitcast for each.
    rows: those that are still to be handed out.
    keys: gives, for each scalar but the last, the random key of which it is the seed and the next
        one the offset: `uint32[1, 2]`. The generator's code is long, so all are made together.
    """

    def __init__(
        self,
        decoded: Callable[[np.dtype], Sequence[Any]],
        rows: range,
        keys: Callable[[], Sequence[jax.Array]] | None = None,
    ) -> None:
        self._decoded = decoded
        self._rows = rows
        self._keys = keys

    @staticmethod
    def unpack(packed: jax.Array) -> Scalars:
        """Those of `packed`, `int32[n, 2]`: each row the low and high half of 64 bits."""
        count = packed.shape[0]
        is_stored = target.fuses_too_much() and count > _FEW_SCALARS

        @functools.cache
        def decoded(dtype: np.dtype) -> list[jax.Array]:
            # Extension types such as bfloat16 have kind "V" or "f"; integers "i" or "u".
            wide = np.int64 if dtype.kind in "iub" else np.float64
            numbers = lax.convert_element_type(lax.bitcast_convert_type(packed, wide), dtype)
            return ffi.split(numbers) if is_stored else lax.split(numbers, (1,) * count)

        @functools.cache
        def keys() -> list[jax.Array]:
            numbers = lax.bitcast_convert_type(packed, np.uint64)
            return ffi.split(jax.random.key_data(jax.vmap(_key)(numbers[:-1], numbers[1:])))

        return Scalars(decoded, range(count), keys if is_stored else None)

    @staticmethod
    def known(packed: np.ndarray) -> Scalars:
        """Those of `packed`, `uint64[n]`, whose values are known while jax traces."""

        def decoded(dtype: np.dtype) -> list[np.ndarray]:
            wide = packed.view(np.int64 if dtype.kind in "iub" else np.float64)
            return np.split(wide.astype(dtype), len(packed))

        return Scalars(decoded, range(len(packed)))

    def take(self, count: int) -> Scalars:
        """The next `count` scalars."""
        taken, self._rows = self._rows[:count], self._rows[count:]
        return Scalars(self._decoded, taken, self._keys)

    def number(self, dtype: np.dtype) -> jax.Array:
        """The next number, `[]`. A complex one takes two scalars."""
        if dtype.kind != "c":
            return self._next(dtype)
        return lax.complex(*(self._next(np.empty(0, dtype).real.dtype) for _ in range(2)))

    def next_float(self) -> Callable[[np.dtype], jax.Array]:
        """Gives the number that is next, a float, in any dtype of floats."""
        row = self._rows[0]
        return lambda dtype: self._at(row, dtype)

    def key(self) -> jax.Array:
        """A random key from the last two scalars: seed and offset of the generator."""
        if self._keys is not None:
            return jax.random.wrap_key_data(lax.squeeze(self._keys()[self._rows[-2]], (0,)))
        return _key(*(self._at(row, np.dtype(np.uint64)) for row in self._rows[-2:]))

    def _next(self, dtype: np.dtype) -> jax.Array:
        row, self._rows = self._rows[0], self._rows[1:]
        return self._at(row, dtype)

    def _at(self, row: int, dtype: np.dtype) -> jax.Array:
        number = self._decoded(dtype)[row]
        return number.reshape(()) if isinstance(number, np.ndarray) else lax.squeeze(number, (0,))


def _struct(shape: Shape) -> jax.ShapeDtypeStruct:
    dtype, dims = shape
    return jax.ShapeDtypeStruct(dims, registry.DTYPES[dtype])
