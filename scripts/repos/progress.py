"""A line on the terminal that says which servers are being called, and how far git is.

    with progress.call("pytorch", "fetch") as tell:
        tell("Receiving objects:  34% (5/17)")

It is on the standard error, and only if that is a terminal.
"""

import contextlib
import shutil
import sys
import threading
from collections.abc import Callable, Iterator

_lock = threading.Lock()
_running: dict[int, tuple[str, str]] = {}


@contextlib.contextmanager
def call(name: str, verb: str) -> Iterator[Callable[[str], None]]:
    """Names a call for as long as it runs; what is yielded takes what git says of it."""
    key = threading.get_ident()

    def tell(words: str) -> None:
        with _lock:
            _running[key] = (f"{verb} {name}", words)
            _draw()

    tell("")
    try:
        yield tell
    finally:
        with _lock:
            del _running[key]
            _draw()


def _draw() -> None:
    """Replaces the line: all calls, and what git said last of the one that transfers."""
    if sys.stderr is None or not sys.stderr.isatty():
        return
    calls = [f"{about} {words}".strip() for about, words in _running.values()]
    # The longest first: it is the one that says how far it is.
    text = "; ".join(sorted(calls, key=len, reverse=True))
    width = shutil.get_terminal_size().columns - 1
    with contextlib.suppress(OSError):
        sys.stderr.write(f"\r\x1b[K{text[:width]}")
        sys.stderr.flush()
