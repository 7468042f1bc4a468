"""Compiles recorded graphs to XLA executables.

A graph that is met for the first time is interpreted, because most that run once never come back:
its ops run as ATen's CPU kernels (csrc/interpreter). It is compiled when it comes back, or later if
its arrays are small; of graphs with the same ops and other shapes, fewer and fewer are
(csrc/runtime/tiering.h).

    TORCH_XLA_LITE_COMPILE=repeated      the default, as described; a count decides, not a clock, so
                                         a program gives the same bits in each run
    TORCH_XLA_LITE_COMPILE=first         each graph is compiled when it is met for the first time
    TORCH_XLA_LITE_COMPILE=background    a graph that comes back is compiled in another thread, and
                                         interpreted until it is; a clock decides

The bridge calls `compile_graph` with a graph that it has no executable for. jax traces the graph op
by op, in recorded order, and compiles it. The bridge calls the result with the leaves and scalars
of each later graph with the same key.

Each op is lowered by the first of these that supports it:

    lowering.registry        a lowering of this project: XLA fuses it with its neighbours
    lowering.decomposition   PyTorch's decomposition, if all its ops have lowerings
    lowering.ffi             the ATen CPU kernel, called by XLA; counted as a fallback
    lowering.host            the same from devices whose memory the CPU cannot read
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import lax

from . import (
    _XLAC,
    _variables,
    compilation_cache,
    foreign_code,
    index_errors,
    new_graphs,
    stored_values,
)
from .background import Worker
from .compilation_cache import Program
from .lowering import checks, dtypes, ffi, promotion, registry, target
from .new_graphs import NewGraph, Place
from .words import Decoder, argument_words, schema_name, split_name

# A shape as the bridge passes it: torch's number of the dtype, and the dimensions.
Shape = tuple[int, tuple[int, ...]]

# A graph, ready to be called, and what is known about it.
Compiled = tuple[Callable[..., list], NewGraph]

# Compiles in the background.
_worker = Worker("torch_xla_lite compiler")


def register() -> None:
    """Makes this module the compiler of the bridge."""
    _XLAC.set_callbacks(
        compile=compile_graph,
        start_compile=_start_compile,
        can_interpret=_can_interpret,
        note_interpreted=new_graphs.note_interpreted,
        upload=_upload,
        copy=_copy,
        report=index_errors.report,
        dtypes=registry.DTYPES,
    )
    when = _variables.choice(os.environ, "TORCH_XLA_LITE_COMPILE", default="repeated")
    _XLAC.set_compile_when(when)
    _XLAC.set_lowered_ops(
        {
            name: (entry.constants, *dtypes.refused(name), list(entry.runtime_floats))
            for name, entry in registry.DECLARED.items()
        }
    )


def _start_compile(steps: list[tuple], roots: list[tuple[int, int]]) -> Future[Compiled]:
    """Compiles a graph in the background, after those that came before."""
    place = new_graphs.place()

    def compile_here() -> Compiled:
        _XLAC.set_is_compiler_thread()
        return compile_graph(steps, roots, place)

    return _worker.submit(compile_here)


def _can_interpret() -> bool:
    """Whether graphs may run op by op, with the random numbers of compiled ones: the interpreter
    has the default generator of jax (csrc/interpreter/threefry.h)."""
    is_threefry = jax.config.jax_default_prng_impl == "threefry2x32"
    return target.has_host_memory() and is_threefry and jax.config.jax_threefry_partitionable


def compile_graph(
    steps: list[tuple], roots: list[tuple[int, int]], place: Place | None = None
) -> Compiled:
    """Compiles one graph.

    Args:
      steps: each comes after the steps that it uses. A leaf is (dtype, dims,
        donated); a call is (op, words, operands, outputs, number of scalars, source line), where an
        operand is (step, result) and an output a `Shape` or None.
      roots: (step, result) of each value to compute.

    Returns:
      A function of the leaves' arrays, in order, and, if any call has scalars, of all scalars as
      int32[n, 2]; it gives one array for each root.

    Raises:
      RuntimeError: an op could not be lowered or compiled; the message names it and the line that
        recorded it.
    """
    calls = [_Call(*step) if isinstance(step[0], str) else None for step in steps]
    leaves = [step for step in steps if not isinstance(step[0], str)]
    with jax.enable_x64(True), new_graphs.timed(steps, roots, place) as graph:
        try:
            program, graph.loaded = _program(calls, leaves, roots)
        except Exception as error:
            blamed = _blaming_a_call(error, calls, steps)
            if blamed is None:
                raise
            raise blamed from error
    function = program.executables[0]
    if program.order:
        function = foreign_code.joined(program.executables, program.order)
    waits = bool(program.foreign)
    if program.checks:
        errors = [(calls[step].describe(message), error) for step, message, error in program.checks]
        function = index_errors.reporting(function, errors)
        waits = waits or index_errors.immediate()
    if waits:
        function = _raising_with_source(function, calls, program)
    return function, graph


def _program(
    calls: Sequence[_Call | None], leaves: Sequence[tuple], roots: Sequence[tuple[int, int]]
) -> tuple[Program, bool]:
    """The compiled graph, and whether it is from the cache."""
    graph = [call if call is None else call.description() for call in calls]
    description = repr((graph, leaves, roots))
    # What a user's lowering does is known only after it was traced.
    traces_first = _has_registered_lowering(calls)
    if not traces_first:
        key = compilation_cache.key(description)
        if (program := compilation_cache.load(key)) is not None:
            return program, True
    graph_of_jax = _lower_graph(calls, leaves, roots)
    hlo = "".join(part.as_text() for part in graph_of_jax.parts)
    if traces_first:
        # With the description, because a program names ops and steps of its graph.
        key = compilation_cache.key(description + hlo)
        if (program := compilation_cache.load(key)) is not None:
            return program, True
    options = target.compiler_options()
    program = Program(
        executables=tuple(part.compile(options) for part in graph_of_jax.parts),
        order=graph_of_jax.order,
        fallbacks=graph_of_jax.fallbacks,
        foreign=graph_of_jax.foreign,
        checks=graph_of_jax.checks,
        targets=compilation_cache.targets(hlo),
    )
    compilation_cache.store(key, program)
    return program, False


@dataclasses.dataclass(frozen=True)
class _LoweredGraph:
    """A graph as programs for XLA: one, or the two of foreign_code.py with the order of their
    results. The other fields are those of `Program`."""

    parts: tuple[jax.stages.Lowered, ...]
    order: tuple[int, ...]
    fallbacks: tuple[str, ...]
    foreign: frozenset[str]
    checks: tuple[tuple[int, str, str], ...]


def _lower_graph(
    calls: Sequence[_Call | None], leaves: Sequence[tuple], roots: Sequence[tuple[int, int]]
) -> _LoweredGraph:
    """To be called under `jax.enable_x64(True)`."""
    num_scalars = sum(call.num_scalars for call in calls if call is not None)
    by_ffi: list[str] = []
    found: list[tuple[int, str, str]] = []
    stored = _stored(calls)

    def run(*arguments: jax.Array) -> list[jax.Array]:
        by_ffi.clear()  # jax may trace this a second time.
        found.clear()
        failed: list[jax.Array] = []
        inputs = iter(arguments)
        scalars = _Scalars.unpack(arguments[-1] if num_scalars else jnp.zeros((0, 2), np.int32))
        results: list[list[jax.Array | None]] = []
        for number, call in enumerate(calls):
            if call is None:
                results.append([next(inputs)])
                continue
            operands = [results[step][output] for step, output in call.operands]
            with checks.collect(index_errors.enabled()) as of_call:
                results.append(call.lower(operands, scalars, by_ffi))
            if number in stored:
                results[-1] = [None if x is None else ffi.store(x) for x in results[-1]]
            failed += [lax.reshape(check.failed, (1,)) for check in of_call]
            found.extend((number, check.message, check.error.__name__) for check in of_call)
        values = [results[step][output] for step, output in roots]
        return [*values, lax.concatenate(failed, 0)] if failed else values

    structs = [_struct((dtype, dims)) for dtype, dims, _ in leaves]
    if num_scalars:
        structs.append(jax.ShapeDtypeStruct((num_scalars, 2), np.int32))
    donated = tuple(i for i, (_, _, is_donated) in enumerate(leaves) if is_donated)
    traced = jax.jit(run, keep_unused=True, donate_argnums=donated).trace(*structs)
    foreign = foreign_code.ops(traced.jaxpr)
    about = (tuple(by_ffi), frozenset(foreign), tuple(found))
    may_fail = foreign or (found and index_errors.immediate())
    parts = None
    if may_fail and not index_errors.immediate():
        parts = foreign_code.split(traced.jaxpr, donated)
    if parts is not None:
        return _LoweredGraph(parts.lowered, parts.order, *about)
    if not donated or not may_fail:
        return _LoweredGraph((traced.lower(),), (), *about)
    # A program that may fail must not use up its arguments.
    from jax.extend import core

    function = core.jaxpr_as_fun(traced.jaxpr)
    return _LoweredGraph((jax.jit(function, keep_unused=True).lower(*structs),), (), *about)


def _stored(calls: Sequence[_Call | None]) -> set[int]:
    if not target.fuses_too_much():
        return set()
    return stored_values.find(
        [call and stored_values.Op(call.op, [step for step, _ in call.operands]) for call in calls]
    )


def _has_registered_lowering(calls: Sequence[_Call | None]) -> bool:
    """Whether a user's lowering may be part of a graph, also in a decomposition of torch."""
    ops = {call.schema for call in calls if call is not None}
    return any(op in ops or op.startswith("aten::") for op in registry.registered_by_users())


def _raising_with_source(
    executable: Callable[..., list], calls: Sequence[Any], program: Program
) -> Callable:
    """Waits for what may fail, so that an error is raised here and names op and recording line.

    Counts the calls of ATen's kernels each time that the graph runs.
    """

    def run(*arguments: jax.Array) -> list[jax.Array]:
        try:
            results = executable(*arguments)
            if not program.order:
                jax.block_until_ready(results)
            for op in program.fallbacks:
                _XLAC.note_fallback(op)
            return results
        except Exception as error:
            raise _explained(error, calls, program.foreign) from None

    return run


def _explained(error: Exception, calls: Sequence[Any], foreign: frozenset[str]) -> Exception:
    """What is raised for an error of code outside XLA: names the op that called it."""
    if _is_lack_of_memory(error):
        return error
    message = str(error)
    if "\nRecorded at " in message:  # A failed check (index_errors.py) has its lines already.
        named = {call.op for call in calls if call is not None and f"(in {call.op})" in message}
        return _blaming(*named, error) if len(named) == 1 else error
    named = {call.op for call in calls if call is not None and _names(message, call.op)} or foreign
    sources = {call.source for call in calls if call and call.source and call.op in named}
    kind: type[Exception] = RuntimeError
    for name in named:
        if found := re.search(rf"{re.escape(name)}: (_?\w+Error): ", message):
            # The class of torch's error (csrc/ffi/handler.cc).
            message = message.replace(found[0], f"{name}: ")
            kind = index_errors.exception_class(found[1])
    explained = kind(_with_sources(message, sources))
    return _blaming(*named, explained) if len(named) == 1 else explained


def _is_lack_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or what caused it, is lack of memory: no op is to blame."""
    if error is None:
        return False
    if isinstance(error, MemoryError) or str(error).startswith("RESOURCE_EXHAUSTED"):
        return True
    return _is_lack_of_memory(error.__cause__)


def _blaming_a_call(
    error: Exception, calls: Sequence[_Call | None], steps: Sequence[tuple]
) -> Exception | None:
    """The error of the first call that cannot be compiled alone either, if XLA has refused a graph
    without naming an op."""
    if hasattr(error, "_torch_xla_lite_op") or _is_lack_of_memory(error):
        return None
    tried: set[str] = set()
    for call in filter(None, calls):
        shapes = [
            calls[step].outputs[output] if calls[step] else steps[step][:2]
            for step, output in call.operands
        ]
        alone = dataclasses.replace(call, operands=[(i, 0) for i in range(len(shapes))])
        if (description := repr((alone.description(), shapes))) in tried:
            continue
        tried.add(description)
        outputs = [i for i, shape in enumerate(call.outputs) if shape is not None]
        roots = [(len(shapes), i) for i in outputs]
        try:
            leaves = [(*shape, False) for shape in shapes]
            for part in _lower_graph([*(None for _ in shapes), alone], leaves, roots).parts:
                part.compile(target.compiler_options())
        except Exception as own:
            if _is_lack_of_memory(own):
                return None
            sources = {call.source} if call.source else set()
            return _blaming(call.op, RuntimeError(_with_sources(f"{call.op}: {own}", sources)))
    return None


def _blaming(op: str, error: Exception) -> Exception:
    """The error as one of an op: the runtime computes all values that do not need it."""
    error._torch_xla_lite_op = op  # type: ignore[attr-defined]  # Read by csrc/python/executor.cc.
    return error


def _names(message: str, op: str) -> bool:
    """Whether a message names this op, not another one whose name begins with it."""
    return re.search(rf"{re.escape(op)}(?![.\w]*\w)", message) is not None


def _with_sources(message: str, sources: set[str]) -> str:
    if sources:
        return "\n".join([message, *(f"Recorded at {source}." for source in sorted(sources))])
    return (
        f"{message}\nTo see which line recorded it, run again with TORCH_XLA_LITE_IR_DEBUG=1 in "
        "the environment."
    )


@dataclasses.dataclass(frozen=True)
class _Call:
    """One op call of a graph."""

    op: str
    words: list[int]
    operands: list[tuple[int, int]]
    outputs: list[Shape | None]
    num_scalars: int
    source: str

    @property
    def schema(self) -> str:
        """The op, also of a write through a view that it made."""
        return schema_name(self.op)

    def description(self) -> tuple:
        """What decides how the call is compiled, without addresses: equal in every process."""
        arguments = argument_words(self.schema, self.words)
        # The default dtype is in the first word, beside the op's address.
        default_dtype = self.words[0] >> 56
        return self.op, default_dtype, arguments, self.operands, self.outputs, self.num_scalars

    def describe(self, message: str) -> str:
        """`message`, and which op it is about."""
        sources = {self.source} if self.source else set()
        return _with_sources(f"{message} (in {self.op})", sources)

    def lower(
        self, operands: list[jax.Array], scalars: _Scalars, by_ffi: list[str]
    ) -> list[jax.Array | None]:
        """Lowers the call while jax traces. Adds the op to `by_ffi` if it calls ATen's kernel."""
        outs = [None if shape is None else _struct(shape) for shape in self.outputs]
        own = scalars.take(self.num_scalars)
        try:
            with jax.named_scope(self._scope()), promotion.default_dtype(self._default_dtype()):
                if self.op.startswith("write:"):
                    return [self._write_view(operands, own, outs)]
                return self._lower(operands, own, outs, by_ffi)
        except Exception as error:
            if _is_lack_of_memory(error):
                raise
            sources = {self.source} if self.source else set()
            failure = RuntimeError(_with_sources(str(error), sources))
            raise _blaming(self.op, failure) from error

    def _scope(self) -> str:
        """The name of its operations in traces: op and module, as far as that is known."""
        module = self.source.partition(" (module ")[2].removesuffix(")")
        return f"{self.op}/{module}" if module else self.op

    def _default_dtype(self) -> np.dtype:
        """torch's when the op was recorded (csrc/dispatch/call.cc)."""
        return registry.DTYPES[self.words[0] >> 56]

    def _write_view(
        self, operands: list[jax.Array], scalars: _Scalars, outs: list[Any]
    ) -> jax.Array:
        _, output, op = self.op.split(":", 2)
        base, value = operands
        args = Decoder(op, self.words, [base], scalars).args
        several = len(torch._C._get_schema(*split_name(op)).returns) != 1 or _gives_list(op)
        written = registry.write_view(op, args, base, value, int(output) if several else None)
        return lax.convert_element_type(written, outs[0].dtype)

    def _lower(
        self, operands: list[jax.Array], scalars: _Scalars, outs: list[Any], by_ffi: list[str]
    ) -> list[jax.Array | None]:
        entry = registry.find(self.op)
        key = scalars.key() if entry is not None and entry.wants_key else None
        decoded = Decoder(self.op, self.words, operands, scalars)
        if entry is not None:
            try:
                return registry.call(self.op, decoded.args, outs, key)
            except registry.Unsupported:
                pass
        # Imported here, because most programs need neither.
        from .lowering import decomposition, host

        lowered = decomposition.decompose(self.op, decoded.args, outs)
        if lowered is not None:
            return lowered
        by_ffi.append(self.op)
        if not target.has_host_memory():
            return host.lower_by_host(self.op, decoded.args, outs)
        words = argument_words(self.op, self.words)
        return ffi.lower_by_ffi(self.op, words, operands, decoded.numbers, outs)


class _Scalars:
    """Runtime scalars of a graph, handed out in order.

    decoded: gives all scalars of the graph, each `[1]`, in one dtype. They are decoded together,
        because XLA's CPU compiler takes superlinear time over one bitcast for each.
    rows: those that are still to be handed out.
    """

    def __init__(self, decoded: Callable[[np.dtype], list[jax.Array]], rows: range) -> None:
        self._decoded = decoded
        self._rows = rows

    @staticmethod
    def unpack(packed: jax.Array) -> _Scalars:
        """Those of `packed`, `int32[n, 2]`: each row the low and high half of 64 bits."""

        @functools.cache
        def decoded(dtype: np.dtype) -> list[jax.Array]:
            # Extension types such as bfloat16 have kind "V" or "f"; integers "i" or "u".
            wide = np.int64 if dtype.kind in "iub" else np.float64
            numbers = lax.convert_element_type(lax.bitcast_convert_type(packed, wide), dtype)
            return lax.split(numbers, (1,) * packed.shape[0])

        return _Scalars(decoded, range(packed.shape[0]))

    def take(self, count: int) -> _Scalars:
        """The next `count` scalars."""
        taken, self._rows = self._rows[:count], self._rows[count:]
        return _Scalars(self._decoded, taken)

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
        seed, offset = (self._at(row, np.dtype(np.uint64)) for row in self._rows[-2:])
        return jax.random.fold_in(jax.random.key(seed), lax.convert_element_type(offset, np.uint32))

    def _next(self, dtype: np.dtype) -> jax.Array:
        row, self._rows = self._rows[0], self._rows[1:]
        return self._at(row, dtype)

    def _at(self, row: int, dtype: np.dtype) -> jax.Array:
        return lax.squeeze(self._decoded(dtype)[row], (0,))


@functools.cache
def _gives_list(op: str) -> bool:
    return isinstance(torch._C._get_schema(*split_name(op)).returns[0].type, torch.ListType)


def _struct(shape: Shape) -> jax.ShapeDtypeStruct:
    dtype, dims = shape
    return jax.ShapeDtypeStruct(dims, registry.DTYPES[dtype])


def _upload(array: np.ndarray) -> jax.Array:
    """A jax.Array of the same dtype, which keeps the array's memory if that is aligned."""
    # jnp.asarray takes 11 us, not 18, but compiles a program for each new shape: 12 ms.
    with jax.enable_x64(True):
        return jax.device_put(array, may_alias=True)


def _copy(array: jax.Array) -> jax.Array:
    """A copy of an array, for a graph that overwrites its argument while the program needs it."""
    with jax.enable_x64(True):
        return jnp.array(array, copy=True)
