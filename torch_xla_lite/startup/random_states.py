"""Keeps the random numbers of a program from depending on what it imports.

with random_states.kept():
    import jax      # draws numbers of numpy
"""

import contextlib
import random
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Python's and numpy's global generators are after the body as they were before."""
    of_python = random.getstate()
    numpy_random = sys.modules.get("numpy.random")  # What is not imported is not seeded.
    of_numpy = numpy_random and numpy_random.get_state()
    try:
        yield
    finally:
        random.setstate(of_python)
        if numpy_random:
            numpy_random.set_state(of_numpy)
