"""Keeps the random numbers of a program from depending on what it imports.

with random_states.kept():
    import jax      # draws numbers by numpy.random.rand
"""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """numpy's global generator stays as other threads leave it, which may draw meanwhile."""
    numpy_random: Any = sys.modules.get("numpy.random")  # What is not imported is not seeded.
    if numpy_random is None or numpy_random.rand is _rand:
        yield
        return
    original, numpy_random.rand = numpy_random.rand, _rand
    try:
        yield
    finally:
        numpy_random.rand = original


def _rand(*sizes: int) -> Any:
    return sys.modules["numpy.random"].RandomState().rand(*sizes)
