"""Exportable: a function with its weights, as jax.export gets it, and what changes at its boundary.

Integers of 64 bits and float64 become 32 bits wide there, because jax has no others by default.
Inside, a program computes with the dtypes of torch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import torch

from ..lowering.base import decomposition, registry


@dataclasses.dataclass(frozen=True)
class Exportable:
    """A function that can be exported.

    Attributes:
      call: takes the weights, by name, and the inputs; for use while jax traces.
      weights: the arrays that it needs beside its inputs.
      args, kwargs: the inputs, with a jax.ShapeDtypeStruct in place of each tensor.
      inputs: name, dtype and shape of each input.
      updates: the weights whose new values `call` gives in addition to its results, by name. If
        there are none, it gives the results alone.
    """

    call: Callable[..., Any]
    weights: Mapping[str, np.ndarray]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    inputs: Sequence[Mapping[str, Any]]
    updates: Sequence[str] = ()


def array_of(tensor: torch.Tensor) -> np.ndarray:
    """The values of a tensor in the dtype that they have at the boundary."""
    array = decomposition.as_numpy(tensor.cpu())
    return array.astype(narrow(array.dtype))


def struct_of(dtype: torch.dtype, shape: Sequence[Any]) -> jax.ShapeDtypeStruct:
    """What jax traces a tensor with at the boundary."""
    return jax.ShapeDtypeStruct(tuple(shape), narrow(registry.OF_TORCH[dtype]))


def narrowed(x: Any) -> Any:
    """An array in the dtype that it has at the boundary; any other value as it is."""
    return x.astype(narrow(x.dtype)) if isinstance(x, jax.Array) else x


def narrow(dtype: np.dtype) -> np.dtype:
    """The dtype that jax has by default in place of one of 64 bits, or of two of these."""
    with jax.enable_x64(False):
        return np.dtype(jax.dtypes.canonicalize_dtype(dtype))


def plain(value: Any) -> Any:
    """Results in dicts, lists and tuples, which jax can write; other containers become dicts."""
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return (list if type(value) is list else tuple)(map(plain, value))
    return value
