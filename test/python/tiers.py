"""When graphs are compiled in a test: its own costs in place of the package's.

with tiers.compiling_what_comes_back():
    ...

_interprets = tiers.autouse(tiers.interpreting)    # a fixture
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import jax  # noqa: F401  # Where it is imported, it is no price of the first compilation.
import pytest

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
def mode(when: str) -> Iterator[None]:
    """Graphs are compiled "first", or "repeated": as in a new process of a user, if that pays."""
    _XLAC.clear_cache()
    debug.reset_metrics()
    before = _XLAC.set_compile_when(when)
    try:
        yield
    finally:
        _XLAC.set_compile_when(before)


def as_by_default() -> contextlib.AbstractContextManager[None]:
    return mode("repeated")


@contextlib.contextmanager
def interpreting() -> Iterator[None]:
    """Nothing is compiled because it comes back."""
    with as_by_default(), using(per_op(interpretation=1, compilation=1e9)):
        yield


def autouse(context: Callable[..., contextlib.AbstractContextManager], *params: Any) -> Any:
    """A fixture for all tests of a file, which run within the context, once for each parameter."""

    @pytest.fixture(autouse=True, params=params or None)
    def within(request: pytest.FixtureRequest) -> Iterator[Any]:
        with context(*([request.param] if params else [])):
            yield

    return within


def counts() -> tuple[int, int, int]:
    """Graphs that were interpreted, compiled or loaded, and executed after that."""
    metrics = debug.metrics()
    new = metrics["compiles"] + metrics["loads"]
    return metrics["interpretations"], new, metrics["executions"]
