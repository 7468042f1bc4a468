"""Decodes protocol buffers: a generated decoder would need Bazel's .proto files and a package.

for message in messages(log.read_bytes()):      # each after its length
    message.text(10)                            # the last value of field 10
"""

from collections.abc import Iterator
from typing import Any


class Message:
    """A protocol buffer: for each field its values, numbers or bytes."""

    def __init__(self, data: bytes):
        self._values: dict[int, list[Any]] = {}
        position = 0
        while position < len(data):
            tag, position = _varint(data, position)
            value: int | bytes
            if tag & 7 == 0:
                value, position = _varint(data, position)
            else:
                size = {1: 8, 5: 4}.get(tag & 7)
                if size is None:
                    size, position = _varint(data, position)
                value, position = data[position : position + size], position + size
            self._values.setdefault(tag >> 3, []).append(value)

    def values(self, field: int) -> list[Any]:
        """Its values of a field."""
        return self._values.get(field, [])

    def number(self, field: int) -> int:
        """The last number of a field."""
        return self._values.get(field, [0])[-1]

    def text(self, field: int) -> str:
        """The last text of a field."""
        return self._values.get(field, [b""])[-1].decode()

    def texts(self, field: int) -> tuple[str, ...]:
        """All texts of a field."""
        return tuple(value.decode() for value in self.values(field))

    def message(self, field: int) -> "Message":
        """The last message of a field."""
        return Message(self._values.get(field, [b""])[-1])

    def messages(self, field: int) -> "list[Message]":
        """All messages of a field."""
        return [Message(value) for value in self.values(field)]

    def pairs(self, field: int) -> dict[str, str]:
        """A map of a field: messages with a key and a value."""
        return {pair.text(1): pair.text(2) for pair in self.messages(field)}


def messages(data: bytes) -> Iterator[Message]:
    """Messages in a row, each after its length; the last may be cut."""
    position = 0
    while position < len(data):
        try:
            size, position = _varint(data, position)
            if position + size > len(data):
                return
            yield Message(data[position : position + size])
        except IndexError:
            return
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """A number in groups of seven bits, and the position after it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
