"""Programs: jax functions of arrays, each traced once, which a recorded op names by number.

    program, captured, tree = trace(jnp.sin, [like], "sin", x64=False)    # like: shape and dtype
    program.number              # an argument of the op; find(number) is the program
    program(array)              # while jax traces a graph: becomes a part of the graph
    program.vmapped((0,), 8)    # further programs are made of the trace: the function is not called
    program.linearized((0,))    #     again

A function sees jax as the user has set it. Unless 64 bits are switched on, `jnp.arange(3)` is int32
in it, and its int64 operands are converted to int32; operands that are float64 or complex128 switch
64 bits on.

The last `_MOST` programs are kept, and those that something refers to: a recorded op knows the
number alone. So what is recorded is run before programs are dropped.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from torch_xla_lite.startup.late_jax import jax, jnp

from .. import _XLAC
from ..lowering.base import registry

if TYPE_CHECKING:
    from jax.extend import core

# The name of the op. Its last argument is the number of a program.
OP = "torch_xla_lite::call_jax"

# How many programs are kept, besides those that are made of them.
_MOST = 1024

_lock = threading.Lock()
_numbers = itertools.count()
_by_number: weakref.WeakValueDictionary[int, Program] = weakref.WeakValueDictionary()
# By number, and where the trace is; the one that was used last is the last.
_recent: collections.OrderedDict[int, tuple[Program, weakref.ref[Traces], Hashable]] = (
    collections.OrderedDict()
)
# Those that were dropped last: another thread may be recording one.
_dropped: list[Program] = []
# Those that are part of a graph of torch.fx.
_in_fx: dict[int, Program] = {}


class Program:
    """A traced function of arrays.

    Attributes:
      number: identifies it; never used again.
      label: the name of the function, for messages.
      x64: whether it was traced with 64 bits.
      operands: shape and dtype of each operand; operands of other dtypes are converted.
      results: shape and dtype of each result; torch has the dtype, too.
    """

    def __init__(self, jaxpr: core.ClosedJaxpr, label: str, x64: bool) -> None:
        self.number = next(_numbers)
        self.label = label
        self.x64 = x64
        self.operands = tuple(map(_struct, jaxpr.in_avals))
        self.results = tuple(map(_struct, jaxpr.out_avals))
        for result in self.results:
            if result.dtype not in registry.TO_TORCH:
                raise TypeError(
                    f"{label} gives a result of dtype {result.dtype}, which torch does not have.\n"
                    "Convert it in the function:  result.astype(jnp.float32)"
                )
        self._jaxpr = jaxpr
        self._derived: dict[tuple, Any] = {}
        _by_number[self.number] = self

    def __call__(self, *operands: jax.Array) -> list[jax.Array]:
        """The results, for use while jax traces."""
        converted = [
            jax.lax.convert_element_type(x, struct.dtype)
            for x, struct in zip(operands, self.operands, strict=True)
        ]
        results = _function(self._jaxpr)(*converted)
        # A result that is a constant comes as a number.
        return [
            jnp.asarray(x, struct.dtype) for x, struct in zip(results, self.results, strict=True)
        ]

    @functools.cached_property
    def compiled(self) -> Callable[..., list[jax.Array]]:
        """The same, for arrays that have the dtypes of `operands`."""
        return jax.jit(_function(self._jaxpr))

    def vmapped(self, in_dims: tuple[int | None, ...], size: int) -> Program:
        """The program of operands that have a further dimension of `size` at `in_dims`; its results
        have it first."""

        def make() -> Program:
            structs = [
                struct if dim is None else _batched(struct, dim, size)
                for struct, dim in zip(self.operands, in_dims, strict=True)
            ]
            function = jax.vmap(self.__call__, in_dims, 0, axis_size=size)
            return self._trace(function, structs, "vmap")

        return self._derive(("vmap", in_dims, size), make)

    def linearized(self, wanted: tuple[int, ...]) -> Linearized:
        """The program with what the gradients of the wanted operands need."""
        return self._derive(("linearized", wanted), lambda: self._linearize(wanted))

    def backward(self, wanted: tuple[int, ...], given: tuple[int, ...]) -> Program:
        """The program that gives the gradients of the wanted operands.

        Args:
          given: the results whose gradients are given.

        Its operands are the residuals of `linearized`, then the given gradients.
        """

        def make() -> Program:
            linearized = self.linearized(wanted)
            count = len(linearized.residuals)

            def backward(*values: jax.Array) -> list[jax.Array]:
                residuals = map(wrapped, values[:count], linearized.impls)
                vjp = jax.tree.unflatten(linearized.tree, residuals)
                return list(map(conjugate, vjp(self._cotangents(given, values[count:]))))

            structs = [*linearized.residuals, *(self.results[i] for i in given)]
            return self._trace(backward, structs, "gradient")

        return self._derive(("backward", wanted, given), make)

    def gradient(self, wanted: tuple[int, ...], given: tuple[int, ...]) -> Program:
        """As `backward`, of all operands, then the given gradients: it has gradients itself."""
        count = len(self.operands)

        def gradient(*values: jax.Array) -> list[jax.Array]:
            function = self._of(wanted, values[:count])
            _, vjp = jax.vjp(function, *(values[i] for i in wanted))
            return list(map(conjugate, vjp(self._cotangents(given, values[count:]))))

        structs = [*self.operands, *(self.results[i] for i in given)]
        return self._derive(
            ("gradient", wanted, given), lambda: self._trace(gradient, structs, "gradient")
        )

    def tangent(self, moving: tuple[int, ...]) -> Program:
        """The program that gives the tangent of each result, of all operands, then the tangents of
        the moving ones."""
        count = len(self.operands)

        def tangent(*values: jax.Array) -> list[jax.Array]:
            function = self._of(moving, values[:count])
            _, tangents = jax.jvp(function, tuple(values[i] for i in moving), values[count:])
            return [
                x if self.is_differentiable(i) else jnp.zeros(x.shape, self.results[i].dtype)
                for i, x in enumerate(tangents)
            ]

        structs = [*self.operands, *(self.operands[i] for i in moving)]
        return self._derive(("tangent", moving), lambda: self._trace(tangent, structs, "tangent"))

    def is_differentiable(self, result: int) -> bool:
        """Whether a result is of real or complex floats."""
        return jnp.issubdtype(self.results[result].dtype, np.inexact)

    def _derive(self, key: tuple, make: Callable[[], Any]) -> Any:
        if key not in self._derived:
            self._derived[key] = make()
        return self._derived[key]

    def _trace(self, function: Callable, structs: Sequence[Any], what: str) -> Program:
        with jax.enable_x64(self.x64):
            jaxpr = jax.make_jaxpr(function)(*structs)
        return Program(jaxpr, f"the {what} of {self.label}", self.x64)

    def _of(self, chosen: tuple[int, ...], operands: Sequence[Any]) -> Callable:
        """The program as a function of some of its operands."""

        def function(*values: jax.Array) -> list[jax.Array]:
            of_all = list(operands)
            for i, value in zip(chosen, values, strict=True):
                of_all[i] = value
            return self(*of_all)

        return function

    def _cotangents(self, given: tuple[int, ...], gradients: Sequence[jax.Array]) -> list[Any]:
        """The gradients of all results as jax has them."""
        of_given = dict(zip(given, map(conjugate, gradients), strict=True))
        return [
            of_given[i]
            if i in of_given
            else jnp.zeros(result.shape, result.dtype)
            if self.is_differentiable(i)
            else np.zeros(result.shape, jax.dtypes.float0)
            for i, result in enumerate(self.results)
        ]

    def _linearize(self, wanted: tuple[int, ...]) -> Linearized:
        if not wanted:
            return Linearized(self, (), (), None, ())
        tree: list[Any] = []
        impls: list[Any] = []

        def linearize(*operands: jax.Array) -> list[jax.Array]:
            results, vjp = jax.vjp(self._of(wanted, operands), *(operands[i] for i in wanted))
            residuals, structure = jax.tree.flatten(vjp)
            tree[:], impls[:] = [structure], map(impl_of, residuals)
            return [*results, *map(unwrapped, residuals)]

        with jax.enable_x64(self.x64):
            jaxpr = jax.make_jaxpr(linearize)(*self.operands)
        kept, used = _places(jaxpr, len(self.results))
        structs = list(map(_struct, jaxpr.out_avals))[len(self.results) :]
        function = _function(jaxpr)

        def with_residuals(*operands: jax.Array) -> list[jax.Array]:
            results = function(*operands)
            return [results[i] for i in kept]

        program = self._trace(with_residuals, self.operands, "linearization")
        return Linearized(program, tuple(used), tuple(structs), tree[0], tuple(impls))


@dataclasses.dataclass(frozen=True)
class Linearized:
    """A program with the residuals, which its gradient needs.

    Attributes:
      program: gives the results, then the residuals that are neither operands nor results.
      places: where each residual is among the operands and results of `program`.
      residuals: shape and dtype of each.
      tree: of jax's function of cotangents, whose leaves are the residuals.
      impls: the kind of random keys of each residual; None if it is an array.
    """

    program: Program
    places: tuple[int, ...]
    residuals: tuple[jax.ShapeDtypeStruct, ...]
    tree: Any
    impls: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Trace:
    """A function that was traced for a signature.

    Attributes:
      program: of the operands, then of the arrays that the function captures.
      captured: these, as tensors on jax.
      tree: the structure of its results.
    """

    program: Program
    captured: tuple[torch.Tensor, ...]
    tree: Any


class Traces(dict[Hashable, Trace]):
    """The traces of one function, by signature."""

    __slots__ = ("__weakref__",)


def trace(
    function: Callable, operands: Sequence[jax.ShapeDtypeStruct], label: str, x64: bool
) -> tuple[Program, list[jax.Array], Any]:
    """Traces a function of arrays that gives a pytree of arrays.

    Returns:
      The program of the operands, then of the arrays that the function captures; these arrays; the
      structure of its results.

    Raises:
      TypeError: it captures a tracer, or torch has no such result.
      Exception: what the function raises.
    """
    tree: list[Any] = []

    def flat(*arrays: jax.Array) -> list[jax.Array]:
        results, structure = jax.tree.flatten(function(*arrays))
        tree[:] = [structure]
        return [unwrapped(jnp.asarray(result)) for result in results]

    with jax.enable_x64(x64):
        jaxpr = jax.make_jaxpr(flat)(*operands)
        is_operand = [_can_be_operand(constant) for constant in jaxpr.consts]
        captured = [x for x, lifted in zip(jaxpr.consts, is_operand, strict=True) if lifted]
        if captured:
            # Captured arrays are operands: as constants they would be part of compiled programs.
            function = functools.partial(_with_constants, jaxpr, is_operand)
            jaxpr = jax.make_jaxpr(function)(*operands, *map(_struct, captured))
    return Program(jaxpr, label, x64), captured, tree[0]


def keep(traced: Trace, traces: Traces, signature: Hashable) -> None:
    """Keeps a trace as long as its function lives and it is one of those that were used last."""
    traces[signature] = traced
    _recent[traced.program.number] = traced.program, weakref.ref(traces), signature
    if len(_recent) > _MOST:
        _drop_oldest()


def note_use(program: Program) -> None:
    """Makes a program the one that was used last."""
    try:  # noqa: SIM105 -- contextlib.suppress takes half a microsecond of each call.
        _recent.move_to_end(program.number)
    except KeyError:
        pass  # Another thread drops it.


def keep_for_ever(number: int) -> None:
    """Keeps a program that a graph of torch.fx has the number of."""
    _in_fx[number] = find(number)


def find(number: int) -> Program:
    """The program of a number."""
    program = _by_number.get(number)
    if program is None:
        raise KeyError(
            f"program {number} of {OP} is not kept any more: {_MOST} others were traced since it "
            "was recorded, and it could not be run before.\nCall call_jax again."
        )
    return program


def describe(number: int) -> str:
    """A program for messages, also one that is not kept any more."""
    program = _by_number.get(number)
    return f"{number}" if program is None else f"{program.label} ({number})"


def _drop_oldest() -> None:
    """Drops programs until half as many as may be are kept."""
    global _dropped
    with _lock:
        if len(_recent) <= _MOST:
            return
        oldest = [_recent.popitem(last=False)[1] for _ in range(len(_recent) - _MOST // 2)]
    for _, reference, signature in oldest:
        traces = reference()
        if traces is not None:
            traces.pop(signature, None)
    # An op that fails is reported when its value is read.
    with contextlib.suppress(Exception):
        _XLAC.synchronize()
    _dropped = [program for program, _, _ in oldest]


def _with_constants(
    jaxpr: core.ClosedJaxpr, is_operand: Sequence[bool], *values: jax.Array
) -> list[jax.Array]:
    """A function whose marked constants are further operands."""
    count = len(jaxpr.in_avals)
    operands, lifted = values[:count], iter(values[count:])
    constants = [
        next(lifted) if marked else constant
        for constant, marked in zip(jaxpr.consts, is_operand, strict=True)
    ]
    return _function(type(jaxpr)(jaxpr.jaxpr, constants))(*operands)


def _function(jaxpr: core.ClosedJaxpr) -> Callable[..., list[Any]]:
    # Imported here, because it takes 70 ms, and most programs call no jax function.
    from jax.extend import core

    return core.jaxpr_as_fun(jaxpr)


def _places(jaxpr: core.ClosedJaxpr, num_results: int) -> tuple[list[int], list[int]]:
    """Which results of a function that gives residuals in addition are different values; where each
    residual is among the operands and these. A residual often is an operand or a result."""
    from jax.extend import core

    inputs, outputs = jaxpr.jaxpr.invars, jaxpr.jaxpr.outvars
    places = {var: i for i, var in enumerate(inputs)}
    kept: list[int] = []
    used: list[int] = []
    for i, var in enumerate(outputs):
        place = len(inputs) + len(kept)
        found = place if isinstance(var, core.Literal) else places.setdefault(var, place)
        if i < num_results or found == place:
            kept.append(i)
        if i >= num_results:
            used.append(found)
    return kept, used


def _can_be_operand(constant: Any) -> bool:
    """Whether a constant of a function is an array on the device; what is a numpy array is part of
    the function."""
    if isinstance(constant, jax.core.Tracer):
        raise TypeError(
            f"the function captures a tracer of another function of jax: {constant}.\n"
            "Call the function itself there; call_jax is for functions of tensors."
        )
    if not isinstance(constant, jax.Array) or constant.dtype not in registry.TO_TORCH:
        return False
    return jax.dtypes.canonicalize_dtype(constant.dtype) == constant.dtype


def _struct(aval: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)


def _batched(struct: jax.ShapeDtypeStruct, dim: int, size: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((*struct.shape[:dim], size, *struct.shape[dim:]), struct.dtype)


def conjugate(gradient: jax.Array) -> jax.Array:
    """A gradient of torch as one of jax, or the other way round: they are conjugates."""
    return gradient.conj() if jnp.issubdtype(gradient.dtype, np.complexfloating) else gradient


# Random keys have no dtype of torch. As operands and results of programs they are their data.


def impl_of(array: Any) -> Any:
    """The kind of random keys that an array has; None for other arrays."""
    is_key = jnp.issubdtype(array.dtype, jax.dtypes.prng_key)
    return jax.random.key_impl(array) if is_key else None


def wrapped(data: jax.Array, impl: Any) -> jax.Array:
    """The random keys of data, if they are such."""
    return data if impl is None else jax.random.wrap_key_data(data, impl=impl)


def unwrapped(array: Any) -> jax.Array:
    """The data of random keys, or the array."""
    return array if impl_of(array) is None else jax.random.key_data(array)
