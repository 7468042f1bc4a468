"""Files that Bazel makes for a test, and that plain pytest does not have."""

import os
from pathlib import Path

import pytest


def made(path: str) -> Path:
    """The file; below plain pytest what asks for it is skipped, a test or a whole module."""
    if "TEST_SRCDIR" not in os.environ and not Path(path).exists():
        pytest.skip(f"Bazel makes {path}", allow_module_level=True)
    return Path(path)
