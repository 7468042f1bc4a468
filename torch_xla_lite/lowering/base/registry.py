"""The table of lowerings: aten op name -> function on jax arrays.

A lowering is an ordinary function that takes the arguments of the op's *functional* overload and
returns jax arrays. It runs while `jax.jit` traces a recorded graph, never per op at run time.

    @lower("aten::relu")
    def relu(self: jax.Array) -> jax.Array:
        return lax.max(self, lax.full_like(self, 0))

What a lowering receives:
  * tensors as `jax.Array`, `Tensor[]` as list, `Tensor?` as array or None;
  * a Python number in a tensor's place (the 2 in `x * 2`) as `WrappedNumber`, which promotes like
    one;
  * `Scalar` arguments as Python numbers or as 0-d arrays: the recorder keeps a number in the graph
    if it is the schema's default (`alpha=1`) or an exponent that is a small integer or 0.5, and
    passes others at run time, so that a new learning rate compiles nothing. An op whose scalars
    must be known while tracing is registered with `constants=True`;
  * dtypes as numpy dtypes (or None). Device, layout, memory format, generator, pin_memory and
    non_blocking have no meaning at this level and are dropped.
A parameter named `outs` receives the shapes and dtypes that torch inferred for the outputs, one
named `key` a jax PRNG key.

`call` casts every output to the dtype that torch inferred, so a lowering may compute in a wider
one.

What the recorder and the interpreter have to know of an op is stated in the decorator, too:
`facts.Facts` has the keywords.

An op that torch can decompose has a lowering if that gives fewer instructions, takes dtypes that
the kernels refuse, checks values, has a finite derivative where the decomposition has none, is
shared with another op, or is traced faster and called by common models.

A module of this package that registers lowerings is imported when one of them is first needed.
`table.py` says which module that is, and a table of the C++ code has the facts; after a change of
the decorators, write them again:

    python scripts/lowering_table.py
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import torch

from torch_xla_lite.lowering.base import table
from torch_xla_lite.lowering.base.facts import Facts
from torch_xla_lite.startup.late_jax import jax, jnp, lax

_FAMILIES = "torch_xla_lite.lowering"


@dataclasses.dataclass(frozen=True, slots=True)
class WrappedNumber:
    """A Python number in the place of a tensor: only its category takes part in type promotion.

    value: 0-d, of dtype float64, int64, bool or complex128.
    as_float: gives a float64 number in another dtype of floats. A graph converts all its numbers
        together; XLA takes longer to compile if each is converted.
    """

    value: Any
    as_float: Callable[[np.dtype], Any] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Lowering:
    """One entry of the table.

    wants_outs, wants_key: the function has a parameter `outs` or `key`.
    """

    fn: Callable[..., Any]
    facts: Facts
    wants_outs: bool
    wants_key: bool


class LoweringError(RuntimeError):
    """A lowering failed or returned what torch did not expect; the message names the op."""


class Unsupported(NotImplementedError):
    """Raised by a lowering that does not cover its arguments; the compiler then falls back."""


class BrokenPackage(RuntimeError):
    """A module with lowerings cannot be imported, or is not as `table.py` says. Never a reason to
    fall back: the message says what to do."""


# From the modules that are imported, and from users.
LOWERINGS: dict[str, Lowering] = {}
VIEW_WRITES: dict[str, Callable[..., jax.Array]] = {}
# The module that has the lowering of each op of this package.
DECLARED: dict[str, str] = {
    op if "::" in op else f"aten::{op}": module
    for module, ops in table.MODULES.items()
    for op in ops.split()
}

# The dtypes that XLA has: the number of the c10::ScalarType, torch's dtype, XLA's. The bridge takes
# the same ones (csrc/tensor/dtype.cc).
_TYPES: tuple[tuple[int, torch.dtype, Any], ...] = (
    (0, torch.uint8, np.uint8),
    (1, torch.int8, np.int8),
    (2, torch.int16, np.int16),
    (3, torch.int32, np.int32),
    (4, torch.int64, np.int64),
    (5, torch.float16, np.float16),
    (6, torch.float32, np.float32),
    (7, torch.float64, np.float64),
    (9, torch.complex64, np.complex64),
    (10, torch.complex128, np.complex128),
    (11, torch.bool, np.bool_),
    (15, torch.bfloat16, ml_dtypes.bfloat16),
    (23, torch.float8_e5m2, ml_dtypes.float8_e5m2),
    (24, torch.float8_e4m3fn, ml_dtypes.float8_e4m3fn),
    (25, torch.float8_e5m2fnuz, ml_dtypes.float8_e5m2fnuz),
    (26, torch.float8_e4m3fnuz, ml_dtypes.float8_e4m3fnuz),
    (27, torch.uint16, np.uint16),
    (28, torch.uint32, np.uint32),
    (29, torch.uint64, np.uint64),
)
DTYPES: dict[int, np.dtype] = {number: np.dtype(xla) for number, _, xla in _TYPES}
NUMBERS: dict[torch.dtype, int] = {dtype: number for number, dtype, _ in _TYPES}
OF_TORCH: dict[torch.dtype, np.dtype] = {dtype: np.dtype(xla) for _, dtype, xla in _TYPES}
TO_TORCH: dict[np.dtype, torch.dtype] = {np.dtype(xla): dtype for _, dtype, xla in _TYPES}


def lower(*names: str, **facts: Any) -> Callable[[Callable], Callable]:
    """Registers the decorated function as the lowering of the named overloads, of which these facts
    hold (`facts.Facts`)."""

    def register(fn: Callable) -> Callable:
        code = inspect.unwrap(fn).__code__
        parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        entry = Lowering(fn, Facts(**facts), "outs" in parameters, "key" in parameters)
        for name in names:
            if name in LOWERINGS:
                raise LoweringError(f"{name} has two lowerings: {LOWERINGS[name].fn} and {fn}")
            check_declared(name, entry)
            LOWERINGS[name] = entry
        return fn

    return register


def check_declared(name: str, entry: Lowering) -> None:
    """Raises `BrokenPackage` if `table.py` says something else about a lowering of this package."""
    package, _, module = (entry.fn.__module__ or "").rpartition(".")
    if package != _FAMILIES:
        return
    if DECLARED.get(name) != module:
        raise BrokenPackage(
            f"lowering/base/table.py is out of date about {name} (in {module}.py).\n"
            "Write it again:  python scripts/lowering_table.py"
        )


def find(name: str) -> Lowering | None:
    """The lowering of an op; imports its module when that has not been needed before."""
    if name in DECLARED:
        load(DECLARED[name])
    return LOWERINGS.get(name)


# A lowering is in LOWERINGS before the rest of its module has run: a second thread has to wait for
# the import, not for the entry.
@functools.cache
def load(module: str) -> ModuleType:
    """Imports a module of this package when it is needed."""
    try:
        return importlib.import_module(f"{_FAMILIES}.{module}")
    except ImportError as error:
        raise BrokenPackage(
            f"lowering/{module}.py cannot be imported: {error}\n"
            "Install torch_xla_lite again. A test needs the file in its deps:  "
            f"//torch_xla_lite/lowering:{module}"
        ) from error


def load_all() -> None:
    """Imports all modules with lowerings, so that LOWERINGS and VIEW_WRITES are complete."""
    for module in table.MODULES:
        load(module)


def registered_by_users() -> list[str]:
    """Ops whose lowering is not part of this package (custom_ops.py)."""
    package = __name__.partition(".")[0]
    # The module is None for code that runs by exec.
    modules = {op: entry.fn.__module__ or "" for op, entry in list(LOWERINGS.items())}
    return [op for op, module in modules.items() if module.partition(".")[0] != package]


def writes(*names: str) -> Callable[[Callable], Callable]:
    """Registers the inverse of a view: `fn(base, value, *view_args)` gives the new base. All are in
    views.py."""

    def register(fn: Callable) -> Callable:
        for name in names:
            VIEW_WRITES[name] = fn
        return fn

    return register


def call(
    op_name: str,
    args: Sequence[Any],
    outs: Sequence[jax.ShapeDtypeStruct | None],
    key: jax.Array | None = None,
) -> list[jax.Array | None]:
    """Lowers one op call. Returns all outputs in one flat list, including the items of `Tensor[]`.

    Args:
      op_name: as in `LOWERINGS`, for example "aten::add.Tensor".
      args: all arguments in schema order, decoded as the module's docstring says, dtypes still as
        integers.
      outs: shape and dtype that torch inferred for each output; None if torch leaves it undefined.
      key: for random ops.

    Raises:
      Unsupported: the lowering does not cover these arguments.
      LoweringError: anything else went wrong.
    """
    entry = _existing(op_name)
    try:
        positional, keywords = _bind(op_name, args)
        if entry.wants_outs:
            keywords["outs"] = outs
        if entry.wants_key:
            keywords["key"] = key
        results = flatten(entry.fn(*positional, **keywords))
        if len(results) != len(outs):
            raise LoweringError(f"it gave {len(results)} outputs, torch expects {len(outs)}")
        return [_checked(result, out) for result, out in zip(results, outs, strict=True)]
    except Unsupported:
        raise
    except Exception as error:
        raise LoweringError(f"lowering of {op_name} failed: {error}") from error


def _existing(op_name: str) -> Lowering:
    entry = find(op_name)
    if entry is None:
        raise KeyError(op_name)
    return entry


def write_view(
    op_name: str, args: Sequence[Any], base: jax.Array, value: jax.Array, output: int | None = None
) -> jax.Array:
    """The base after `value` was written through the view `op_name(*args)` of it.

    Args:
      args: of the view op, in schema order; the first, the viewed tensor, is ignored.
      output: which output, for views that have several (split, unbind).
    """
    load("views")
    try:
        positional, keywords = _bind(op_name, [base, *args[1:]])
        inverse = VIEW_WRITES.get(op_name)
        if inverse is not None and output is None:
            written = inverse(base, value, *positional[1:], **keywords)
            if written is not None:
                return written
        return _scatter_through_view(op_name, positional, keywords, base, value, output)
    except Exception as error:
        raise LoweringError(f"writing through {op_name} failed: {error}") from error


def _scatter_through_view(
    op_name: str,
    positional: list[Any],
    keywords: dict[str, Any],
    base: jax.Array,
    value: jax.Array,
    output: int | None,
) -> jax.Array:
    # For any view: applied to the positions of the base, it gives the position of each element of
    # the value.
    positions = lax.iota(np.int64, base.size).reshape(base.shape)
    entry = _existing(op_name)
    if entry.wants_outs:
        keywords["outs"] = [jax.ShapeDtypeStruct(value.shape, np.dtype(np.int64))]
    viewed = entry.fn(positions, *positional[1:], **keywords)
    where = viewed if output is None else viewed[output]
    mode = "promise_in_bounds"
    if op_name in _OVERLAPPING:
        # The view may contain an element of the base several times. If the write went through a
        # further view, `value` may differ from the old view at only one of these places; the others
        # must not write the old element back.
        if entry.wants_outs:
            keywords["outs"] = [jax.ShapeDtypeStruct(value.shape, value.dtype)]
        old = entry.fn(base, *positional[1:], **keywords)
        where, mode = jnp.where(_differ(value, old), where, base.size), "drop"
    flat = base.reshape(-1).at[where.reshape(-1)].set(value.reshape(-1), mode=mode)
    return flat.reshape(base.shape)


# Views that may contain an element of the base more than once.
_OVERLAPPING = frozenset({"aten::as_strided", "aten::expand", "aten::unfold"})


def _differ(a: jax.Array, b: jax.Array) -> jax.Array:
    """Where the bits of two arrays of one dtype differ: NaN equals itself, 0 differs from -0."""
    if a.dtype.kind == "c":
        return _differ(lax.real(a), lax.real(b)) | _differ(lax.imag(a), lax.imag(b))
    if a.dtype.kind not in "biu":
        bits = np.dtype(f"uint{8 * a.dtype.itemsize}")
        a, b = lax.bitcast_convert_type(a, bits), lax.bitcast_convert_type(b, bits)
    return a != b


def overload(op_name: str) -> torch._ops.OpOverload:
    namespace, _, rest = op_name.partition("::")
    name, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")


@functools.cache
def _slots(op: torch._ops.OpOverload) -> tuple[tuple[str, bool, bool, bool], ...]:
    """(name, is dropped, is a dtype, is keyword-only) of each argument."""
    slots = []
    for argument in op._schema.arguments:
        kind = str(argument.real_type)
        dropped = kind.removeprefix("Optional[").removesuffix("]") in _MEANINGLESS_TYPES
        dropped = dropped or argument.name in _MEANINGLESS_NAMES
        slots.append((argument.name, dropped, "ScalarType" in kind, argument.kwarg_only))
    return tuple(slots)


_MEANINGLESS_TYPES = frozenset({"Device", "Layout", "MemoryFormat", "Generator"})
_MEANINGLESS_NAMES = frozenset({"pin_memory", "non_blocking", "generator"})


def _bind(op_name: str, args: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    slots = _slots(overload(op_name))
    for (name, dropped, is_dtype, keyword_only), value in zip(slots, args, strict=True):
        if dropped:
            continue
        if is_dtype and value is not None:
            value = DTYPES[value]
        if keyword_only:
            keywords[name] = value
        else:
            positional.append(value)
    return positional, keywords


def flatten(result: Any) -> list[Any]:
    if not isinstance(result, (tuple, list)):
        return [result]
    flat: list[Any] = []
    for item in result:
        flat.extend(item) if isinstance(item, (tuple, list)) else flat.append(item)
    return flat


def _agree(found: tuple, expected: tuple) -> bool:
    """Whether shapes are equal. Sizes that vary may be equal in other forms, such as `n // 2 // 2`
    and `n // 4`."""
    return len(found) == len(expected) and all(
        a == b or not (isinstance(a, int) or isinstance(b, int))
        for a, b in zip(found, expected, strict=True)
    )


def _checked(result: Any, out: jax.ShapeDtypeStruct | None) -> jax.Array | None:
    if out is None:
        return None
    if not _agree(result.shape, out.shape):
        raise LoweringError(f"it gave shape {result.shape}, torch expects {out.shape}")
    return result if result.dtype == out.dtype else lax.convert_element_type(result, out.dtype)
