"""Defers messages while a command runs, and prints them after all other output.

notices.defer_line("torch_xla_lite: only wheels use TORCH_XLA_LITE_BUILD_NUMBER")
notices.defer_detail("torch_xla_lite: the remote cache", "is not used: Connection refused")
...
notices.show()      # before the error, if there is one
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# The details of each subject; a line without details is a subject by itself.
_deferred: dict[str, list[str]] = {}


def defer_line(text: str) -> None:
    """Defers a message; the same message is printed once."""
    _deferred.setdefault(text, [])


def defer_detail(subject: str, text: str) -> None:
    """Defers what is to be said of a subject; all details of one subject are printed in one
    line."""
    details = _deferred.setdefault(subject, [])
    if text not in details:
        details.append(text)


def show() -> None:
    """Prints the deferred messages in their order, and forgets them."""
    # Keeps the order of both streams in a file, too.
    sys.stdout.flush()
    for subject, details in _deferred.items():
        print(f"{subject} {'; '.join(details)}" if details else subject, file=sys.stderr)
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
        defer_line(f"torch_xla_lite: `setup.py explain` does not know this build: {error}")
