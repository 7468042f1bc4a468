"""Splits graphs that call code outside XLA, because such a call may fail while the graph runs.

    parts = foreign_code.split(jaxpr, donated)        # None: the graph stays whole
    run = foreign_code.raising(program, steps)        # of the program or the two

The caller has to wait for a program that may fail, and such a program has used up the arguments
that were donated to it. So a graph that may fail becomes two programs. The first has the foreign
calls and what they need; nothing is donated to it, and the caller waits for it. The second has the
rest: it may overwrite what the graph may, and the caller does not wait for it.

Foreign calls are `jax.ffi.ffi_call` and the callbacks of jax, but for `ffi.INFALLIBLE`. XLA's own
calls, such as LAPACK's, return NaN where they fail.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from torch_xla_lite.startup.late_jax import jax

from .. import _XLAC
from ..lowering.base import ffi
from . import graph_errors
from .compilation_cache import Program

if TYPE_CHECKING:
    from jax.extend import core


@dataclasses.dataclass(frozen=True)
class Parts:
    """A graph as two programs.

    lowered: the first takes the graph's arguments, the second these and the results of the first.
    num_between: how many results the first has.
    order: where each result of the graph is among the results of the first, then of the second.
    """

    lowered: tuple[jax.stages.Lowered, jax.stages.Lowered]
    num_between: int
    order: tuple[int, ...]


def ops(traced: core.ClosedJaxpr) -> set[str]:
    """The ops whose lowerings call foreign code. Each was traced in a scope of its name."""
    scopes = (str(eqn.source_info.name_stack) for eqn in traced.jaxpr.eqns if _is_foreign(eqn))
    return {scope.partition("/")[0] for scope in scopes}


def split(traced: core.ClosedJaxpr, donated: Sequence[int]) -> Parts | None:
    """The two programs of a graph; None if one of them would have nothing to do.

    Args:
      donated: the arguments that the graph may overwrite, in the order of the results that replace
        them, which stand first.
    """
    # Imported where a graph is compiled: it takes 17 ms.
    from jax.extend import core

    jaxpr = traced.jaxpr
    first = _with_all_that_it_needs(jaxpr.eqns)
    early = {var for eqn in first for var in eqn.outvars}
    replaced = [i for i, var in zip(donated, jaxpr.outvars, strict=False) if not _is_in(var, early)]
    late = [var for var in jaxpr.outvars if not _is_in(var, early)]
    if not first or not late:
        return None
    rest = [eqn for eqn in jaxpr.eqns if early.isdisjoint(eqn.outvars)]
    used = {var for eqn in rest for var in _variables(eqn.invars)} | set(_variables(jaxpr.outvars))
    between = [var for eqn in first for var in eqn.outvars if var in used]
    place = {var: i for i, var in enumerate(between)}
    following = iter(range(len(between), len(between) + len(late)))
    order = [place[v] if _is_in(v, early) else next(following) for v in jaxpr.outvars]
    effects = {id(part): frozenset().union(*(e.effects for e in part)) for part in (first, rest)}

    def lowered(eqns: list[Any], takes: list[Any], gives: list[Any], donates: Sequence[int]):
        part = core.Jaxpr(
            jaxpr.constvars,
            takes,
            gives,
            eqns,
            effects[id(eqns)],
            debug_info=jaxpr.debug_info.with_unknown_names(),
        )
        function = core.jaxpr_as_fun(core.ClosedJaxpr(part, traced.consts))
        structs = [jax.ShapeDtypeStruct(var.aval.shape, var.aval.dtype) for var in takes]
        return jax.jit(function, keep_unused=True, donate_argnums=tuple(donates)).lower(*structs)

    arguments = list(jaxpr.invars)
    return Parts(
        (
            lowered(first, arguments, between, ()),
            lowered(rest, [*arguments, *between], late, replaced),
        ),
        len(between),
        tuple(order),
    )


def raising(program: Program, graph: Sequence[Any]) -> Callable[..., list]:
    """Runs the one or two programs of a graph and waits for what may fail, so that an error is
    raised here and names op and recording line. Counts the calls of ATen's kernels.

    Args:
      graph: its steps.
    """
    suspects = [number for number, step in enumerate(graph) if step.op in program.foreign]
    first, *others = program.executables

    def run(*arguments: jax.Array) -> list[jax.Array]:
        results: list[jax.Array] = []
        try:
            results = first(*arguments)
            jax.block_until_ready(results)
            for second in others:
                results = [*results, *second(*arguments, *results)]
                results = [results[i] for i in program.order]
        except Exception as error:
            # The traceback keeps them, and a sync would raise their error once more.
            for result in results:
                result.delete()
            raise graph_errors.explained(error, graph, suspects) from None
        for op in program.fallbacks:
            _XLAC.note_fallback(op)
        return results

    return run


def _is_foreign(eqn: core.JaxprEqn) -> bool:
    from jax.extend import core

    if eqn.primitive.name == "ffi_call":
        return eqn.params["target_name"] not in ffi.INFALLIBLE
    if eqn.primitive.name.endswith("_callback"):
        return True
    return any(_is_foreign(e) for inner in core.jaxprs_in_params(eqn.params) for e in inner.eqns)


def _variables(atoms: Iterable[Any]) -> list[Any]:
    """The values that are not constants."""
    from jax.extend import core

    return [atom for atom in atoms if isinstance(atom, core.Var)]


def _is_in(atom: Any, variables: set[Any]) -> bool:
    return bool(_variables([atom])) and atom in variables


def _with_all_that_it_needs(eqns: Sequence[core.JaxprEqn]) -> list[core.JaxprEqn]:
    """The foreign calls, and what their operands are computed from."""
    found: list[core.JaxprEqn] = []
    needed: set[Any] = set()
    for eqn in reversed(eqns):
        if _is_foreign(eqn) or not needed.isdisjoint(eqn.outvars):
            found.append(eqn)
            needed.update(_variables(eqn.invars))
    return found[::-1]
