"""Type promotion and broadcasting by the rules of torch.

    x + 2.5            # x int32: result_dtype(x, WrappedNumber(2.5)) is float32, the default dtype
    x16 + zero_dim32   # a 0-d tensor does not widen a tensor of the same category: float16

Lowerings use lax primitives, which neither promote nor broadcast; `operands` does both, and emits
no operation for arrays that already have the right dtype and shape.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeAlias, Union

import ml_dtypes
import numpy as np
import torch

from torch_xla_lite.lowering.base import target
from torch_xla_lite.lowering.base.registry import OF_TORCH, WrappedNumber
from torch_xla_lite.startup.late_jax import jax, jnp, lax

Number: TypeAlias = int | float | bool | complex
Operand: TypeAlias = Union["jax.Array", WrappedNumber, Number]

_BOOL, _INTEGER, _FLOAT, _COMPLEX = range(4)
HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
_REAL_OF = {
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}
# Floats become integers of these dtypes by way of others, and of other dtypes by way of int32.
_TRUNCATED_AS = {
    np.dtype(dtype): np.dtype(np.uint64 if dtype == np.uint64 else np.int64)
    for dtype in (np.uint8, np.int64, np.uint32, np.uint64)
}
_MAX_SCALAR = {
    _BOOL: np.dtype(np.bool_),
    _INTEGER: np.dtype(np.int64),
}


def category(dtype: np.dtype) -> int:
    """0 bool, 1 integer, 2 float, 3 complex. The highest one is the category of the result."""
    kind = dtype.kind
    if kind == "b":
        return _BOOL
    if kind in "iu":
        return _INTEGER
    return _COMPLEX if kind == "c" else _FLOAT


_recorded_default: ContextVar[np.dtype | None] = ContextVar("_recorded_default", default=None)


@contextlib.contextmanager
def default_dtype(dtype: np.dtype) -> Iterator[None]:
    """Lowers what was recorded when `dtype` was torch's default dtype, which is another by now."""
    token = _recorded_default.set(dtype)
    try:
        yield
    finally:
        _recorded_default.reset(token)


def default_float() -> np.dtype:
    return _recorded_default.get() or OF_TORCH[torch.get_default_dtype()]


def is_float(dtype: np.dtype) -> bool:
    return category(dtype) == _FLOAT


def is_complex(dtype: np.dtype) -> bool:
    return dtype.kind == "c"


def is_integral(dtype: np.dtype) -> bool:
    """Whether a dtype is an integer type or bool."""
    return dtype.kind in "biu"


def real_dtype(dtype: np.dtype) -> np.dtype:
    return _REAL_OF.get(dtype, dtype)


def opmath_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype in which torch computes: float32 for 16-bit floats, otherwise the dtype itself."""
    return np.dtype(np.float32) if dtype in HALVES else dtype


def opmath(x: jax.Array) -> jax.Array:
    return convert(x, opmath_dtype(x.dtype))


def _complex_of(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.complex128 if dtype == np.float64 else np.complex64)


def _number_dtype(value: object) -> np.dtype:
    """The dtype of a Python number or WrappedNumber, with the width of the default dtype."""
    kind = _COMPLEX
    if isinstance(value, bool):
        kind = _BOOL
    elif isinstance(value, int):
        kind = _INTEGER
    elif isinstance(value, float):
        kind = _FLOAT
    elif not isinstance(value, complex):
        kind = category(value.dtype)
    if kind == _FLOAT:
        return default_float()
    if kind == _COMPLEX:
        return _complex_of(default_float())
    return _MAX_SCALAR[kind]


def result_dtype(*items: Operand) -> np.dtype:
    """As `torch.result_type`: within a category, tensors outrank 0-d tensors, and these numbers."""
    ranks: list[np.dtype | None] = [None, None, None]
    for item in items:
        if isinstance(item, WrappedNumber):
            rank, dtype = 2, _number_dtype(item.value)
        elif isinstance(item, (bool, int, float, complex)):
            rank, dtype = 2, _number_dtype(item)
        else:
            rank, dtype = (0 if item.ndim else 1), item.dtype
        before = ranks[rank]
        ranks[rank] = dtype if before is None else _promote(before, dtype)
    result: np.dtype | None = None
    for dtype in ranks:
        if dtype is None:
            continue
        if result is None:
            result = dtype
        elif category(dtype) > category(result):
            # Complex by a lower rank has the width of the float it meets: float64 and 1j give
            # complex128, float32 and a 0-d complex128 give complex64.
            meets_float = is_complex(dtype) and is_float(result)
            result = _complex_of(result) if meets_float else dtype
    assert result is not None
    return result


def _promote(a: np.dtype, b: np.dtype) -> np.dtype:
    if a == b:
        return a
    if category(a) != category(b):
        low, high = sorted((a, b), key=category)
        if is_complex(high) and low == np.float64:
            return np.dtype(np.complex128)
        return high
    return np.dtype(jnp.promote_types(a, b))


def convert(x: Operand, dtype: np.dtype) -> jax.Array:
    """`x` as an array of `dtype`; emits nothing if it already is one."""
    if isinstance(x, WrappedNumber):
        if x.as_float is not None and is_float(dtype):
            return x.as_float(dtype)
        x = x.value
    if isinstance(x, (bool, int, float, complex)):
        return lax.full((), x, dtype)
    if x.dtype == dtype:
        return x
    if is_complex(x.dtype) and dtype == np.bool_:
        return lax.ne(x, lax.full_like(x, 0))
    if is_complex(x.dtype) and not is_complex(dtype):
        x = lax.real(x)
    if x.dtype == np.bool_ and not is_integral(dtype):
        # Of a product with a converted bool, XLA makes a selection, and false times NaN is 0 there.
        return lax.select(x, lax.full_like(x, 1, dtype), lax.full_like(x, 0, dtype))
    if is_float(x.dtype) and dtype.kind in "iu":
        # Smaller dtypes wrap around, as in torch's kernels; XLA would give the nearest number.
        x = target.truncate(opmath(x), _TRUNCATED_AS.get(dtype, np.dtype(np.int32)))
    return (
        target.convert_complex(x, dtype)
        if is_complex(dtype)
        else lax.convert_element_type(x, dtype)
    )


def broadcast(x: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Broadcasts by the rules of torch and numpy: dimensions are aligned at the last one."""
    if x.shape == tuple(shape):
        return x
    offset = len(shape) - x.ndim
    return lax.broadcast_in_dim(x, shape, range(offset, len(shape)))


def broadcasting(*places: int) -> Callable[[Callable], Callable]:
    """Broadcasts the tensors at these places among the arguments, by default the first two.

    The tensors of a gradient have one shape, but torch.func passes some with a dimension more.
    """

    def decorate(lowering: Callable) -> Callable:
        @functools.wraps(lowering)
        def broadcast_and_lower(*args: Any, **options: Any) -> Any:
            arguments = list(args)
            shape = np.broadcast_shapes(*(args[place].shape for place in places or (0, 1)))
            for place in places or (0, 1):
                arguments[place] = broadcast(args[place], shape)
            return lowering(*arguments, **options)

        return broadcast_and_lower

    return decorate


def operands(
    *items: Operand, dtype: np.dtype | None = None, shape: tuple[int, ...] | None = None
) -> list[jax.Array]:
    """The items as arrays of the same dtype and shape, by default the promoted dtype and shape."""
    if dtype is None:
        dtype = result_dtype(*items)
    if shape is None:
        shape = np.broadcast_shapes(*(getattr(item, "shape", ()) for item in items))
    return [broadcast(convert(item, dtype), shape) for item in items]


def full(shape: tuple[int, ...], value: Operand, dtype: np.dtype) -> jax.Array:
    """An array filled with a constant or a runtime scalar."""
    if isinstance(value, (bool, int, float, complex)):
        return lax.full(tuple(shape), value, dtype)
    return broadcast(convert(value, dtype), tuple(shape))


def is_number(value: object, number: Number) -> bool:
    """Whether it is known while tracing that `value` is `number`."""
    return isinstance(value, (bool, int, float, complex)) and value == number


def canonical_dims(dims: int | list[int] | None, ndim: int) -> tuple[int, ...]:
    """The dimensions, sorted and non-negative. None and [] mean all; a 0-d tensor has none."""
    if dims is None:
        return tuple(range(ndim))
    if isinstance(dims, int):
        dims = [dims]
    if not dims:
        return tuple(range(ndim))
    if ndim == 0:
        return ()
    return tuple(sorted(dim % ndim for dim in dims))


def are_known(*sizes: object) -> bool:
    """Whether sizes are numbers. Those of exported programs may vary."""
    return all(isinstance(size, int) for size in sizes)


def index_dtype(size: object) -> np.dtype:
    """Of places among so many elements, and of counts of them, where no result needs torch's 64
    bits: accelerators compute these in pieces, and a TPU divides them by a loop."""
    return np.dtype(np.int32 if are_known(size) and size < 2**31 else np.int64)


def canonical_dim(dim: int, ndim: int) -> int:
    return dim % ndim if ndim else 0
