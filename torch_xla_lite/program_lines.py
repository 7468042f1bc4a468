"""The lines of the program: where it is, apart from the code of torch, jax and this package.

file, line, function = program_lines.place()     # that needs a value now
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import jax
import torch

_LIBRARIES = tuple(f"{Path(file).parent}/" for file in (torch.__file__, jax.__file__, __file__))

# Where the program is: file, line and function.
Place = tuple[str, int, str]


def is_library(file: str) -> bool:
    """Whether the code of a file is that of torch, jax, this package, or Python's own machinery."""
    return file.startswith((*_LIBRARIES, "<frozen")) or file == contextlib.__file__


def place() -> Place:
    """Where the program is that needs a value now; outside torch, jax and this package."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_library(file):
            return file, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back  # type: ignore[assignment]
    return "", 0, ""
