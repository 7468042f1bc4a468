"""Reads Bazel's execution log: the processes that it started or found in a cache.

    for spawn in read(root / FILE):
        spawn.mnemonic              # "CppCompile"
        spawn.inputs["csrc/a.h"]    # the hash of its content

The log is the binary one of Bazel 4.2.3 and 7.7.1: Bazel takes 8 ms longer for each action in JSON.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from bazel.pybuild import protobuf

# Where --config=report writes the log.
FILE = Path("build") / "execution.bin"


class Spawn(NamedTuple):
    """A process, or the cache entry that replaced it.

    Attributes:
      mnemonic: the kind of the action, as Bazel 7 names it.
      outputs: declared outputs, which identify the action.
      arguments: the command line.
      variables: the environment.
      properties: of the platform, such as the fingerprint of the toolchain.
      inputs: path -> hash of the content; empty for an empty file; `-> target` for a link.
      products: path -> hash of the files that the action wrote.
      hit: whether the result came from a cache.
      runner: such as "local", "linux-sandbox" or "disk cache hit".
      failed: whether the process failed.
    """

    mnemonic: str
    outputs: tuple[str, ...]
    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    properties: Mapping[str, str]
    inputs: Mapping[str, str]
    products: Mapping[str, str]
    hit: bool
    runner: str
    failed: bool = False


def read(file: Path) -> Iterator[Spawn]:
    """The spawns of a log. A missing file counts as empty, and one that a killed Bazel left is read
    as far as it goes."""
    try:
        content = file.read_bytes()
    except OSError:
        return
    # Most actions have most headers in common.
    known: dict[bytes, tuple[str, str]] = {}

    def hashed(value: bytes) -> tuple[str, str]:
        if value not in known:
            message = protobuf.Message(value)
            target = message.text(4)
            known[value] = message.text(1), f"-> {target}" if target else message.message(2).text(1)
        return known[value]

    # The fields of SpawnExec in Bazel's spawn.proto.
    for spawn in protobuf.messages(content):
        outputs = spawn.texts(5)
        yield Spawn(
            mnemonic=_mnemonic(spawn.text(10), outputs),
            outputs=outputs,
            arguments=spawn.texts(1),
            variables=spawn.pairs(2),
            properties=spawn.message(3).pairs(1),
            inputs=dict(map(hashed, spawn.values(4))),
            products=dict(map(hashed, spawn.values(11))),
            hit=bool(spawn.number(13)),
            runner=spawn.text(12),
            failed=bool(spawn.number(15) or spawn.text(14)),
        )


def _mnemonic(mnemonic: str, outputs: tuple[str, ...]) -> str:
    # Bazel 4 calls the making of an archive a link. The archive of a library with `alwayslink` is a
    # .lo file.
    if mnemonic == "CppLink" and outputs and outputs[0].endswith((".a", ".lo")):
        return "CppArchive"
    return mnemonic
