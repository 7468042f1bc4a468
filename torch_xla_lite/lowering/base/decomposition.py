"""Lowers ops without a lowering by PyTorch's decompositions into ops that have one.

    results = decompose("aten::logit", [x, 1e-6], outs)    # None: call the ATen kernel instead

PyTorch can decompose some 400 ops into others. The decomposition is a Python function of tensors.
Here it runs while jax traces, on tensors that stand for jax's arrays: each op that it calls is
lowered at once, so that XLA can fuse it and run it on its own threads, which it cannot do with an
ATen kernel in its program. That takes 0.2 to 3 ms more than a lowering; most of it is the Python
code of the decomposition.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_map

from torch_xla_lite.lowering.base import promotion, registry
from torch_xla_lite.startup.late_jax import jax, jnp, lax

# More ops are an unrolled loop; the kernel is then the better choice.
_MAX_STEPS = 300


@dataclasses.dataclass(frozen=True)
class Tensor:
    """The properties of a tensor argument that affect tracing."""

    shape: tuple[int, ...]
    dtype: np.dtype


@dataclasses.dataclass(frozen=True)
class _Constant:
    """Any other argument. It includes the type because 1, 1.0 and True compare equal."""

    type: type
    value: Any


# torch 2.13's decomposition gives another loss than its kernels: 4.05, not 1.91, for the values of
# test/python/decomposition_test.py.
_WRONG = frozenset({"aten::multilabel_margin_loss_forward"})


class _NoProgram(Exception):
    """The op cannot be decomposed into ops that have lowerings."""


class _Decomposing(threading.local):
    """The ops that this thread is decomposing, outermost first, and how many it has lowered."""

    def __init__(self) -> None:
        self.ops: list[torch._ops.OpOverload] = []
        self.steps = 0


_decomposing = _Decomposing()


class _Array(torch.Tensor):
    """A tensor that stands for an array while jax traces."""

    array: jax.Array

    @staticmethod
    def __new__(cls, array: jax.Array) -> _Array:
        dtype = torch_dtype(np.dtype(array.dtype))
        tensor = torch.Tensor._make_wrapper_subclass(cls, array.shape, dtype=dtype, device="cpu")
        tensor.array = array
        return tensor

    @classmethod
    def __torch_dispatch__(
        cls, op: torch._ops.OpOverload, types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        return _call(op, args, kwargs or {})


class _Factories(TorchDispatchMode):
    """Lowers what a decomposition creates (arange, ones), which would be constants of the graph."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """torch imports its compiler, which takes 0.6 s, for a mode that must not be compiled."""
        return False

    def __torch_dispatch__(
        self, op: torch._ops.OpOverload, types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        if _creates(op) and registry.find(op.name()) is not None:
            return _call(op, args, kwargs or {})
        return op(*args, **(kwargs or {}))


@functools.cache
def _creates(op: torch._ops.OpOverload) -> bool:
    arguments = op._schema.arguments
    takes_tensor = any("Tensor" in str(argument.type) for argument in arguments)
    return not takes_tensor and any(argument.name == "device" for argument in arguments)


def decompose(
    op_name: str, args: Sequence[Any], outs: Sequence[jax.ShapeDtypeStruct | None]
) -> list[jax.Array | None] | None:
    """Lowers one op call through PyTorch's decomposition; arguments and result as `registry.call`.

    Returns:
      None if there is no decomposition, one of its ops has no lowering, or it needs a value.
    """
    op = registry.overload(op_name)
    if torch.Tag.nondeterministic_seeded in op.tags or not (op in _table() or _is_composite(op)):
        return None
    if promotion.default_float() != registry.OF_TORCH[torch.get_default_dtype()]:
        return None  # The op was recorded with another default dtype.
    signature = tuple(describe(arg) for arg in args)
    _decomposing.steps = 0
    try:
        # The user's modes must not see these calls, which are internal.
        with _disable_current_modes(), torch._C.DisableTorchFunction(), torch.no_grad():
            arrays = (_Array(jnp.asarray(_value(arg))) for arg in tensors(args))
            positional, keywords = bind(op, signature, arrays)
            results = registry.flatten(_decomposed(op, positional, keywords))
    except registry.BrokenPackage:
        raise
    except Exception:
        # A decomposition may need a value, loop over data or write to a tensor. The ATen kernel has
        # none of these limits, and raises the right error if there is one.
        return None
    if len(results) != len(outs):
        return None
    return _checked(results, outs)


def _checked(
    results: Sequence[Any], outs: Sequence[jax.ShapeDtypeStruct | None]
) -> list[jax.Array | None] | None:
    arrays: list[jax.Array | None] = []
    for result, out in zip(results, outs, strict=True):
        if out is not None and (result is None or tuple(result.shape) != out.shape):
            return None
        arrays.append(
            None if out is None else lax.convert_element_type(as_array(result), out.dtype)
        )
    return arrays


def _call(op: torch._ops.OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """An op that a decomposition calls."""
    if op._schema.is_mutable:
        raise _NoProgram(f"{op.name()} writes to a tensor")
    entry = registry.find(op.name())
    if entry is not None:
        return _lowered(entry, op, args, kwargs)
    return _decomposed(op, args, kwargs)


def _decomposed(op: torch._ops.OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    if op in _decomposing.ops:
        raise _NoProgram(f"{op.name()} is made of itself")
    _decomposing.ops.append(op)
    try:
        with _Factories():
            if op in _table():
                return _table()[op](*args, **kwargs)
            result = op.decompose(*args, **kwargs)
        if result is NotImplemented:
            raise _NoProgram(op.name())
        return result
    finally:
        _decomposing.ops.pop()


def _lowered(
    entry: registry.Lowering,
    op: torch._ops.OpOverload,
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Any:
    _decomposing.steps += 1
    if entry.wants_key or _decomposing.steps > _MAX_STEPS:
        raise _NoProgram(op.name())
    keywords = tree_map(_on_meta, kwargs)
    if any(argument.name == "device" for argument in op._schema.arguments):
        keywords["device"] = "meta"
    inferred = op(*tree_map(_on_meta, args), **keywords)
    outs = [_struct(output) for output in registry.flatten(inferred)]
    results = map(
        _tensor_or_none, registry.call(op.name(), in_schema_order(op, args, kwargs), outs)
    )
    # In the form that the op has them: one tensor, several, lists of them.
    return tree_map(lambda output: next(results), inferred)


def _on_meta(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty(value.shape, dtype=value.dtype, device="meta")
    return value


def _tensor_or_none(array: jax.Array | None) -> _Array | None:
    return None if array is None else _Array(array)


def _struct(output: Any) -> jax.ShapeDtypeStruct | None:
    if output is None:
        return None
    return jax.ShapeDtypeStruct(tuple(output.shape), registry.OF_TORCH[output.dtype])


def in_schema_order(
    op: torch._ops.OpOverload, args: Sequence[Any], kwargs: dict[str, Any]
) -> list[Any]:
    """All arguments in schema order, as `registry.call` wants them."""
    found = []
    for position, argument in enumerate(op._schema.arguments):
        given = position < len(args)
        value = args[position] if given else kwargs.get(argument.name, argument.default_value)
        value = tree_map(_argument, value)
        if str(argument.type) == "Tensor" and isinstance(value, (bool, int, float, complex)):
            value = registry.WrappedNumber(np.asarray(value))
        found.append(value)
    return found


def _argument(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return as_array(value)
    if isinstance(value, torch.dtype):
        return registry.NUMBERS[value]
    if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
        return None
    return value


def as_array(tensor: torch.Tensor) -> jax.Array:
    """Tensors that decompositions make of numbers are torch's own, and constants of the graph."""
    if isinstance(tensor, _Array):
        return tensor.array
    return jnp.asarray(as_numpy(tensor))


def as_numpy(tensor: torch.Tensor) -> np.ndarray:
    """The memory of a CPU tensor, if that is dense."""
    dense = tensor.detach().resolve_conj().resolve_neg().contiguous()
    # One element counts as contiguous whatever its stride is.
    as_bytes = dense.as_strided((dense.numel(),), (1,)).view(torch.uint8).numpy()
    return as_bytes.view(registry.OF_TORCH[tensor.dtype]).reshape(tensor.shape)


def _is_composite(op: torch._ops.OpOverload) -> bool:
    """Whether torch makes it of other ops on every device. Such an op is recorded in its form with
    `out` only."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd")


@functools.cache
def _table() -> dict[torch._ops.OpOverload, Callable]:
    """The decomposition of each op, including primitives (`prims::`)."""
    from torch._decomp import decomposition_table

    table = {
        op: function
        for op, function in decomposition_table.items()
        # torch itself decomposes the others, into aten ops rather than primitives.
        if isinstance(op, torch._ops.OpOverload)
        and op.name() not in _WRONG
        and not _is_composite(op)
    }
    # Many decompositions end in prims, which name the aten function that they implement.
    for name in dir(torch.ops.prims):
        prim = getattr(torch.ops.prims, name)
        if isinstance(prim, torch._ops.OpOverloadPacket) and hasattr(prim.default, "impl_aten"):
            table[prim.default] = prim.default.impl_aten
    return table


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
        return Tensor((), np.dtype(arg.value.dtype))
    if _is_tensor(arg):
        return Tensor(arg.shape, np.dtype(arg.dtype))
    if isinstance(arg, (list, tuple)):
        return tuple(describe(item) for item in arg)
    return _Constant(type(arg), arg)


def _value(arg: Any) -> Any:
    return arg.value if isinstance(arg, registry.WrappedNumber) else arg


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
    if isinstance(described, Tensor):
        return next(tensors)
    if isinstance(described, tuple):
        return [_example(item, tensors) for item in described]
    return described.value


def torch_dtype(dtype: np.dtype) -> torch.dtype:
    if dtype not in registry.TO_TORCH:
        raise _NoProgram(f"dtype {dtype}")
    return registry.TO_TORCH[dtype]
