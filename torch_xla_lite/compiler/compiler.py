"""Compiles recorded graphs to XLA executables.

A graph that is met for the first time is interpreted, because most that run once never come back:
its ops run as ATen's CPU kernels (csrc/interpreter). It is compiled when its interpreted runs have
cost as much as its compilation will cost (csrc/runtime/tiering.h).

    TORCH_XLA_LITE_COMPILE=repeated      the default, as described; a model of costs decides, not a
                                         clock, and earlier processes count (past_costs.py)
    TORCH_XLA_LITE_COMPILE=first         each graph is compiled when it is met for the first time
    TORCH_XLA_LITE_COMPILE=background    a graph is compiled in another thread, and interpreted
                                         until it is; a clock decides

The bridge calls `compile_graph` with a graph that it has no executable for. Its program is loaded
by its key (recorded_graph.py), or traced by jax (tracing.py) and compiled (compilation.py). The
bridge calls the result with the leaves and scalars of each later graph of equal key.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from concurrent.futures import Future

import numpy as np

from torch_xla_lite.startup.late_jax import jax, jnp

from .. import _XLAC
from ..lowering.base import registry, target
from ..lowering.base.mesh import on_mesh
from ..mesh.base import distributed, placements
from ..mesh.base.placements import Root
from ..startup import program_lines, variables
from ..startup.program_lines import Place
from . import (
    compilation,
    compilation_cache,
    costs,
    index_errors,
    new_graphs,
    past_costs,
    progress,
    tracing,
)
from .background import Worker
from .new_graphs import NewGraph
from .recorded_graph import RecordedGraph

# A graph, ready to be called, and what is known about it.
Compiled = tuple[compilation.Function, NewGraph]

# Compiles in the background.
_worker = Worker("torch_xla_lite compiler")


def register() -> None:
    """Makes this module the compiler of the bridge."""
    _XLAC.set_compiler(Compiler)
    costs.register()
    when = variables.choice(os.environ, "TORCH_XLA_LITE_COMPILE", default="repeated")
    _XLAC.set_compile_when(when)


def _start_compile(steps: list[tuple], roots: list[Root], structure: int) -> Future[Compiled]:
    """Compiles a graph in the background, after those that came before."""
    place = program_lines.place()

    def compile_here() -> Compiled:
        _XLAC.set_is_compiler_thread()
        return compile_graph(steps, roots, structure, place)

    return _worker.submit(compile_here)


def _load_graph(steps: list[tuple], roots: list[Root], structure: int) -> Compiled | None:
    """A graph whose program is on disk; else None."""
    graph = RecordedGraph.of(steps, roots)
    if graph.is_known_when_traced or not compilation_cache.may_contain(graph.description):
        return None
    with jax.enable_x64(True), on_mesh(graph.mesh):
        is_there = compilation_cache.contains(graph.key())
    return _for_each_precision(graph, structure) if is_there else None


def compile_graph(
    steps: list[tuple],
    roots: list[Root],
    structure: int | None,
    place: Place | None = None,
) -> Compiled:
    """Compiles one graph.

    Args:
      steps, roots: see `RecordedGraph`.
      structure: the same for graphs that differ in donation alone; None for an op that an
        interpreted graph runs compiled.
      place: of the program, which needed a value; by default the one that runs.

    Returns:
      See `compilation.function_of`.

    Raises:
      RuntimeError: calls could not be lowered or compiled; the message names the first, and the
        line that recorded it.
    """
    return _for_each_precision(RecordedGraph.of(steps, roots), structure, place)


def _for_each_precision(
    graph: RecordedGraph, structure: int | None, place: Place | None = None
) -> Compiled:
    """A graph that is compiled, on accelerators once for each precision of float32 products that
    torch's settings have when it runs."""
    of_precision = functools.cache(lambda _: _compile(graph, structure, place))
    precision = target.float32_precision()
    function, info = of_precision(precision)
    if precision is None:
        return function, info
    return lambda *arguments: of_precision(target.float32_precision())[0](*arguments), info


def _compile(graph: RecordedGraph, structure: int | None, place: Place | None) -> Compiled:
    with (
        jax.enable_x64(True),
        on_mesh(graph.mesh),
        new_graphs.timed(graph, structure, place) as info,
        progress.shown(
            f"compiling {info.num_ops} ops of {info.line}",
            "kept for the next run" if compilation_cache.is_on() else "",
        ),
    ):
        if graph.is_shared:
            distributed.require_same_program(graph.description, info.line)
        lowered = tracing.lower_graph(graph) if graph.is_known_when_traced else None
        key = graph.key(lowered.text if lowered else "")
        program = compilation_cache.load(key, graph.mesh)
        if program is None:
            program = compilation.compiled(graph, lowered or tracing.lower_graph(graph))
            compilation_cache.store(key, program)
        info.loaded, info.collectives = program.is_loaded, program.collectives
        info.placements = graph.placements_in(program.executables[0])
    return compilation.function_of(program, graph, info.line), info


@functools.cache
def _put() -> Callable[..., jax.Array] | None:
    """What `jax.device_put` calls after 26 of its 30 us. It has no public name."""
    with contextlib.suppress(ImportError, AttributeError):
        from jax._src.lib import xla_client

        if "enable_x64" in xla_client.batched_device_put.__doc__:
            return functools.partial(
                xla_client.batched_device_put, committed=False, enable_x64=True
            )
    return None


def _upload(array: np.ndarray) -> jax.Array:
    """A jax.Array of the same dtype, which keeps the array's memory if that is aligned."""
    put = _put()
    if put is None:
        with jax.enable_x64(True):
            return jax.device_put(array, may_alias=True)
    sharding, devices = _default_place(jax.config.jax_default_device)
    return put(_aval(array.shape, array.dtype), sharding, [array], devices)


@functools.lru_cache(maxsize=1024)
def _aval(shape: tuple[int, ...], dtype: np.dtype) -> jax.core.ShapedArray:
    with jax.enable_x64(True):
        return jax.core.ShapedArray(shape, dtype)


@functools.cache
def _default_place(_: object) -> tuple[jax.sharding.Sharding, list[jax.Device]]:
    """Where jax puts arrays; asked once for each value of its setting."""
    sharding = jax.device_put(np.zeros(1, bool)).sharding
    return sharding, list(sharding.device_set)


def _copy(array: jax.Array) -> jax.Array:
    """A copy of an array, for a graph that overwrites its argument while the program needs it."""
    with jax.enable_x64(True):
        return jnp.array(array, copy=True)


class Compiler:
    """What the executor calls (csrc/python/executor.h). A graph is given as its steps and roots,
    with a number that is the same for graphs that differ in donation alone, or None for one op of
    an interpreted graph.

    compile: compiles a graph.
    load: the same if its program is on disk; otherwise None.
    past_costs: what graphs have cost earlier processes (past_costs.py).
    start_compile: compiles a graph in another thread.
    has_host_memory: whether kernels of the CPU can read the device's memory.
    draws_threefry: whether lowerings draw the random numbers of csrc/kernels/threefry.h.
    note_interpreted: is told of a graph that was interpreted: the number of its ops, seconds, its
      structure, and a function that describes it.
    upload, copy: a new array of a numpy array, or of an array.
    place: an array's data at a place (placements.py).
    report: is called when a value leaves the device; raises what graphs have noted by then.
    dtypes: numpy's dtypes by torch's numbers.
    """

    compile = staticmethod(compile_graph)
    load = staticmethod(_load_graph)
    past_costs = staticmethod(past_costs.load)
    start_compile = staticmethod(_start_compile)
    # By name, so that tests can replace it for lowerings and executor at once.
    has_host_memory = staticmethod(lambda: target.has_host_memory())
    draws_threefry = staticmethod(target.has_threefry)
    note_interpreted = staticmethod(new_graphs.note_interpreted)
    upload = staticmethod(_upload)
    copy = staticmethod(_copy)
    place = staticmethod(placements.place)
    report = staticmethod(index_errors.report)
    dtypes = registry.DTYPES
