"""Reads Bazel's execution log: the processes that it started or found in a cache, and their keys.

    for spawn in read(root / FILE):
        spawn.mnemonic              # "CppCompile"
        spawn.inputs["csrc/a.h"]    # the hash of its content

Every format of Bazel 4.2.3 and 7.7.1 is read: JSON, binary, which setup.py uses because Bazel takes
8 ms longer for each action in JSON, and compact, which is compressed. The last two contain
protocol buffers. These are decoded here: a generated decoder would need Bazel's .proto file and the
protobuf package.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

# Where --config=report writes the log.
FILE = Path("build") / "execution.bin"


class Spawn(NamedTuple):
    """A process, or the cache entry that replaced it.

    Attributes:
      mnemonic: the kind of the action, as Bazel 7 names it.
      target: label; empty with Bazel 4, which does not log it.
      outputs: declared outputs, which identify the action.
      arguments: the command line.
      variables: the environment.
      properties: of the platform, such as the fingerprint of the toolchain.
      inputs: path -> hash of the content; empty for an empty file; `-> target` for a link. The
        runfiles of a program have their own paths in a compact log; in JSON, those of the links.
      products: path -> hash of the files that the action wrote.
      key: hash in the action cache; empty with Bazel 4, and if no disk or remote cache is in use.
      cacheable: whether a disk cache or a remote cache may hold the result.
      hit: whether the result came from a cache.
      runner: such as "local", "linux-sandbox" or "disk cache hit".
      failed: whether the process failed.
    """

    mnemonic: str
    target: str
    outputs: tuple[str, ...]
    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    properties: Mapping[str, str]
    inputs: Mapping[str, str]
    products: Mapping[str, str]
    key: str
    cacheable: bool
    hit: bool
    runner: str
    failed: bool = False


class MissingPackage(Exception):
    """A log cannot be read without a package; the message names the command that installs it."""


def read(file: Path) -> Iterator[Spawn]:
    """The spawns of a log. A missing file counts as empty, and one that a killed Bazel left is read
    as far as it goes.

    Raises:
      MissingPackage: the log is compressed and the package zstandard is not installed.
    """
    try:
        content = file.read_bytes()
    except OSError:
        return
    if content.startswith(_ZSTD):
        yield from _of_compact(_decompressed(content))
    elif content.startswith((b"{\n ", b'{"')):
        yield from map(_of_json, _objects(content.decode(errors="replace")))
    else:
        yield from _of_binary(content)


def _mnemonic(mnemonic: str, outputs: tuple[str, ...]) -> str:
    # Bazel 4 calls the making of an archive a link. The archive of a library with `alwayslink` is a
    # .lo file.
    if mnemonic == "CppLink" and outputs and outputs[0].endswith((".a", ".lo")):
        return "CppArchive"
    return mnemonic


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """A sequence of JSON objects on many lines each."""
    decoder = json.JSONDecoder()
    position = 0
    while (position := text.find("{", position)) >= 0:
        try:
            entry, position = decoder.raw_decode(text, position)
        except ValueError:
            return
        yield entry


def _of_json(entry: Mapping[str, Any]) -> Spawn:
    def pairs(listed: list[dict[str, str]]) -> dict[str, str]:
        return {pair["name"]: pair.get("value", "") for pair in listed}

    def hashes(listed: list[dict[str, Any]]) -> dict[str, str]:
        return {file["path"]: _json_hash(file) for file in listed}

    outputs = tuple(entry.get("listedOutputs", ()))
    return Spawn(
        mnemonic=_mnemonic(entry["mnemonic"], outputs),
        target=entry.get("targetLabel", ""),
        outputs=outputs,
        arguments=tuple(entry.get("commandArgs", ())),
        variables=pairs(entry.get("environmentVariables", [])),
        properties=pairs(entry.get("platform", {}).get("properties", [])),
        inputs=hashes(entry.get("inputs", [])),
        products=hashes(entry.get("actualOutputs", [])),
        key=entry.get("digest", {}).get("hash", ""),
        cacheable=bool(entry.get("cacheable") and entry.get("remoteCacheable")),
        hit=bool(entry.get("cacheHit") or entry.get("remoteCacheHit")),
        runner=entry.get("runner", ""),
        failed=bool(entry.get("exitCode") or entry.get("status")),
    )


def _json_hash(file: Mapping[str, Any]) -> str:
    target = file.get("symlinkTargetPath")
    return f"-> {target}" if target else file.get("digest", {}).get("hash", "")


_ZSTD = b"\x28\xb5\x2f\xfd"


def _decompressed(content: bytes) -> bytes:
    try:
        import zstandard
    except ImportError:
        import sys

        raise MissingPackage(
            "This log is compressed, and the package that reads it is not installed.\n"
            f"Install it:  {sys.executable} -m pip install zstandard"
        ) from None
    parts = []
    reader = zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True)
    try:
        while part := reader.read(1 << 20):
            parts.append(part)
    except zstandard.ZstdError:
        # The end of a log that a killed Bazel left.
        pass
    return b"".join(parts)


class _Message:
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

    def __contains__(self, field: int) -> bool:
        return field in self._values

    def values(self, field: int) -> list[Any]:
        return self._values.get(field, [])

    def number(self, field: int) -> int:
        return self._values.get(field, [0])[-1]

    def text(self, field: int) -> str:
        return self._values.get(field, [b""])[-1].decode()

    def texts(self, field: int) -> tuple[str, ...]:
        return tuple(value.decode() for value in self.values(field))

    def message(self, field: int) -> "_Message":
        return _Message(self._values.get(field, [b""])[-1])

    def messages(self, field: int) -> "list[_Message]":
        return [_Message(value) for value in self.values(field)]

    def numbers(self, field: int) -> list[int]:
        """A repeated number, which is packed into one value."""
        found = []
        for packed in self.values(field):
            position = 0
            while position < len(packed):
                number, position = _varint(packed, position)
                found.append(number)
        return found

    def pairs(self, field: int) -> dict[str, str]:
        return {pair.text(1): pair.text(2) for pair in self.messages(field)}


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7


def _messages(data: bytes) -> Iterator[_Message]:
    """Messages in a row, each after its length; the last may be cut."""
    position = 0
    while position < len(data):
        try:
            size, position = _varint(data, position)
            if position + size > len(data):
                return
            yield _Message(data[position : position + size])
        except IndexError:
            return
        position += size


def _of_binary(data: bytes) -> Iterator[Spawn]:
    """The spawns in a sequence of SpawnExec; Bazel's spawn.proto lists the fields."""
    # Most actions have most headers in common.
    known: dict[bytes, tuple[str, str]] = {}

    def file(value: bytes) -> tuple[str, str]:
        if value not in known:
            message = _Message(value)
            target = message.text(4)
            known[value] = message.text(1), f"-> {target}" if target else message.message(2).text(1)
        return known[value]

    for spawn in _messages(data):
        outputs = spawn.texts(5)
        yield Spawn(
            mnemonic=_mnemonic(spawn.text(10), outputs),
            target=spawn.text(18),
            outputs=outputs,
            arguments=spawn.texts(1),
            variables=spawn.pairs(2),
            properties=spawn.message(3).pairs(1),
            inputs=dict(map(file, spawn.values(4))),
            products=dict(map(file, spawn.values(11))),
            key=spawn.message(19).text(1),
            cacheable=bool(spawn.number(7) and spawn.number(16)),
            hit=bool(spawn.number(13)),
            runner=spawn.text(12),
            failed=bool(spawn.number(15) or spawn.text(14)),
        )


def _of_compact(data: bytes) -> Iterator[Spawn]:
    """The spawns in a sequence of ExecLogEntry. An entry refers to earlier ones by number."""
    entries: dict[int, _Entry] = {0: _Entry("", {})}
    for entry in _messages(data):
        if 7 in entry:
            yield _spawn(entry.message(7), entries)
        else:
            entries[entry.number(1)] = _entry(entry, entries)


class _Entry(NamedTuple):
    """The path of a file or folder, and the files that it stands for: path -> hash."""

    path: str
    files: dict[str, str]


def _entry(message: _Message, known: Mapping[int, _Entry]) -> _Entry:
    def union(*numbers: int) -> dict[str, str]:
        return {path: hash for number in numbers for path, hash in known[number].files.items()}

    def hash_of(file: _Message) -> str:
        return file.message(2).text(1)

    if 3 in message:
        file = message.message(3)
        return _Entry(file.text(1), {file.text(1): hash_of(file)})
    if 4 in message:
        folder = message.message(4)
        inside = {f"{folder.text(1)}/{f.text(1)}": hash_of(f) for f in folder.messages(2)}
        return _Entry(folder.text(1), inside)
    if 5 in message:
        link = message.message(5)
        return _Entry(link.text(1), {link.text(1): f"-> {link.text(2)}"})
    if 6 in message:
        inputs = message.message(6)
        return _Entry("", union(*inputs.numbers(4), *inputs.numbers(5)))
    if 9 in message:
        links = message.message(9)
        # A link to a file has the file's content.
        own = {link.text(1): "".join(union(link.number(2)).values()) for link in links.messages(1)}
        return _Entry("", {**union(*links.numbers(2)), **own})
    if 10 in message:
        tree = message.message(10)
        inside = {**union(tree.number(3), tree.number(4)), **dict.fromkeys(tree.texts(5), "")}
        if 6 in tree:
            inside["_repo_mapping"] = hash_of(tree.message(6))
        placed = {f"{tree.text(1)}/{path}": hash for path, hash in inside.items()}
        return _Entry(tree.text(1), {**union(tree.number(2)), **placed})
    return _Entry("", {})


def _spawn(spawn: _Message, entries: Mapping[int, _Entry]) -> Spawn:
    made = [entries[output.number(5)] for output in spawn.messages(6)]
    missing = [output.text(4) for output in spawn.messages(6) if 4 in output]
    outputs = sorted([*(entry.path for entry in made if entry.path), *missing])
    return Spawn(
        mnemonic=_mnemonic(spawn.text(8), tuple(outputs)),
        target=spawn.text(7),
        outputs=tuple(outputs),
        arguments=spawn.texts(1),
        variables=spawn.pairs(2),
        properties=spawn.message(3).pairs(1),
        inputs=entries[spawn.number(4)].files,
        products={path: hash for entry in made for path, hash in entry.files.items()},
        key=spawn.message(16).text(1),
        cacheable=bool(spawn.number(14) and spawn.number(15)),
        hit=bool(spawn.number(12)),
        runner=spawn.text(11),
        failed=bool(spawn.number(9) or spawn.text(10)),
    )
