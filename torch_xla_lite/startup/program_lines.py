"""The lines of the program: where it is, apart from the code of torch, jax and this package.

place = program_lines.place()     # that needs a value now
str(place)     # "train.py:12 in step (read by torch.distributions.normal.Normal.__init__)"
"""

from __future__ import annotations

import contextlib
import functools
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import torch

from . import late_jax

_TORCH = f"{Path(torch.__file__).parent}/"
_PACKAGE = f"{Path(__file__).parents[1]}/"
_EXAMPLES = f"{_PACKAGE}examples/"
_LIBRARIES = (_TORCH, f"{late_jax.folder()}/", _PACKAGE, "<frozen", "<eval_with_key>")
# Where installed packages and Python's own are.
_INSTALLED = tuple(
    f"{folder}/" for folder in {*map(sysconfig.get_path, ("purelib", "platlib", "stdlib"))}
)


class Place(NamedTuple):
    """Where the program is that needs a value.

    Attributes:
      file, line, function: of the innermost code outside torch, jax and this package.
      caller: where the program called that code, if a package has it, such as `generate`.
      reader: the function of torch that reads the value, if it is not that code.
    """

    file: str
    line: int
    function: str
    caller: str = ""
    reader: str = ""

    def __str__(self) -> str:
        if not self.file:
            return ""
        text = f"{self.file}:{self.line} in {self.function}"
        caller = f" (called at {self.caller})" if self.caller else ""
        return text + caller + (f" (read by {self.reader})" if self.reader else "")


@functools.cache
def is_library(file: str) -> bool:
    """Whether the code of a file is that of torch, jax, this package, or Python's own machinery.
    Examples are programs; <eval_with_key> is what torch.compile makes, other names are a user's."""
    if file.startswith(_EXAMPLES):
        return False
    return file.startswith(_LIBRARIES) or file == contextlib.__file__


def place() -> Place:
    """Where the program is that needs a value now; outside torch, jax and this package."""
    reader = ""
    outer = frames(sys._getframe(1))
    for frame in outer:
        file = frame.f_code.co_filename
        if not is_library(file):
            caller = _caller(outer) if file.startswith(_INSTALLED) else ""
            return Place(file, frame.f_lineno, frame.f_code.co_name, caller, reader)
        if not reader and file.startswith(_TORCH):
            name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
            reader = f"{frame.f_globals.get('__name__', 'torch')}.{name}"
    return Place("", 0, "")


def frames(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame, and those that called it."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _caller(outer: Iterator[FrameType]) -> str:
    """The first of the frames that is the program's own, and no package's."""
    for frame in outer:
        file = frame.f_code.co_filename
        if not is_library(file) and not file.startswith(_INSTALLED):
            return f"{file}:{frame.f_lineno} in {frame.f_code.co_name}"
    return ""
