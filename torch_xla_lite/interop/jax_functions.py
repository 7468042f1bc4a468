"""Recognises jax functions that a program calls again, for jax_calls.py.

    traces = traces_of(fn)          # what is known of the function; kept as long as it lives
    traces_of(lambda x: x * n)      # the same for an equal lambda: equal code, equal values

A function is recognised by identity, and a bound method by its object and function. A function that
is made again, such as a lambda in a loop, is recognised by its code and all that the code reads:
defaults, captured variables, globals, and the attributes of these that it names. That is possible
if these are numbers, texts, functions, modules, classes, or tuples of them: arrays and other
objects cannot be compared, or may change. Then each new function is traced, and after the tenth at
one line of the program there is a warning.
"""

from __future__ import annotations

import collections
import enum
import functools
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import torch

from ..compiler import new_graphs
from ..compiler.jax_programs import Traces
from ..startup import program_lines

# A line of the program that passes so many functions, one after the other, is worth a warning.
_MANY = 10
# How many functions are recognised by their code, and how many objects without weak references.
_MOST_CODES = 1024


class _Owner(dict[Any, Traces]):
    """What is known of a function, under None, and of the methods of an object, by function."""

    __slots__ = ("place", "reference")

    reference: Any  # weak where that is possible
    place: tuple[program_lines.Place, str] | None  # where it was traced first


_lock = threading.Lock()
# By the ids of objects that are alive.
_owners: dict[int, _Owner] = {}
# Those of them that are kept, the oldest first.
_kept: collections.deque[int] = collections.deque()
_by_code: collections.OrderedDict[Hashable, Traces] = collections.OrderedDict()
# How many functions that were traced at a line no longer exist.
_gone_from: collections.Counter[tuple[program_lines.Place, str]] = collections.Counter()


def unwrapped(fn: Callable, args: tuple, kwargs: dict) -> tuple[Callable, tuple, dict]:
    """A call of a `functools.partial` as one of its function: what it holds are arguments."""
    while isinstance(fn, functools.partial):
        args, kwargs = (*fn.args, *args), {**fn.keywords, **kwargs}
        fn = fn.func
    return fn, args, kwargs


def traces_of(fn: Callable) -> Traces:
    """The traces of a function; empty if it is new."""
    # Each access to a method makes a new one; object and function stay.
    owner, function = (fn.__self__, fn.__func__) if isinstance(fn, types.MethodType) else (fn, None)
    known = _owners.get(id(owner))
    if known is None:
        known = _add(owner)
    traces = known.get(function)
    return known.setdefault(function, _traces_of_equal(fn)) if traces is None else traces


def note_first_trace(fn: Callable) -> None:
    """Notes that a function is traced which has no other trace.

    Warns:
      RecompilationWarning: many functions of this name were traced at this line of the program and
        no longer exist.
    """
    name = name_of(fn)
    place = program_lines.place()
    known = _owners.get(id(getattr(fn, "__self__", fn)))
    if known is not None:
        known.place = place, name
    if _gone_from[place, name] != _MANY - 1:
        return
    _gone_from[place, name] += 1  # Once.
    file, line, function = place[:3]
    warnings.warn_explicit(
        f"{function or 'the program'} calls the tenth new {name} here, and each is traced and "
        "compiled, because it captures arrays, or objects that may change.\n"
        "Pass what it captures as arguments:  call_jax(fn, x, captured)",
        new_graphs.RecompilationWarning,
        file or "<unknown>",
        line,
    )


def name_of(fn: Callable) -> str:
    """A name of a function for messages."""
    return getattr(fn, "__qualname__", type(fn).__qualname__)


def _add(owner: Any) -> _Owner:
    known = _Owner()
    known.place = None
    number = id(owner)

    def forget(_: weakref.ref) -> None:
        gone = _owners.pop(number, None)
        if gone is not None and gone.place is not None:
            _gone_from[gone.place] += 1

    try:
        known.reference = weakref.ref(owner, forget)
    except TypeError:  # A tuple, for example. It is kept, so that no other object gets its id.
        known.reference = owner
        with _lock:
            _kept.append(number)
            if len(_kept) > _MOST_CODES:
                _owners.pop(_kept.popleft(), None)
    return _owners.setdefault(number, known)


def _traces_of_equal(fn: Callable) -> Traces:
    """Those of a function with the same code, which reads the same values, or new ones."""
    if not isinstance(fn, types.FunctionType):
        return Traces()
    try:
        key = _key_of_function(fn, ())
    except _CannotCompare:
        return Traces()
    with _lock:
        traces = _by_code.setdefault(key, Traces())
        _by_code.move_to_end(key)
        if len(_by_code) > _MOST_CODES:
            _by_code.popitem(last=False)
    return traces


def key_of(value: Any) -> Hashable:
    """Differs where values differ that a function may tell apart, such as 0.0 and -0.0, 1 and True;
    equal for NaN and NaN.

    Args:
      value: hashable.
    """
    if isinstance(value, float):
        return type(value), value.hex()
    if isinstance(value, complex):
        return type(value), value.real.hex(), value.imag.hex()
    if isinstance(value, np.generic):
        return type(value), value.dtype, value.tobytes()
    return type(value), value


def values_read_by(fn: types.FunctionType) -> list[Any]:
    """The defaults, captured variables and globals of a function."""
    cells = [cell for cell in fn.__closure__ or () if cell != _UNASSIGNED]
    values = [*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()]
    values += [cell.cell_contents for cell in cells]
    names = _names(fn.__code__)
    return values + [fn.__globals__[name] for name in names if name in fn.__globals__]


_UNASSIGNED = types.CellType()


class _CannotCompare(Exception):
    """A function reads a value that cannot be compared, or that may change."""


def _key_of_function(fn: types.FunctionType, outer: tuple[types.CodeType, ...]) -> Hashable:
    code = fn.__code__
    if code in outer or _UNASSIGNED in (fn.__closure__ or ()):
        raise _CannotCompare  # It calls itself, or a variable is assigned later.
    outer, names = (*outer, code), _names(code)
    return code, tuple(_key_of(value, outer, names) for value in values_read_by(fn))


@functools.lru_cache(_MOST_CODES)
def _names(code: types.CodeType) -> tuple[str, ...]:
    """The names of globals and attributes that code reads, also in functions within it, and its
    texts, which may be names for `getattr`."""
    found = {*code.co_names, *(text for text in code.co_consts if isinstance(text, str))}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found.update(_names(constant))
    return tuple(sorted(found))


def _key_of(
    value: Any, outer: tuple[types.CodeType, ...], names: tuple[str, ...], owners: tuple = ()
) -> Hashable:
    """Differs where values differ.

    Args:
      outer: the functions that read the value.
      names: of attributes that may be read of it.
      owners: the objects that it is an attribute of.
    """
    if isinstance(value, _VALUES):
        return key_of(value)
    if type(value) is tuple:
        return tuple(_key_of(item, outer, names, owners) for item in value)
    if isinstance(value, types.FunctionType) and "<" in value.__qualname__:  # a local one
        return _key_of_function(value, outer)
    if any(value is owner for owner in owners):
        return _Same(value)
    if isinstance(value, _OBJECTS) or hasattr(value, "__wrapped__") or _is_of_jax(value):
        owners = (*owners, value)
        read = _attributes(value, names).items()
        return _Same(value), *((name, _key_of(x, outer, names, owners)) for name, x in read)
    raise _CannotCompare


def _attributes(value: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """The attributes of an object or its base classes, without what computes them: a module may
    have some that it imports, or warns of."""
    holders = value.__mro__[::-1] if isinstance(value, type) else (value,)
    dicts = [vars(holder) for holder in holders if hasattr(holder, "__dict__")]
    return {name: held[name] for name in names for held in dicts if name in held}


def _is_of_jax(value: Any) -> bool:
    """Whether it is a function of jax that is an object, such as `jnp.add`."""
    return callable(value) and type(value).__module__.partition(".")[0] == "jax"


_VALUES = (bool, int, float, str, bytes, type(None), enum.Enum, np.dtype, torch.dtype)
_OBJECTS = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    # Attributes of classes.
    property,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.WrapperDescriptorType,
)


class _Same:
    """An object, which equals itself alone."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
