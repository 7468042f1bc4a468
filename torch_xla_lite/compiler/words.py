"""Reads the arguments of a recorded call from its words (csrc/ops/words.h).

    Decoder("aten::sum.dim_IntList", words, operands, scalars).args     # [an operand, [1], False]
    constants("aten::sum.dim_IntList", words)     # {"self": "a tensor", "dim": [1], ...}

A write through a view has the words of the view's call.
"""

from __future__ import annotations

import dataclasses
import itertools
import struct
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
import torch

from ..lowering.base import registry
from ..lowering.base.tags import WRAPPED_NUMBER, Tag
from . import jax_programs


class Scalars(Protocol):
    """Runtime scalars, handed out in order."""

    def number(self, dtype: np.dtype) -> Any:
        """The next number of a call."""

    def next_float(self) -> Callable[[np.dtype], Any] | None:
        """Gives the number that is next, a float, in any dtype of floats."""


class Decoder:
    """The arguments of a call, read from its words (csrc/ops/words.h).

    args: in schema order, as lowerings get them.
    numbers: the runtime scalars among them, `[]` each.
    """

    def __init__(
        self, op: str, words: list[int], operands: Iterable[Any], scalars: Scalars
    ) -> None:
        self._words = words
        self._at = 1  # the first word identifies the op
        self._operands = iter(operands)
        self._scalars = scalars
        self.numbers: list[Any] = []
        self.args = [self._value() for _ in range(_num_arguments(op))]

    def _word(self) -> int:
        self._at += 1
        return self._words[self._at - 1]

    def _value(self) -> Any:
        head = self._word()
        return _KINDS[head & 0xFF].read(self, head >> 8)

    def _number(self, payload: int) -> Any:
        dtype = registry.DTYPES[payload & ~WRAPPED_NUMBER]
        # Tensors and arguments of type Scalar have a dtype; only Python numbers promote as wrapped
        # numbers.
        as_float = self._scalars.next_float() if dtype == np.float64 else None
        number = self._scalars.number(dtype)
        self.numbers.append(number)
        return registry.WrappedNumber(number, as_float) if payload & WRAPPED_NUMBER else number

    def _string(self, length: int) -> str:
        count = (length + 7) // 8
        return struct.pack(f"<{count}Q", *(self._word() for _ in range(count)))[:length].decode()

    def _int(self) -> int:
        word = self._word()
        return word - (word >> 63 << 64)

    def _double(self) -> float:
        return struct.unpack("<d", struct.pack("<Q", self._word()))[0]


@dataclasses.dataclass(frozen=True, slots=True)
class _Kind:
    """How the words of a kind of argument are read.

    read: the value, from the words after the head; takes the payload of the head.
    words: how many words follow the head. The items of a list have heads of their own.
    """

    read: Callable[[Decoder, int], Any]
    words: Callable[[int], int] = lambda payload: 0


def _list_of(read_item: Callable[[Decoder], Any]) -> _Kind:
    return _Kind(
        lambda decoder, count: [read_item(decoder) for _ in range(count)], lambda count: count
    )


_KINDS: dict[int, _Kind] = {
    Tag.NONE: _Kind(lambda decoder, payload: None),
    Tag.TENSOR: _Kind(lambda decoder, payload: next(decoder._operands)),
    Tag.BOOL: _Kind(lambda decoder, payload: bool(payload)),
    Tag.INT: _Kind(lambda decoder, payload: decoder._int(), lambda payload: 1),
    Tag.DOUBLE: _Kind(lambda decoder, payload: decoder._double(), lambda payload: 1),
    Tag.COMPLEX: _Kind(
        lambda decoder, payload: complex(decoder._double(), decoder._double()), lambda payload: 2
    ),
    Tag.STRING: _Kind(Decoder._string, lambda length: (length + 7) // 8),
    Tag.LIST: _Kind(lambda decoder, count: [decoder._value() for _ in range(count)]),
    Tag.SCALAR: _Kind(Decoder._number),
    Tag.DEVICE: _Kind(lambda decoder, payload: None),
    Tag.INT_LIST: _list_of(Decoder._int),
    Tag.DOUBLE_LIST: _list_of(Decoder._double),
    Tag.BOOL_LIST: _list_of(lambda decoder: bool(decoder._word())),
}


def argument_words(op: str, words: list[int]) -> list[int]:
    """The words of a call's arguments alone. Those of tensors come without the addresses of shapes,
    which differ from process to process."""
    arguments: list[int] = []
    at, missing = 1, _num_arguments(op)  # The first word is the op's.
    while missing:
        tag, payload = words[at] & 0xFF, words[at] >> 8
        end = at + 1 + _KINDS[tag].words(payload)
        arguments += [tag] if tag == Tag.TENSOR else words[at:end]
        at = end
        missing += (payload if tag == Tag.LIST else 0) - 1
    return arguments


def constants(op: str, words: list[int]) -> dict[str, Any]:
    """The arguments of a call by name, as far as they decide what is compiled: operands and runtime
    scalars are only named as such."""
    schema = torch._C._get_schema(*split_name(op))
    values = Decoder(op, words, itertools.repeat("a tensor"), _AnyScalars()).args
    named = {
        argument.name: _with_dtype_names(value, str(argument.real_type))
        for argument, value in zip(schema.arguments, values, strict=False)
    }
    if op == jax_programs.OP:
        named["program"] = jax_programs.describe(named["program"])
    return named


def _with_dtype_names(value: Any, kind: str) -> Any:
    is_dtype = "ScalarType" in kind and isinstance(value, int)
    return str(registry.DTYPES[value]) if is_dtype else value


def default_dtype(words: list[int]) -> np.dtype:
    """torch's default dtype when the call was recorded. It is in the first word, beside the op's
    address (csrc/ops/call.cc)."""
    return registry.DTYPES[words[0] >> 56]


class _AnyScalars:
    """Stands for runtime scalars where their values do not matter."""

    def number(self, dtype: np.dtype) -> str:
        return f"a number of {dtype}"

    def next_float(self) -> None:
        return None


def split_name(op: str) -> tuple[str, str]:
    name, _, overload = op.partition(".")
    return name, overload


def _num_arguments(op: str) -> int:
    return len(torch._C._get_schema(*split_name(op)).arguments)
