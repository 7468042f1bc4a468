"""The compiled module: what Python needs of the bridge. csrc/python/module.cc defines it."""

from collections.abc import Callable, Mapping
from typing import SupportsIndex, SupportsInt

import jax
import numpy as np
import torch

from .debug import Metrics

# --- the compiler (torch_xla_lite/compiler.py) ---

def set_callbacks(
    compile: Callable[[list[tuple], list[tuple[int, int]]], Callable[..., list[jax.Array]]],
    upload: Callable[[np.ndarray], jax.Array],
    dtypes: dict[int, np.dtype],
) -> None:
    """Connects the compiler: what compiles a graph, what uploads an array, and torch's number of
    each dtype."""

def set_lowered_ops(lowered: Mapping[str, bool]) -> None:
    """Says which ops have lowerings, and whether their numbers are constants of the graph."""

def register_lowering(op: str, needs_constants: bool) -> None:
    """Says it of one more op, of another library."""

def note_fallback(op: str) -> None:
    """Counts a call of ATen that is part of a graph."""

# --- running ---

def sync() -> None:
    """Runs all recorded work as one graph."""

def synchronize() -> None:
    """Runs all recorded work and waits until it is done."""

def clear_cache() -> None:
    """Forgets all compiled graphs."""

# --- tensors ---

def to_jax(tensor: torch.Tensor) -> jax.Array:
    """The array that a tensor on jax stands for. Raises TypeError for any other tensor."""

def from_jax(array: jax.Array) -> torch.Tensor:
    """A tensor that stands for an array."""

# --- random numbers ---

def manual_seed(seed: SupportsInt | SupportsIndex) -> None: ...
def initial_seed() -> int: ...
def seed() -> int: ...
def get_rng_state() -> tuple[int, int]:
    """Seed and offset."""

def set_rng_state(
    seed: SupportsInt | SupportsIndex, offset: SupportsInt | SupportsIndex
) -> None: ...

# --- what is counted, and where ops were recorded (torch_xla_lite/debug.py) ---

def metrics() -> Metrics: ...
def reset_metrics() -> None: ...
def set_ir_debug(enabled: bool) -> None:
    """Has every op remember the line that recorded it."""
