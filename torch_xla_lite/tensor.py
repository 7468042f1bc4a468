"""XLATensor2, and what tensors on device 'jax' can do beyond other tensors.

    t = torch.randn(2, 3, device="jax")
    isinstance(t, XLATensor2)          # True: XLA is in play
    type(t)                            # torch.Tensor: whatever asks for a Tensor takes it

    t.torch()                          # a CPU torch.Tensor with the same values
    t.numpy(), t.tolist()              # likewise, as numpy array and as list
    jax.numpy.asarray(t)               # the jax.Array behind it, not copied

All of these run what is recorded so far. They are copies: writing to the result does not change
`t`.

A torch.Tensor elsewhere has the same methods with the meaning they always had; each of them first
asks `is_cpu`, which is a C attribute, and that is the whole cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch._tensor_str

from . import _XLAC
from .device import NAME


class _OnDeviceJax(type(torch.Tensor)):  # type: ignore[misc]
    """Metaclass: an instance is any torch.Tensor on device jax, whatever its type."""

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, torch.Tensor)
            and not instance.is_cpu
            and instance.device.type == NAME
        )


class XLATensor2(torch.Tensor, metaclass=_OnDeviceJax):
    """A tensor whose operations are recorded and run by XLA: any torch.Tensor on device 'jax'.

    Meant for `isinstance`. Called, it makes such a tensor of a jax.Array (without a copy) or of
    anything that torch.as_tensor takes:

        XLATensor2(jax.numpy.ones(3))
        XLATensor2([1.0, 2.0])
    """

    def __new__(cls, data: Any) -> torch.Tensor:  # type: ignore[misc]
        import jax

        if isinstance(data, jax.Array):
            return _XLAC.from_jax(data)
        return torch.as_tensor(data, device=NAME)


def to_torch(self: torch.Tensor) -> torch.Tensor:
    """Tensor.torch(): this tensor on the CPU, the tensor itself if it is there.

    Unlike `.cpu()` it leaves the device also where `use_torch_native_for_cpu_tensor` is off.
    Gradients flow through it.
    """
    if self.is_cpu:
        return self
    with torch._C.DisableTorchFunction():
        return self.cpu()


def register() -> None:
    """Adds the methods to torch.Tensor."""
    tensor = torch.Tensor
    original_numpy = tensor.numpy
    original_dlpack = tensor.__dlpack__
    original_dlpack_device = tensor.__dlpack_device__
    original_str = torch._tensor_str._tensor_str

    def numpy(self: torch.Tensor, *, force: bool = False) -> np.ndarray:
        if self.is_cpu or self.device.type != NAME:
            return original_numpy(self, force=force)
        with torch._C.DisableTorchFunction():
            host = (
                self.detach().cpu() if force else self.cpu()
            )  # keeps torch's error for tensors that need a gradient
            return original_numpy(host, force=force)

    def __dlpack__(self: torch.Tensor, **kwargs: Any) -> Any:
        if self.is_cpu or self.device.type != NAME:
            return original_dlpack(self, **kwargs)
        return _exportable(self).__dlpack__(**kwargs)

    def __dlpack_device__(self: torch.Tensor) -> tuple[Any, int]:
        if self.is_cpu or self.device.type != NAME:
            return original_dlpack_device(self)
        return _exportable(self).__dlpack_device__()

    def __jax_array__(self: torch.Tensor) -> Any:
        if self.is_cpu or self.device.type != NAME:
            # jax asks with hasattr whether there is such a conversion; for other tensors there is
            # none.
            raise AttributeError("__jax_array__")
        return lambda: _exportable(self)

    def _tensor_str(self: torch.Tensor, indent: int) -> str:
        # torch selects and formats elements one by one: on the host that costs nothing, here a
        # compilation each.
        return original_str(to_torch(self) if isinstance(self, XLATensor2) else self, indent)

    for function, original in (
        (numpy, original_numpy),
        (__dlpack__, original_dlpack),
        (__dlpack_device__, original_dlpack_device),
    ):
        function.__doc__ = original.__doc__
        setattr(tensor, function.__name__, function)
    tensor.torch = to_torch  # type: ignore[attr-defined]
    tensor.__jax_array__ = property(__jax_array__)  # type: ignore[attr-defined]
    torch._tensor_str._tensor_str = _tensor_str


def _exportable(tensor: torch.Tensor) -> Any:
    """The jax.Array behind `tensor`, which another library sees without its autograd history."""
    if tensor.requires_grad:
        raise BufferError(
            "can't export a tensor that requires gradient.\nDetach it first:  tensor.detach()"
        )
    return _XLAC.to_jax(tensor)
