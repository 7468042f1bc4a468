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
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from torch_xla_lite.startup.late_jax import jax, jnp, lax

from ..lowering.base import checks, ffi, mesh, promotion, registry, target
from . import foreign_code, graph_errors, index_errors, stored_values
from .compilation_cache import Program
from .recorded_graph import Call, Leaf, RecordedGraph
from .scalars import Scalars
from .words import Decoder, argument_words, default_dtype, split_name


@dataclasses.dataclass(frozen=True)
class LoweredGraph:
    """A graph as programs for XLA, one, or the two of foreign_code.py, and what is known of it."""

    parts: tuple[jax.stages.Lowered, ...]
    program: Program

    @functools.cached_property
    def text(self) -> str:
        return "".join(part.as_text() for part in self.parts)


def lower_graph(graph: RecordedGraph) -> LoweredGraph:
    """Traces a graph and lowers it to programs for XLA, under `jax.enable_x64(True)` and
    `on_mesh(graph.mesh)`.

    Raises:
      RuntimeError: calls could not be lowered; `graph_errors.blaming` marks all that fail.
    """
    trace, donated = _Trace(graph), graph.donated
    order: tuple[int, ...] = ()
    jitted = jax.jit(trace.run, keep_unused=True, donate_argnums=donated)
    traced = jitted.trace(*graph.structs)
    gathered = mesh.gathered.get()
    foreign = frozenset(foreign_code.ops(traced.jaxpr))
    may_fail = bool(foreign or (trace.checks and index_errors.immediate()))
    if graph.mesh is not None:
        lowered = (_on_mesh(traced, graph, () if may_fail else donated),)
        # Nor does XLA divide the code of others.
        gathered += sorted(foreign - {*gathered})
    elif may_fail and (divided := _divided(traced, donated)):
        lowered, order = divided.lowered, divided.order
    elif may_fail and donated:
        lowered = (_without_donation(traced, graph),)
    else:
        lowered = (traced.lower(),)
    program = Program(
        order=order,
        fallbacks=tuple(trace.by_ffi),
        foreign=foreign,
        checks=tuple(trace.checks),
        gathered=tuple(gathered),
    )
    return LoweredGraph(lowered, program)


class _Trace:
    """A graph as the function that jax traces, and what it meets on the way.

    Attributes:
      by_ffi: the ops that call ATen's kernels, one for each call.
      checks: the step of each check, its message, and the name of its exception.
    """

    def __init__(self, graph: RecordedGraph) -> None:
        self.by_ffi: list[str] = []
        self.checks: list[tuple[int, str, str]] = []
        self._graph = graph

    def run(self, *arguments: jax.Array) -> list[jax.Array]:
        """The roots, and, if there are checks, which of them failed, in one array."""
        for noted in (self.by_ffi, self.checks, mesh.gathered.get()):
            noted.clear()  # jax may trace this a second time.
        failed: list[jax.Array] = []
        errors: dict[int, Exception] = {}
        stored = stored_values.find(self._graph.steps) if target.fuses_too_much() else set()
        inputs = iter(arguments)
        has_scalars = len(arguments) > len(self._graph.leaves)
        scalars = Scalars.unpack(arguments[-1] if has_scalars else jnp.zeros((0, 2), np.int32))
        results: list[list[jax.Array | None]] = []
        for number, call in enumerate(self._graph.steps):
            if isinstance(call, Leaf):
                results.append([next(inputs)])
                continue
            operands = [results[step][output] for step, output in call.operands]
            with checks.collect(index_errors.enabled()) as of_call:
                try:
                    results.append(lower_call(call, operands, scalars, self.by_ffi, number))
                except Exception as error:
                    if graph_errors.is_lack_of_memory(error):
                        raise
                    errors[number] = error
                    # The other calls are traced all the same, to find all that fail.
                    results.append([None if x is None else jnp.zeros_like(x) for x in call.outs])
            if number in stored:
                results[-1] = [None if x is None else ffi.store(x) for x in results[-1]]
            failed += [lax.reshape(check.failed, (1,)) for check in of_call]
            self.checks += [(number, check.message, check.error.__name__) for check in of_call]
        if errors:
            raise graph_errors.blaming(errors, next(iter(errors.values())))
        values = [results[step][output] for step, output, _ in self._graph.roots]
        return [*values, lax.concatenate(failed, 0)] if failed else values


def _divided(traced: jax.stages.Traced, donated: Sequence[int]) -> foreign_code.Parts | None:
    """The two programs of a graph that may fail, unless each graph is waited for anyway."""
    return None if index_errors.immediate() else foreign_code.split(traced.jaxpr, donated)


def _without_donation(traced: jax.stages.Traced, graph: RecordedGraph) -> jax.stages.Lowered:
    """A program that may fail, which must not use up its arguments."""
    from jax.extend import core

    function = core.jaxpr_as_fun(traced.jaxpr)
    return jax.jit(function, keep_unused=True).lower(*graph.structs)


def _on_mesh(
    traced: jax.stages.Traced, graph: RecordedGraph, donated: tuple[int, ...]
) -> jax.stages.Lowered:
    """A graph as one program that all devices of its mesh run. What is not among its leaves and
    roots, the scalars and the outcome of checks, each device has in full."""
    from jax.extend import core

    takes, gives = graph.shardings
    jaxpr = traced.jaxpr
    structs = [
        jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=place)
        for aval, place in itertools.zip_longest(jaxpr.in_avals, takes, fillvalue=graph.everywhere)
    ]
    gives += [graph.everywhere] * (len(jaxpr.out_avals) - len(gives))
    function = core.jaxpr_as_fun(jaxpr)
    jitted = jax.jit(function, keep_unused=True, donate_argnums=donated, out_shardings=gives)
    return jitted.lower(*structs)


def lower_call(
    call: Call,
    operands: list[jax.Array],
    scalars: Scalars,
    by_ffi: list[str],
    step: int = -1,
) -> list[jax.Array | None]:
    """Lowers the call while jax traces. Adds the op to `by_ffi` if it calls ATen's kernel."""
    outs = call.outs
    own = scalars.take(call.num_scalars)
    try:
        with jax.named_scope(_scope(call)), promotion.default_dtype(default_dtype(call.words)):
            if call.written is not None:
                return [_write_view(call, operands, own, outs)]
            return _lower(call, operands, own, outs, by_ffi, step)
    except Exception as error:
        if graph_errors.is_lack_of_memory(error):
            raise
        raise RuntimeError(graph_errors.with_sources(str(error), [call.source])) from error


def _scope(call: Call) -> str:
    """The name of its operations in traces: op and module, as far as that is known."""
    module = call.source.partition(" (module ")[2].removesuffix(")")
    return f"{call.op}/{module}" if module else call.op


def _write_view(
    call: Call, operands: list[jax.Array], scalars: Scalars, outs: list[Any]
) -> jax.Array:
    base, value = operands
    args = Decoder(call.op, call.words, [base], scalars).args
    returns = torch._C._get_schema(*split_name(call.op)).returns
    several = len(returns) != 1 or isinstance(returns[0].type, torch.ListType)
    new = registry.write_view(call.op, args, base, value, call.written if several else None)
    return lax.convert_element_type(new, outs[0].dtype)


def _lower(
    call: Call,
    operands: list[jax.Array],
    scalars: Scalars,
    outs: list[Any],
    by_ffi: list[str],
    step: int,
) -> list[jax.Array | None]:
    entry = registry.find(call.op)
    on_host = not target.has_complex128() and any(
        x is not None and x.dtype == np.complex128 for x in (*operands, *outs)
    )
    key = scalars.key() if entry is not None and entry.wants_key else None
    decoded = Decoder(call.op, call.words, operands, scalars)
    if entry is not None and (key is not None or not on_host):
        try:
            return registry.call(call.op, decoded.args, outs, key)
        except registry.Unsupported:
            pass
    # Imported here, because most programs need neither.
    from ..lowering.base import decomposition, host

    lowered = None if on_host else decomposition.decompose(call.op, decoded.args, outs)
    if lowered is not None:
        return lowered
    by_ffi.append(call.op)
    mesh.note_gathered(call.op)
    lower = ffi.lower_by_ffi if target.has_host_memory() else host.lower_by_host
    words = argument_words(call.op, call.words)
    return lower(call.op, words, operands, decoded.numbers, outs, step=step)
