"""Reads build/report.json, which report.py writes after each build of setup.py."""

import json
from pathlib import Path
from typing import Any

FILE = Path("build") / "report.json"


def read(root: Path) -> dict[str, Any]:
    """The report of the last build.

    Raises:
      OSError, ValueError: there is none that can be read.
    """
    return json.loads((root / FILE).read_bytes())


def variables(root: Path) -> dict[str, int]:
    """Checksums of the variables of the last build; empty if it is unknown."""
    try:
        return read(root)["variables"]
    except (OSError, ValueError, KeyError):
        return {}
