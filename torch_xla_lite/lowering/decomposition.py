"""Lowers ops without a lowering by PyTorch's decompositions into ops that have one.

    results = decompose("aten::logit", [x, 1e-6], outs)    # None: call the ATen kernel instead

PyTorch can decompose some 400 ops into others. The decomposition is traced with the given shapes
and dtypes, and the resulting ops are lowered one by one, so that XLA can fuse them and run them on
its own threads, which it cannot do with an ATen kernel in its program.

Decomposing has a cost: the first use takes a second (imports), and each op and shape 50 to 300 ms
for tracing and compiling, compared with 10 to 30 ms for a call of the kernel. On 64 elements both
run in 5 to 40 us, and either may be faster; on 500,000 the decomposition is up to 3 times faster
(pixel_shuffle, upsample) or 2 times slower (reflection_pad). So only large ops are decomposed.
"""

import dataclasses
import functools
import math
import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
import torch
from jax import lax

from torch_xla_lite.lowering import promotion, registry

# A longer trace is an unrolled loop; the kernel is then the better choice.
_MAX_STEPS = 300

# Calls with smaller outputs use the kernel.
_MIN_ELEMENTS = 1 << 16

# Tracing changes global state (torch's modes, the primitive that is being decomposed).
_TRACING = threading.Lock()


@dataclasses.dataclass(frozen=True)
class _Tensor:
    """The properties of a tensor argument that affect tracing."""

    shape: tuple[int, ...]
    dtype: np.dtype


@dataclasses.dataclass(frozen=True)
class _Constant:
    """Any other argument. It includes the type because 1, 1.0 and True compare equal."""

    type: type
    value: Any


@dataclasses.dataclass(frozen=True)
class _Value:
    """The value number `index` of a program."""

    index: int


@dataclasses.dataclass(frozen=True)
class _Step:
    """One op of a program; its outputs are the next values."""

    op_name: str
    args: tuple[Any, ...]
    outs: tuple[jax.ShapeDtypeStruct | None, ...]


@dataclasses.dataclass(frozen=True)
class _Program:
    """A decomposed op. The first values are the tensors among its arguments."""

    steps: tuple[_Step, ...]
    results: tuple[Any, ...]


class _NoProgram(Exception):
    """The op cannot be decomposed into ops that have lowerings."""


def decompose(
    op_name: str, args: Sequence[Any], outs: Sequence[jax.ShapeDtypeStruct | None]
) -> list[jax.Array | None] | None:
    """Lowers one op call through PyTorch's decomposition; arguments and result as `registry.call`.

    Returns:
      None if there is no decomposition, one of its ops has no lowering, or the call is too small to
      be worth decomposing.
    """
    if sum(math.prod(out.shape) for out in outs if out is not None) < _MIN_ELEMENTS:
        return None
    default = promotion.default_float()
    if default != registry.OF_TORCH[torch.get_default_dtype()]:
        return None  # The program would be that of another default dtype than the recorded one.
    program = _program(op_name, default, tuple(describe(arg) for arg in args))
    if program is None or len(program.results) != len(outs):
        return None
    values: list[Any] = list(tensors(args))
    try:
        for step in program.steps:
            step_args = [_resolve(arg, values) for arg in step.args]
            values += registry.call(step.op_name, step_args, step.outs)
    except (registry.Unsupported, registry.LoweringError):
        return None
    results = [_resolve(result, values) for result in program.results]
    if any(
        out is not None and _shape(result) != out.shape for result, out in _pairs(results, outs)
    ):
        return None
    return [
        None if out is None else lax.convert_element_type(result, out.dtype)
        for result, out in _pairs(results, outs)
    ]


def _pairs(results: list[Any], outs: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(results, outs, strict=True)


def _shape(result: Any) -> tuple[int, ...] | None:
    return None if result is None else result.shape


def _is_tensor(value: Any) -> bool:
    return isinstance(value, (jax.Array, np.ndarray, registry.WrappedNumber))


def tensors(args: Any) -> Iterator[Any]:
    """The arrays among the arguments, including those in lists, in order."""
    for arg in args:
        if isinstance(arg, (list, tuple)):
            yield from tensors(arg)
        elif _is_tensor(arg):
            yield arg


def describe(arg: Any) -> Any:
    """The key of an argument for tracing: hashable, and equal if the traced program is the same."""
    if isinstance(arg, registry.WrappedNumber):
        return _Tensor((), np.dtype(arg.value.dtype))
    if _is_tensor(arg):
        return _Tensor(arg.shape, np.dtype(arg.dtype))
    if isinstance(arg, (list, tuple)):
        return tuple(describe(item) for item in arg)
    return _Constant(type(arg), arg)


def _resolve(arg: Any, values: Sequence[Any]) -> Any:
    if isinstance(arg, _Value):
        return values[arg.index]
    if isinstance(arg, list):
        return [_resolve(item, values) for item in arg]
    return arg


@functools.lru_cache(maxsize=4096)
def _program(op_name: str, default: np.dtype, signature: tuple[Any, ...]) -> _Program | None:
    op = overload(op_name)
    if torch.Tag.nondeterministic_seeded in op.tags:
        return None
    if op not in _table():
        return None
    try:
        with _TRACING:
            return _read(_trace(op, signature))
    except Exception:
        # A decomposition may need a value, loop over data or call what fake tensors do not support.
        # The ATen kernel has none of these limits, and raises the right error if there is one.
        return None


def overload(op_name: str) -> torch._ops.OpOverload:
    namespace, _, rest = op_name.partition("::")
    name, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")


@functools.cache
def _table() -> dict[torch._ops.OpOverload, Callable]:
    """The decomposition of each op without a lowering, including primitives (`prims::`)."""
    from torch._decomp import decomposition_table

    table = {
        op: function
        for op, function in decomposition_table.items()
        if isinstance(op, torch._ops.OpOverload)
        and op.name() not in registry.LOWERINGS
        # torch itself decomposes these, into aten ops rather than primitives.
        and not torch._C._dispatch_has_kernel_for_dispatch_key(
            op.name(), "CompositeImplicitAutograd"
        )
    }
    # Many decompositions end in prims, which name the aten function that they implement.
    for name in dir(torch.ops.prims):
        prim = getattr(torch.ops.prims, name)
        if isinstance(prim, torch._ops.OpOverloadPacket) and hasattr(prim.default, "impl_aten"):
            table[prim.default] = _as_aten(prim.default)
    return table


def _as_aten(prim: torch._ops.OpOverload) -> Callable:
    """The aten function of a primitive, which must not be decomposed into the primitive again."""
    running = False

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal running
        if running:
            raise _NoProgram(f"{prim.name()} implements an op that has no lowering")
        running = True
        try:
            return prim.impl_aten(*args, **kwargs)
        finally:
            running = False

    return call


def _trace(op: torch._ops.OpOverload, signature: tuple[Any, ...]) -> torch.fx.Graph:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import _disable_current_modes

    # The user's modes must not intercept this trace, which is internal.
    with (
        _disable_current_modes(),
        torch._C.DisableTorchFunction(),
        torch.no_grad(),
        FakeTensorMode(allow_non_fake_inputs=True),
    ):
        examples = [
            torch.empty(tensor.shape, dtype=torch_dtype(tensor.dtype))
            for tensor in _flat(signature)
            if isinstance(tensor, _Tensor)
        ]

        def run(*tensors: torch.Tensor) -> Any:
            positional, keywords = bind(op, signature, iter(tensors))
            return op(*positional, **keywords)

        traced = _make_fx(run, examples)
        if any(_is_mutation(node) for node in traced.graph.nodes):
            # Decompositions may write to tensors that they created. Only a second trace removes
            # such writes.
            traced = _make_fx(torch.func.functionalize(traced, remove="mutations"), examples)
    traced.graph.eliminate_dead_code()
    return traced.graph


def _make_fx(function: Callable, examples: Sequence[torch.Tensor]) -> torch.fx.GraphModule:
    from torch.fx.experimental.proxy_tensor import make_fx

    trace = make_fx(
        function,
        decomposition_table=_table(),
        tracing_mode="real",
        _allow_non_fake_inputs=True,
    )
    return trace(*examples)


def _is_mutation(node: torch.fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _flat(signature: tuple[Any, ...]) -> Iterator[Any]:
    for item in signature:
        if isinstance(item, tuple):
            yield from _flat(item)
        else:
            yield item


def bind(
    op: torch._ops.OpOverload, signature: tuple[Any, ...], tensors: Iterator[torch.Tensor]
) -> tuple[list[Any], dict[str, Any]]:
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for argument, described in zip(op._schema.arguments, signature, strict=True):
        value = _example(described, tensors)
        kind = str(argument.real_type)
        if any(name in kind for name in ("Device", "Layout", "MemoryFormat", "Generator")):
            value = None
        elif "ScalarType" in kind and value is not None:
            value = torch_dtype(registry.DTYPES[value])
        if argument.kwarg_only:
            keywords[argument.name] = value
        else:
            positional.append(value)
    return positional, keywords


def _example(described: Any, tensors: Iterator[torch.Tensor]) -> Any:
    if isinstance(described, _Tensor):
        return next(tensors)
    if isinstance(described, tuple):
        return [_example(item, tensors) for item in described]
    return described.value


def _read(graph: torch.fx.Graph) -> _Program:
    """The traced graph as a program of lowered ops.

    Raises:
      _NoProgram: something in it has no lowering.
    """
    values: dict[torch.fx.Node, Any] = {}
    steps: list[_Step] = []
    count = 0
    for node in graph.nodes:
        if node.op == "placeholder":
            values[node] = _Value(count)
            count += 1
        elif node.op == "output":
            results = node.args[0]
            flat = results if isinstance(results, (list, tuple)) else (results,)
            return _Program(tuple(steps), tuple(_reference(item, values) for item in flat))
        elif node.op == "call_function" and node.target is operator.getitem:
            source, index = node.args
            values[node] = values[source][index]
        elif node.op == "call_function" and len(steps) < _MAX_STEPS:
            step = _step(node, values)
            steps.append(step)
            outputs = [_Value(count + i) for i in range(len(step.outs))]
            count += len(outputs)
            single = isinstance(node.meta["val"], torch.Tensor)
            values[node] = outputs[0] if single else outputs
        else:
            raise _NoProgram(node.op)
    raise _NoProgram("no output")


def _step(node: torch.fx.Node, values: dict[torch.fx.Node, Any]) -> _Step:
    op = node.target
    if not isinstance(op, torch._ops.OpOverload) or _is_mutation(node):
        raise _NoProgram(str(op))
    entry = registry.LOWERINGS.get(op.name())
    if entry is None or entry.wants_key:
        raise _NoProgram(op.name())
    args = []
    for position, argument in enumerate(op._schema.arguments):
        if position < len(node.args):
            value = node.args[position]
        else:
            value = node.kwargs.get(argument.name, argument.default_value)
        value = _reference(value, values)
        if str(argument.type) == "Tensor" and isinstance(value, (bool, int, float, complex)):
            value = registry.WrappedNumber(np.asarray(value))
        args.append(value)
    result = node.meta["val"]
    outputs = result if isinstance(result, (list, tuple)) else (result,)
    return _Step(op.name(), tuple(args), tuple(_struct(output) for output in outputs))


def _reference(value: Any, values: dict[torch.fx.Node, Any]) -> Any:
    """An argument in a traced graph, as `registry.call` expects it, except for values."""
    if isinstance(value, torch.fx.Node):
        return values[value]
    if isinstance(value, (list, tuple)):
        return [_reference(item, values) for item in value]
    if isinstance(value, torch.dtype):
        return registry.NUMBERS[value]
    if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
        return None
    return value


def _struct(output: Any) -> jax.ShapeDtypeStruct | None:
    if output is None:
        return None
    return jax.ShapeDtypeStruct(tuple(output.shape), registry.OF_TORCH[output.dtype])


def torch_dtype(dtype: np.dtype) -> torch.dtype:
    if dtype not in registry.TO_TORCH:
        raise _NoProgram(f"dtype {dtype}")
    return registry.TO_TORCH[dtype]
