"""What a process has run on a mesh, in a form in which another process compares it with its own.

history.add(digest, numbers, "train.py:12")
text = history.text()              # process 0 tells it
history.difference(text)           # the others compare
"""

from __future__ import annotations

import collections
import hashlib
import json
from typing import NamedTuple

# So many are kept to be compared, and so many are told.
_KEPT, _TOLD = 4096, 32


class Run(NamedTuple):
    """One run of a program."""

    number: int  # from 1
    total: str  # equal if all runs up to this one are equal
    program: str
    line: str


class History:
    """The runs of this process, of which the last are kept."""

    def __init__(self) -> None:
        self._runs: collections.deque[Run] = collections.deque(maxlen=_KEPT)

    def __len__(self) -> int:
        return self._runs[-1].number if self._runs else 0

    def add(self, program: bytes, numbers: bytes, line: str) -> None:
        """Adds a run.

        Args:
          program: a digest of it.
          numbers: that it takes, such as a learning rate.
          line: where it was recorded.
        """
        before = self._runs[-1].total.encode() if self._runs else b""
        total = hashlib.blake2b(before + program + numbers, digest_size=8).hexdigest()
        self._runs.append(Run(len(self) + 1, total, program[:8].hex(), line))

    def text(self) -> str:
        """The last runs, for `difference` in another process."""
        return json.dumps([*self._runs][-_TOLD:])

    def difference(self, text: str) -> tuple[Run, Run] | None:
        """The first two runs, own and other, that are known to differ or to come after a
        difference; None if there are none."""
        own = {run.number: run for run in [*self._runs]}
        for other in (Run(*run) for run in json.loads(text)):
            if other.number in own and own[other.number].total != other.total:
                return own[other.number], other
        return None
