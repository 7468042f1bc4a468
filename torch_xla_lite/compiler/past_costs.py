"""Keeps what the interpreted runs of graphs have cost, so that processes add up.

    load()      # [(structure, microseconds by the model of costs, in how many processes), ...]

A program of two minutes that runs each day would never compile if each of its processes began at
nothing. So a file beside the compiled programs has these costs by the hash of a graph's structure,
which is the same in every process (csrc/ir/key.h). A process reads it when the first graph is to be
interpreted or compiled, and adds its own costs when it ends by itself, below a lock of the folder.
The file holds the graphs that were met last, at most 4,096, of 24 bytes each. What cannot be read
or written counts as absent. A program of several processes neither reads nor writes: all of them
have to decide the same.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import os
import struct
import time
from typing import NamedTuple

from torch_xla_lite.startup.late_jax import jax

from .. import _XLAC
from ..startup import caches, late_jax
from . import compilation_cache, private_folder

_MOST = 4096
_ROW = struct.Struct("<QdII")
_DIGEST = hashlib.sha256().digest_size

# A graph whose runs have cost less than this part of its compilation would need so many processes
# that it is not worth a row.
_WORTH_KEEPING = 1e-3

_SECONDS_TO_WAIT = 1.0


class _Row(NamedTuple):
    """What a graph has cost: in microseconds, in how many processes, the last on which day."""

    structure: int
    spent: float
    processes: int
    day: int


def load() -> list[tuple[int, float, int]]:
    """The graphs of earlier processes. At its end, this process adds its own."""
    if not compilation_cache.is_on() or (late_jax.is_imported() and jax.process_count() > 1):
        return []
    atexit.register(save, os.getpid())
    with contextlib.suppress(OSError), compilation_cache.opened() as folder:
        return [row[:3] for row in _read(folder)]
    return []


def save(process: int) -> None:
    """Adds what the graphs of this process have cost, unless it is a fork of the one named."""
    own = _own_rows() if os.getpid() == process else []
    if not own:
        return
    with contextlib.suppress(OSError), compilation_cache.opened() as folder:
        _lock(folder)
        rows = {row.structure: row for row in _read(folder)}
        for row in own:
            _, spent, processes, _ = rows.get(row.structure, _Row(0, 0.0, 0, 0))
            rows[row.structure] = row._replace(spent=row.spent + spent, processes=processes + 1)
        last = sorted(rows.values(), key=lambda row: (row.day, row.spent))[-_MOST:]
        content = b"".join(_ROW.pack(*row) for row in last)
        compilation_cache.write(folder, caches.COSTS, _digest(content) + content)


def _own_rows() -> list[_Row]:
    """What this process adds: graphs that compiling would make faster."""
    day = int(time.time() // 86_400)
    return [
        _Row(structure, spent - earlier, 1, day)
        for structure, (spent, needed, pays, earlier, _) in _XLAC.cost_accounts().items()
        if pays and spent >= needed * _WORTH_KEEPING
    ]


def _read(folder: int) -> list[_Row]:
    """What is in the file; nothing if it is damaged."""
    try:
        with open(private_folder.open_file(folder, caches.COSTS), "rb") as file:
            content = file.read()
    except OSError:
        return []
    digest, content = content[:_DIGEST], content[_DIGEST:]
    return [*map(_Row._make, _ROW.iter_unpack(content))] if digest == _digest(content) else []


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _lock(folder: int) -> None:
    """Waits for another process that writes. The lock ends with the descriptor.

    Raises:
      BlockingIOError: the other one does not end.
    """
    until = time.monotonic() + _SECONDS_TO_WAIT
    while True:
        try:
            return fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
