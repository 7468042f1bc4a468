"""Writes execution logs in Bazel's binary form, from spawns in the form of its JSON logs.

write(file, [{"mnemonic": "CppCompile", "listedOutputs": ["a.o"], "exitCode": 1}])
unpack("4.2.3", "spawns", file)      # a log that this version of Bazel has written
"""

import gzip
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

_RECORDED = Path(__file__).parent / "testdata"
_PAIR = {"name": 1, "value": 2}
_FILE = {"path": 1, "digest": (2, {"hash": 1}), "symlinkTargetPath": 4}
# The fields of SpawnExec that are read, by Bazel's spawn.proto.
_SPAWN = {
    "commandArgs": 1,
    "environmentVariables": (2, _PAIR),
    "platform": (3, {"properties": (1, _PAIR)}),
    "inputs": (4, _FILE),
    "listedOutputs": 5,
    "cacheable": 7,
    "mnemonic": 10,
    "actualOutputs": (11, _FILE),
    "runner": 12,
    "remoteCacheHit": 13,
    # Bazel 7 has this name for it.
    "cacheHit": 13,
    "status": 14,
    "exitCode": 15,
    "remoteCacheable": 16,
    "targetLabel": 18,
    "digest": (19, {"hash": 1}),
}


def write(file: Path, spawns: Iterable[Mapping[str, Any]]) -> None:
    """Writes a log."""
    messages = [b"".join(_encoded(spawn, _SPAWN)) for spawn in spawns]
    file.write_bytes(b"".join(_varint(len(message)) + message for message in messages))


def unpack(version: str, name: str, file: Path) -> None:
    """Writes a log that this version of Bazel wrote, as far as its fields are read."""
    file.write_bytes(gzip.decompress((_RECORDED / f"bazel-{version}" / f"{name}.gz").read_bytes()))


def _encoded(values: Mapping[str, Any], fields: Mapping[str, Any]) -> Iterator[bytes]:
    for name in values.keys() & fields.keys():
        number, inner = fields[name] if isinstance(fields[name], tuple) else (fields[name], {})
        for value in values[name] if isinstance(values[name], list) else [values[name]]:
            if isinstance(value, int):
                yield _varint(number << 3) + _varint(value)
                continue
            content = b"".join(_encoded(value, inner)) if inner else value.encode()
            yield _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    groups = []
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number])
