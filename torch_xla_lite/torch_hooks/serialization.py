"""Saves, loads, copies and sends tensors on jax: torch.save, torch.load, pickle, copy.deepcopy, and
torch.multiprocessing.

    torch.save(model.state_dict(), "weights.pt")
    torch.load("weights.pt")                            # on jax again
    torch.load("weights.pt", map_location="cpu")
    torch.load("others.pt", map_location="jax")         # tensors that were saved on any device

Tensors are saved as on other devices: the bytes of their storage, the name of the device, and the
layout, so that tensors that share memory share it when they are loaded, too.

torch loads the bytes of a storage, moves the storage to the mapped device, and makes tensors that
share it. XLA has typed arrays instead of storages. So a storage that is mapped to jax stays on the
CPU and is marked; the first tensor made from it decides the type of its array.

Queues and processes of torch.multiprocessing get the values, as pickle does: the memory of the
device belongs to one process.
"""

from __future__ import annotations

import functools
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch

from .. import _XLAC
from ..device import NAME
from ..device.tensor import XLATensor2
from ..startup.patches import Patch

# Attribute of a marked storage: the storage on jax, None before the first tensor is made from it.
_ON_JAX = "_torch_xla_lite_storage"

# torch calls the registered functions in the order of these numbers; its own for this kind of
# device has 23.
_BEFORE_TORCH = 15


def register() -> None:
    """Registers the device with torch's serialization."""
    torch.serialization.register_package(_BEFORE_TORCH, lambda storage: None, mark)
    _send_values_to_processes()


def _reducing(original: Callable[..., Any]) -> Callable[..., Any]:
    def _reduce_ex_internal(self: torch.Tensor, proto: int) -> Any:
        if not isinstance(self, XLATensor2) or isinstance(self, torch._subclasses.FakeTensor):
            return original(self, proto)
        torch.utils.hooks.warn_if_has_hooks(self)
        requires_grad = self.requires_grad
        if _XLAC.is_conjugate_view(self):
            self = self.detach().clone()
        storage = torch.storage.TypedStorage(
            wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True
        )
        layout = self.storage_offset(), tuple(self.size()), self.stride()
        return torch._utils._rebuild_tensor_v2, (storage, *layout, requires_grad, OrderedDict())

    return _reduce_ex_internal


def _sharing(original: Callable[..., Any]) -> Callable[..., Any]:
    def __deepcopy__(self: torch.Tensor, memo: dict[Any, Any]) -> Any:
        known = id(self) in memo
        copied = original(self, memo)
        # torch clones what has no memory of its own, and what was shared is not shared any more.
        if not known and type(copied) is torch.Tensor and isinstance(self, XLATensor2):
            _share_copy(self, copied, memo.setdefault(_ON_JAX, {}))
        return copied

    return __deepcopy__


def _writing(original: Callable[..., Any]) -> Callable[..., Any]:
    def _write_file(self: torch.UntypedStorage, *args: Any) -> Any:
        return original(self.cpu() if self.device.type == NAME else self, *args)

    return _write_file


def _reading(original: Callable[..., Any]) -> Callable[..., Any]:
    def _set_from_file(self: torch.UntypedStorage, *args: Any) -> None:
        # The format before zip files stores the bytes after the tensors that need them.
        original(self, *args)
        if getattr(self, _ON_JAX, None) is not None:
            getattr(self, _ON_JAX).copy_(self)

    return _set_from_file


def _rebuilding(original: Callable[..., Any]) -> Callable[..., Any]:
    torch._weights_only_unpickler._get_allowed_globals.cache_clear()

    def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> torch.Tensor:
        marked = storage._untyped_storage
        if not hasattr(marked, _ON_JAX):
            return original(storage, storage_offset, size, stride)
        if getattr(marked, _ON_JAX) is None:
            count = marked.nbytes() // storage.dtype.itemsize
            shape = size if math.prod(size) == count else (count,)
            with torch._C.DisableTorchFunction():  # a CPU tensor, whatever the environment says
                whole = torch.empty(0, dtype=storage.dtype, device="cpu").set_(marked, 0, shape)
            setattr(marked, _ON_JAX, whole.to(NAME).untyped_storage())
        return torch.empty(0, dtype=storage.dtype, device=NAME).set_(
            getattr(marked, _ON_JAX), storage_offset, size, stride
        )

    return _rebuild_tensor


def _refusing_quantized(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)  # Files name it.
    def _rebuild_qtensor(storage: Any, *args: Any) -> torch.Tensor:
        if hasattr(storage._untyped_storage, _ON_JAX):
            torch._empty_affine_quantized((), dtype=storage.dtype, device=NAME)  # Raises.
        return original(storage, *args)

    return _rebuild_qtensor


def _send_values_to_processes() -> None:
    """Registers reductions with the pickler of multiprocessing: storages on jax become bytes."""
    reductions = torch.multiprocessing.reductions

    def reduce_storage(storage: torch.UntypedStorage) -> Any:
        if storage.device.type != NAME:
            return reductions.reduce_storage(storage)
        with torch._C.DisableTorchFunction():
            data = torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage.cpu()).numpy()
        return _storage_of_bytes, (data.tobytes(),)

    def reduce_tensor(tensor: torch.Tensor) -> Any:
        # A storage does not say that its numbers are to be conjugated.
        if isinstance(tensor, XLATensor2) and tensor.is_leaf and _XLAC.is_conjugate_view(tensor):
            tensor = tensor.detach().clone().requires_grad_(tensor.requires_grad)
        return reductions.reduce_tensor(tensor)

    pickler = reductions.reduction.ForkingPickler
    pickler.register(torch.UntypedStorage, reduce_storage)
    for type_ in (torch.Tensor, torch.nn.Parameter):
        pickler.register(type_, reduce_tensor)


def _storage_of_bytes(data: bytes) -> torch.UntypedStorage:
    """A marked storage: the tensors made from it are on jax."""
    with torch._C.DisableTorchFunction():
        storage = torch.tensor(bytearray(data), dtype=torch.uint8, device="cpu").untyped_storage()
    setattr(storage, _ON_JAX, None)
    return storage


def _share_copy(
    tensor: torch.Tensor, copied: torch.Tensor, storages: dict[int, torch.UntypedStorage]
) -> None:
    """Lets `copied` share memory with the copies of the tensors that share it with `tensor`.

    Args:
      storages: the copies of storages, by the address of the original.
    """
    if tensor.is_sparse or _XLAC.is_conjugate_view(tensor):
        return
    storage = tensor.untyped_storage()
    address = storage.data_ptr()
    count = storage.nbytes() // tensor.dtype.itemsize
    is_whole = tensor.numel() == count and tensor.is_contiguous()
    with torch.no_grad(), torch._C.DisableTorchFunction():
        if address not in storages:
            if is_whole:
                storages[address] = copied.untyped_storage()
                return
            whole = torch.empty(0, dtype=tensor.dtype, device=NAME).set_(storage, 0, (count,))
            storages[address] = whole.clone().untyped_storage()
        copied.set_(storages[address], tensor.storage_offset(), tensor.size(), tensor.stride())


def mark(storage: Any, location: str) -> Any:
    """Deserializer for torch: marks a storage that is mapped to jax; None for other devices."""
    if location.partition(":")[0] != NAME or storage.device.type != "cpu":
        return None
    setattr(storage, _ON_JAX, None)
    return storage


PATCHES = (
    Patch("torch", "Tensor._reduce_ex_internal", "saves no storage", _reducing),
    Patch("torch", "Tensor.__deepcopy__", "clones: what was shared is shared no more", _sharing),
    Patch("torch", "UntypedStorage._write_file", "reads the memory of a storage", _writing),
    Patch("torch", "UntypedStorage._set_from_file", "writes the memory of a storage", _reading),
    Patch("torch._utils", "_rebuild_tensor", "makes tensors of storages", _rebuilding),
    Patch("torch._utils", "_rebuild_qtensor", "makes tensors of storages", _refusing_quantized),
)
