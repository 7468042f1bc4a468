"""Says on a terminal that XLA compiles a graph, when that takes long.

    with progress.shown("compiling 139 ops of train.py:12 in step"):
        ...

    torch_xla_lite: compiling 139 ops of train.py:12 in step ... 4 s, kept for the next run

The line begins after two seconds and grows by a dot in each that follows. In a pipe, a file or a
notebook there is none, and TORCH_XLA_LITE_PROGRESS=0 switches it off.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import TextIO

from ..startup import variables

PATIENCE = 2.0  # Seconds without a word.
_PERIOD = 1.0


@contextlib.contextmanager
def shown(text: str, outcome: str = "") -> Iterator[None]:
    """Shows the text on the standard error while the body runs, if that is a terminal.

    Args:
      text: what is being done.
      outcome: what to say about it afterwards, beside the seconds.
    """
    stream = sys.stderr
    if not _is_wanted(stream):
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(stream, text, outcome, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _is_wanted(stream: TextIO | None) -> bool:
    # A windowed program has no standard error.
    if stream is None or not stream.isatty():
        return False
    return variables.enabled(os.environ, "TORCH_XLA_LITE_PROGRESS", default="1")


def _show(stream: TextIO, text: str, outcome: str, done: threading.Event) -> None:
    start = time.monotonic()
    if done.wait(PATIENCE):
        return
    print(f"torch_xla_lite: {text} .", end="", file=stream, flush=True)
    while not done.wait(_PERIOD):
        print(".", end="", file=stream, flush=True)
    seconds = time.monotonic() - start
    print(f" {seconds:.0f} s{outcome and ', ' + outcome}", file=stream, flush=True)
