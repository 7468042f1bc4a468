"""Reads build/report.json, which report.py writes after each build of setup.py."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bazel.pybuild import notices

FILE = Path("build") / "report.json"


def read(root: Path) -> dict[str, Any]:
    """The report of the last build.

    Raises:
      OSError, ValueError: report.json is missing or unreadable.
    """
    return json.loads((root / FILE).read_bytes())


def variables(root: Path) -> dict[str, int]:
    """Checksums of the variables of the last build; empty if it is unknown."""
    try:
        return read(root)["variables"]
    except (OSError, ValueError, KeyError):
        return {}


@contextmanager
def errors_are_notices(stale: Path | None = None) -> Iterator[None]:
    """Defers an OSError, as of a full disk: the block writes what only `explain` reads. The file of
    an earlier build, which would seem to be of this one, is removed."""
    try:
        yield
    except OSError as error:
        if stale is not None:
            with suppress(OSError):
                stale.unlink()
        notices.defer(f"torch_xla_lite: `setup.py explain` does not know this build: {error}")
