"""Finds the folders below the user's cache folder in which this project keeps files."""

import os
from collections.abc import Mapping
from pathlib import Path

# When compiled programs take more, those that were used longest ago are removed.
PROGRAMS_LIMIT = 2 << 30

# A file beside them: what interpreted graphs have cost (past_costs.py).
COSTS = "costs"


def home(environ: Mapping[str, str]) -> Path:
    """The folder of all caches of this project, by the XDG rules; builds use it too.

    Raises:
      RuntimeError: there is neither $XDG_CACHE_HOME nor a home folder.
    """
    named = environ.get("XDG_CACHE_HOME", "")
    base = Path(named) if os.path.isabs(named) else Path.home() / ".cache"
    return base / "torch_xla_lite"


def programs(environ: Mapping[str, str]) -> Path:
    """The folder of compiled programs (compilation_cache.py)."""
    return home(environ) / "programs"
