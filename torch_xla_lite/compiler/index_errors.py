"""Raises an error when a check in a graph failed, such as an index out of range.

    rows = table[torch.tensor([1, 99], device="jax")]     # recorded
    rows.sum().item()                                     # IndexError

XLA cannot raise in the middle of a graph. So each graph with indices has one more result: which
checks failed. The thread that ran the graph reads it when the next value leaves the device for it
(`item`, `cpu`, `tolist`, `torch.jax.synchronize`), for the graphs that have finished by then;
nothing waits for it before, and no other thread gets the error.
Until then an index out of range reads the nearest element, and a write through one is left out.

    TORCH_XLA_LITE_CHECK_INDICES=1    each graph with indices is waited for and raises when it runs;
                                      the message names the line that recorded the op
    TORCH_XLA_LITE_CHECK_INDICES=0    no checks

Other things that torch refuses by their values are checked in the same way: `x[mask] = values` with
too few or too many values, masked_scatter, torch._assert_async, division of integers by zero.
"""

from __future__ import annotations

import collections
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torch_xla_lite.startup.late_jax import jax

from ..startup import variables
from . import graph_errors

VARIABLE = "TORCH_XLA_LITE_CHECK_INDICES"

_ASSERTION = "aten::_functional_assert_async.msg"

# The step of the check, the message, and the name of the exception.
Error = tuple[int, str, str]


class _Pending(threading.local):
    """Results of checks of the graphs that this thread ran and are not yet read, oldest first, and
    their errors."""

    def __init__(self) -> None:
        self.checks: collections.deque[tuple[jax.Array, Sequence[Error]]] = collections.deque()


_of_this_thread = _Pending()


def enabled() -> bool:
    """Whether graphs are compiled with checks."""
    return os.environ.get(VARIABLE) != "0"


def immediate() -> bool:
    """Whether each graph is waited for."""
    return variables.enabled(os.environ, VARIABLE)


def reporting(
    executable: Callable[..., list], checks: Sequence[Error], graph: Sequence[Any]
) -> Callable[..., list]:
    """`executable` without its last result, bool[len(checks)], which becomes pending.

    No value needs an assertion, so where each graph is waited for, too, the next read of a value
    raises its error, which is the one that runs the graph.

    Args:
      graph: its steps.
    """
    errors = [(step, graph[step].describe(message), name) for step, message, name in checks]
    is_needed = np.array([graph[step].op != _ASSERTION for step, *_ in checks])

    def run(*arguments: Any) -> list[jax.Array]:
        *results, failed = executable(*arguments)
        _forget_passed()
        _of_this_thread.checks.append((failed, errors))
        return results

    def run_and_wait(*arguments: Any) -> list[jax.Array]:
        *results, failed = executable(*arguments)
        _raise(_failures(np.asarray(failed) & is_needed, errors))
        if _any(failed):
            _of_this_thread.checks.append((failed, errors))
        return results

    return run_and_wait if immediate() else run


def report() -> None:
    """Raises an error if checks failed in graphs that have run, such as IndexError: one for all, of
    the class of the first, so that no later read raises what is known by now."""
    checks = _of_this_thread.checks
    failures = []
    while checks and checks[0][0].is_ready():
        failures += _failures(*checks.popleft())
    _raise(failures)


def _forget_passed() -> None:
    """So that a program that reads no value does not collect results for ever."""
    checks = _of_this_thread.checks
    while checks and checks[0][0].is_ready() and not _any(checks[0][0]):
        checks.popleft()


def _any(failed: jax.Array | np.ndarray) -> bool:
    return b"\1" in np.asarray(failed).tobytes()  # 1.5 us; any() takes 3.5.


def _failures(failed: jax.Array | np.ndarray, errors: Sequence[Error]) -> list[Error]:
    return [errors[i] for i in np.flatnonzero(np.asarray(failed))] if _any(failed) else []


def _raise(failures: Sequence[Error]) -> None:
    if failures:
        steps, messages, names = zip(*failures, strict=True)
        error = graph_errors.exception_class(names[0])("\n".join(dict.fromkeys(messages)))
        raise graph_errors.blaming(steps, error)
