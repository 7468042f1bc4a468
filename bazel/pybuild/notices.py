"""Defers messages while a command runs, and prints them after all other output.

notices.defer("torch_xla_lite: ignored by this build: CFLAGS")
...
notices.show()      # before the error, if there is one
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# What is said of each subject; a message without one is a subject by itself.
_deferred: dict[str, list[str]] = {}


def defer(text: str, about: str = "") -> None:
    """Defers a message to the end; the same message is printed once, and all that is said about one
    subject in one line."""
    said = _deferred.setdefault(about or text, [])
    if about and text not in said:
        said.append(text)


def show() -> None:
    """Prints the deferred messages in their order, and forgets them."""
    # Keeps the order of both streams in a file, too.
    sys.stdout.flush()
    for subject, said in _deferred.items():
        print(f"{subject} {'; '.join(said)}" if said else subject, file=sys.stderr)
    _deferred.clear()


@contextmanager
def of_errors(stale: Path | None = None) -> Iterator[None]:
    """Defers an OSError, as of a full disk: the block writes what only `explain` reads. The file of
    an earlier build, which would seem to be of this one, is removed."""
    try:
        yield
    except OSError as error:
        if stale is not None:
            with suppress(OSError):
                stale.unlink()
        defer(f"torch_xla_lite: `setup.py explain` does not know this build: {error}")
