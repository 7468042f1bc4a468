"""Raises an error when a check in a graph failed, such as an index out of range.

    rows = table[torch.tensor([1, 99], device="jax")]     # recorded
    rows.sum().item()                                     # IndexError

XLA cannot raise in the middle of a graph. So each graph with indices has one more result: which
checks failed. It is read when the next value leaves the device (`item`, `cpu`, `tolist`,
`torch.jax.synchronize`), for the graphs that have finished by then; nothing waits for it before.
Until then an index out of range reads the nearest element, and a write through one is left out.

    TORCH_XLA_LITE_CHECK_INDICES=1    each graph with indices is waited for and raises when it runs;
                                      the message names the line that recorded the op
    TORCH_XLA_LITE_CHECK_INDICES=0    no checks

Other things that torch refuses by their values are checked in the same way: `x[mask] = values` with
too few or too many values, masked_scatter, torch._assert_async, division of integers by zero.
"""

from __future__ import annotations

import builtins
import collections
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import torch

from ..startup import variables

VARIABLE = "TORCH_XLA_LITE_CHECK_INDICES"

# The message and the name of the exception.
Error = tuple[str, str]

# Results of checks that are not yet read, oldest first, and their errors.
_pending: collections.deque[tuple[jax.Array, Sequence[Error]]] = collections.deque()


def enabled() -> bool:
    """Whether graphs are compiled with checks."""
    return os.environ.get(VARIABLE) != "0"


def immediate() -> bool:
    """Whether each graph is waited for."""
    return variables.enabled(os.environ, VARIABLE)


def reporting(executable: Callable[..., list], errors: Sequence[Error]) -> Callable[..., list]:
    """`executable` without its last result, bool[len(errors)], which becomes pending."""

    def run(*arguments: Any) -> list[jax.Array]:
        *results, failed = executable(*arguments)
        _forget_passed()
        _pending.append((failed, errors))
        return results

    def run_and_wait(*arguments: Any) -> list[jax.Array]:
        *results, failed = executable(*arguments)
        _raise_if(failed, errors)
        return results

    return run_and_wait if immediate() else run


def report() -> None:
    """Raises IndexError if a check failed in a graph that has run; each failure is raised once."""
    while _pending and _pending[0][0].is_ready():
        _raise_if(*_pending.popleft())


def _forget_passed() -> None:
    """So that a program that reads no value does not collect results for ever."""
    while _pending and _pending[0][0].is_ready() and not _any(_pending[0][0]):
        _pending.popleft()


def _any(failed: jax.Array) -> bool:
    return b"\1" in np.asarray(failed).tobytes()  # 1.5 us; any() takes 3.5.


def _raise_if(failed: jax.Array, errors: Sequence[Error]) -> None:
    if _any(failed):
        raised = [errors[i] for i in np.flatnonzero(np.asarray(failed))]
        _, name = raised[0]
        raise exception_class(name)("\n".join(message for message, _ in raised))


def exception_class(name: str) -> type[Exception]:
    """The class of an exception of Python, or of torch, such as `_LinAlgError`."""
    return getattr(builtins, name, None) or getattr(torch._C, name)
