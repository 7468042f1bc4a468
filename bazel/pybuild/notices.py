"""Defers messages while a command runs, and prints them after all other output.

notices.defer("torch_xla_lite: ignored by this build: CFLAGS")
...
notices.show()      # before the error, if there is one
"""

import sys

_deferred: list[str] = []


def defer(text: str) -> None:
    """Defers a message to the end; the same message is printed once."""
    if text not in _deferred:
        _deferred.append(text)


def show() -> None:
    """Prints the deferred messages in their order, and forgets them."""
    # Keeps the order of both streams in a file, too.
    sys.stdout.flush()
    for text in _deferred:
        print(text, file=sys.stderr)
    _deferred.clear()
