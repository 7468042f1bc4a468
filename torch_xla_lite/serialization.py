"""Saves and loads tensors on jax: torch.save, torch.load, pickle and copy.

    torch.save(model.state_dict(), "weights.pt")
    torch.load("weights.pt")                            # on jax again
    torch.load("weights.pt", map_location="cpu")
    torch.load("others.pt", map_location="jax")         # tensors that were saved on any device

A tensor on jax is saved as a CPU tensor with the name of its device.

torch loads the bytes of a storage, moves the storage to the mapped device, and makes tensors that
share it. XLA has typed arrays instead of storages. So a storage that is mapped to jax stays on the
CPU and is marked, and tensors made from a marked storage are created on jax. Those that share a
storage and a dtype share memory on jax too.
"""

from __future__ import annotations

from typing import Any

import torch

from .device import NAME
from .tensor import XLATensor2, to_torch

# Attribute of a marked storage: dtype -> the whole storage as a tensor on jax.
_TENSORS = "_torch_xla_lite_tensors"

# torch calls the registered functions in the order of these numbers; its own for this kind of
# device has 23.
_BEFORE_TORCH = 15


def register() -> None:
    """Registers the device with torch's serialization."""
    torch.serialization.register_package(_BEFORE_TORCH, lambda storage: None, _mark)
    original = torch._utils._rebuild_tensor
    original_reduce = torch.Tensor._reduce_ex_internal

    def _reduce_ex_internal(self: torch.Tensor, proto: int) -> Any:
        if not isinstance(self, XLATensor2) or torch.serialization._serialization_tls.skip_data:
            return original_reduce(self, proto)
        torch.utils.hooks.warn_if_has_hooks(self)
        # As in torch, but detached: a loaded tensor must be a leaf.
        args = (to_torch(self.detach()), self.dtype, str(self.device), self.requires_grad)
        return torch._utils._rebuild_device_tensor_from_cpu_tensor, args

    def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> torch.Tensor:
        tensors = getattr(storage._untyped_storage, _TENSORS, None)
        if tensors is None:
            return original(storage, storage_offset, size, stride)
        if storage.dtype not in tensors:
            count = storage._untyped_storage.nbytes() // storage.dtype.itemsize
            tensors[storage.dtype] = original(storage, 0, (count,), (1,)).to(NAME)
        whole = tensors[storage.dtype]
        # With set_, autograd does not treat the tensor as a view of `whole`.
        return torch.empty(0, dtype=whole.dtype, device=NAME).set_(
            whole.as_strided(size, stride, storage_offset)
        )

    torch._utils._rebuild_tensor = _rebuild_tensor
    torch.Tensor._reduce_ex_internal = _reduce_ex_internal  # type: ignore[method-assign]


def _mark(storage: Any, location: str) -> Any:
    """Deserializer for torch: marks a storage that is mapped to jax; None for other devices."""
    if location.partition(":")[0] != NAME or storage.device.type != "cpu":
        return None
    setattr(storage, _TENSORS, {})
    return storage
