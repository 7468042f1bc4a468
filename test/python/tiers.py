"""When graphs are compiled in a test: its own costs in place of the package's.

with tiers.compiling_what_comes_back():
    ...
"""

import contextlib
from collections.abc import Iterator

from torch_xla_lite import _XLAC, debug
from torch_xla_lite.compiler import costs


def per_op(interpretation: float, compilation: float, execution: float = 0) -> dict:
    """The costs of each op, and of an execution; nothing is loaded from disk."""
    op = [interpretation, *[0] * 7, compilation]
    return {"graph": [0, 0, execution, 0, 1e30, 0], "kinds": {"other": op, "write": op}}


@contextlib.contextmanager
def using(table: dict) -> Iterator[None]:
    """Costs of the form of costs.json."""
    costs.use(table)
    try:
        yield
    finally:
        costs.register()


def compiling_what_comes_back() -> contextlib.AbstractContextManager[None]:
    """A graph is interpreted once."""
    return using(per_op(interpretation=1, compilation=1))


@contextlib.contextmanager
def as_by_default() -> Iterator[None]:
    """Graphs are interpreted until compiling them pays, as in a new process of a user."""
    _XLAC.clear_cache()
    debug.reset_metrics()
    before = _XLAC.set_compile_when("repeated")
    try:
        yield
    finally:
        _XLAC.set_compile_when(before)
