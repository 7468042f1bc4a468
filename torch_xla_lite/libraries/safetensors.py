"""Loads files of safetensors to device jax.

    safetensors.torch.load_file("model.safetensors", device="jax")
    with safetensors.safe_open("model.safetensors", framework="pt", device="jax") as file: ...

safetensors copies bytes itself to the devices whose names it knows. For this one they are read on
the host, and each tensor is moved when it is asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ..device.autoload import NAME, names_device
from ..startup.patches import Patch


def _opening(safe_open: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(safe_open, updated=())
    def open_file(filename: Any, framework: str, device: Any = "cpu", **options: Any) -> Any:
        if not names_device(device):
            return safe_open(filename, framework, device, **options)
        return _File(safe_open(filename, framework, "cpu", **options))

    return open_file


class _File:
    """A file whose tensors are on jax. All else is that of safetensors."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _File:
        self._file.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._file.__exit__(*error)

    def get_tensor(self, name: str) -> torch.Tensor:
        return self._file.get_tensor(name).to(NAME)

    def get_tensors(self) -> dict[str, torch.Tensor]:
        return {name: self.get_tensor(name) for name in self._file.offset_keys()}

    def get_slice(self, name: str) -> _Slice:
        return _Slice(self._file.get_slice(name))


class _Slice:
    """A tensor in a file, of which a part is read."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tensor, name)

    def __getitem__(self, index: Any) -> torch.Tensor:
        return self._tensor[index].to(NAME)


PATCHES = (
    Patch(
        "safetensors._safetensors_rust",
        "safe_open",
        "knows its devices by their names",
        _opening,
        "0.4 to 0.8",
    ),
)
