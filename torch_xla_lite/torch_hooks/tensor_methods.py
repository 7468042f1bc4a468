"""What torch's methods do for tensors on device jax: numpy(), DLPack, addresses, printing.

For a tensor on another device each is torch's own; it first reads `is_cpu`, a C attribute.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from .. import _XLAC
from ..compiler import index_errors
from ..device import NAME
from ..device.tensor import XLATensor2, exportable, to_torch
from ..startup import late_jax
from ..startup.patches import Patch

Function = Callable[..., Any]


def _is_elsewhere(tensor: torch.Tensor) -> bool:
    return tensor.is_cpu or tensor.device.type != NAME


def _numpy(original: Function) -> Function:
    def numpy(self: torch.Tensor, *, force: bool = False) -> np.ndarray:
        if _is_elsewhere(self):
            return original(self, force=force)
        with torch._C.DisableTorchFunction():
            # Without `force`, torch's error for tensors that need a gradient stays.
            return original(self.detach().cpu() if force else self.cpu(), force=force)

    return numpy


def _data_ptr(original: Function) -> Function:
    def data_ptr(self: torch.Tensor) -> int:
        return original(self) if _is_elsewhere(self) else _XLAC.data_ptr(self)

    return data_ptr


def _dlpack(original: Function) -> Function:
    def __dlpack__(self: torch.Tensor, **kwargs: Any) -> Any:
        if _is_elsewhere(self):
            return original(self, **kwargs)
        # What takes the data asks no more whether an index was out of range.
        array = exportable(self).block_until_ready()
        index_errors.report()
        return array.__dlpack__(**kwargs)

    return __dlpack__


def _dlpack_device(original: Function) -> Function:
    def __dlpack_device__(self: torch.Tensor) -> tuple[Any, int]:
        return original(self) if _is_elsewhere(self) else exportable(self).__dlpack_device__()

    return __dlpack_device__


# torch ignores that a capsule is read-only, and would write to memory that other tensors on jax
# share. So the next two give copies.
def _to_dlpack(original: Function) -> Function:
    @functools.wraps(original)
    def to_dlpack(tensor: torch.Tensor) -> Any:
        if isinstance(tensor, XLATensor2):
            return tensor.__dlpack__(copy=True)
        return original(tensor)

    return to_dlpack


def _from_dlpack(original: Function) -> Function:
    @functools.wraps(original)
    def from_dlpack(ext_tensor: Any, **kwargs: Any) -> torch.Tensor:
        if isinstance(ext_tensor, XLATensor2) and kwargs.get("copy") is None:
            kwargs["copy"] = True
        return original(ext_tensor, **kwargs)

    return from_dlpack


def _string(original: Function) -> Function:
    def _tensor_str(self: torch.Tensor, indent: int) -> str:
        if not isinstance(self, XLATensor2):
            return original(self, indent)
        # To print is nothing that all processes must do.
        if (part := _part_of_this_process(self)) is not None:
            return f"the first part that this process has:\n{original(part, indent)}"
        return original(to_torch(self), indent)

    return _tensor_str


def _part_of_this_process(tensor: torch.Tensor) -> torch.Tensor | None:
    """The first part that this process has of a tensor that is divided among processes."""
    if not late_jax.is_imported():
        return None
    array = _XLAC.to_jax(tensor.detach())
    if array.is_fully_addressable or array.is_fully_replicated:
        return None
    return to_torch(_XLAC.from_jax(array.addressable_data(0)))


_NO_MEMORY = "reads memory that others can read"
PATCHES = (
    Patch("torch", "Tensor.numpy", _NO_MEMORY, _numpy),
    Patch("torch", "Tensor.data_ptr", "refuses tensors that have no address", _data_ptr),
    Patch("torch", "Tensor.__dlpack__", _NO_MEMORY, _dlpack),
    Patch("torch", "Tensor.__dlpack_device__", "does not know the device", _dlpack_device),
    Patch("torch.utils.dlpack", "to_dlpack", "ignores that memory is read-only", _to_dlpack),
    Patch("torch.utils.dlpack", "from_dlpack", "ignores that memory is read-only", _from_dlpack),
    Patch("torch._tensor_str", "_tensor_str", "selects and formats elements one by one", _string),
)
