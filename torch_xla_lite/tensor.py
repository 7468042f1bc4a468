"""XLATensor2, and the methods that tensors on device 'jax' have beyond those of torch.

    t = torch.randn(2, 3, device="jax")
    isinstance(t, XLATensor2)          # True: XLA is in play
    type(t)                            # torch.Tensor: whatever asks for a Tensor takes it

    t.torch()                          # a CPU torch.Tensor with the same values
    t.numpy(), t.tolist()              # likewise, as numpy array and as list
    jax.numpy.asarray(t)               # the jax.Array behind it, not copied

All of these run what is recorded so far. They are copies: writing to the result does not change
`t`.

`t.data_ptr()` and `t.untyped_storage().data_ptr()` identify the memory that tensors share, for
libraries that compare them before they save a model. They are ids: there is no memory at these
addresses, and C++ code that asks torch for them gets an error.

For a torch.Tensor on another device these methods are unchanged; each first reads `is_cpu`, a C
attribute, and costs nothing more.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch._tensor_str

from . import _XLAC
from .device import NAME

_Tensor = torch.Tensor


class _OnDeviceJax(type(torch.Tensor)):  # type: ignore[misc]
    """Metaclass whose instances are all torch.Tensors on device jax, whatever their type."""

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, torch.Tensor)
            and not instance.is_cpu
            and instance.device.type == NAME
        )


class XLATensor2(torch.Tensor, metaclass=_OnDeviceJax):
    """A tensor whose operations are recorded and run by XLA: any torch.Tensor on device 'jax'.

    Meant for `isinstance`. A call makes such a tensor from a jax.Array (without a copy) or from
    anything that torch.as_tensor takes:

        XLATensor2(jax.numpy.ones(3))
        XLATensor2([1.0, 2.0])
    """

    def __new__(cls, data: Any) -> XLATensor2:
        import jax

        if isinstance(data, jax.Array):
            _check_usable(data)
            return _XLAC.from_jax(data, _placement(data))  # type: ignore[return-value]
        return torch.as_tensor(data, device=NAME)  # type: ignore[return-value]

    if TYPE_CHECKING:
        # All tensors have these. Type checkers know torch's own class as torch declares it, so a
        # program asks isinstance(tensor, XLATensor2) first.
        is_jax: bool

        def jax(self, device: int | None = None, non_blocking: bool = False) -> XLATensor2: ...

        def torch(self) -> _Tensor: ...


def _check_usable(array: Any) -> None:
    """Raises if a graph cannot take the array: it has no data, or has it in another place.

    Raises:
      TypeError: it is a tracer, which stands for a value while jax traces a function.
      RuntimeError: its memory was donated or deleted.
      ValueError: it is on another device, or in another memory.
    """
    import jax

    if isinstance(array, jax.core.Tracer):
        raise TypeError(
            f"expected a jax.Array with data, found a tracer: {array.aval}.\n"
            "Make the tensor outside of the function that jax traces."
        )
    if array.is_deleted():
        raise RuntimeError(
            "expected a jax.Array with data, found one that was deleted or donated.\n"
            "Copy it before it is donated:  array.copy()"
        )
    used = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
    if _placement(array) == 0 and not array.sharding.is_equivalent_to(used, array.ndim):
        raise ValueError(
            f"expected a jax.Array on {jax.local_devices()[0]}, found one with {array.sharding}.\n"
            "Move it first:  jax.device_put(array, jax.local_devices()[0])"
        )


def _placement(array: Any) -> int:
    """Where an array is that is spread over the devices of a mesh; 0 for others."""
    import jax

    from . import placements

    sharding = array.sharding
    is_spread = isinstance(sharding, jax.sharding.NamedSharding) and len(sharding.device_set) > 1
    return placements.number_of(sharding, array.ndim) if is_spread else placements.ONE_DEVICE


def _part_of_this_process(tensor: torch.Tensor) -> torch.Tensor | None:
    """The first part that this process has of a tensor that is divided among processes."""
    array = _XLAC.to_jax(tensor.detach())
    if array.is_fully_addressable or array.is_fully_replicated:
        return None
    return to_torch(_XLAC.from_jax(array.addressable_data(0)))


@contextlib.contextmanager
def reading_refused(message: str) -> Iterator[None]:
    """Tensors cannot become jax arrays in the body, which raises a TypeError with the message."""
    token = _refusal.set(message)
    try:
        yield
    finally:
        _refusal.reset(token)


_refusal: ContextVar[str] = ContextVar("_refusal", default="")


def to_torch(self: torch.Tensor) -> torch.Tensor:
    """Tensor.torch(): this tensor on the CPU; the tensor itself if it is there already.

    Unlike `.cpu()`, it leaves the device also if `use_torch_native_for_cpu_tensor` is False.
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
    original_data_ptr = tensor.data_ptr
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

    def data_ptr(self: torch.Tensor) -> int:
        if self.is_cpu or self.device.type != NAME:
            return original_data_ptr(self)
        return _XLAC.data_ptr(self)

    def __dlpack__(self: torch.Tensor, **kwargs: Any) -> Any:
        if self.is_cpu or self.device.type != NAME:
            return original_dlpack(self, **kwargs)
        from .compiler import index_errors

        # What takes the data asks no more whether an index was out of range.
        array = _exportable(self).block_until_ready()
        index_errors.report()
        return array.__dlpack__(**kwargs)

    def __dlpack_device__(self: torch.Tensor) -> tuple[Any, int]:
        if self.is_cpu or self.device.type != NAME:
            return original_dlpack_device(self)
        return _exportable(self).__dlpack_device__()

    def __jax_array__(self: torch.Tensor) -> Any:
        if self.is_cpu or self.device.type != NAME:
            # jax calls hasattr to find out whether there is a conversion; other tensors have none.
            raise AttributeError("__jax_array__")
        if message := _refusal.get():
            raise TypeError(message)
        return lambda: _exportable(self)

    def _tensor_str(self: torch.Tensor, indent: int) -> str:
        # torch selects and formats elements one by one: cheap on the host, a compilation each here.
        if not isinstance(self, XLATensor2):
            return original_str(self, indent)
        # To print is nothing that all processes must do.
        if (part := _part_of_this_process(self)) is not None:
            return f"the first part that this process has:\n{original_str(part, indent)}"
        return original_str(to_torch(self), indent)

    for function, original in (
        (numpy, original_numpy),
        (data_ptr, original_data_ptr),
        (__dlpack__, original_dlpack),
        (__dlpack_device__, original_dlpack_device),
    ):
        function.__doc__ = original.__doc__
        setattr(tensor, function.__name__, function)
    original_to_dlpack = torch.utils.dlpack.to_dlpack

    original_from_dlpack = torch.utils.dlpack.from_dlpack

    # torch ignores that a capsule is read-only, and would write to memory that other tensors on jax
    # share. So it gets copies.
    @functools.wraps(original_to_dlpack)
    def to_dlpack(tensor: torch.Tensor) -> Any:
        if isinstance(tensor, XLATensor2):
            return tensor.__dlpack__(copy=True)
        return original_to_dlpack(tensor)

    @functools.wraps(original_from_dlpack)
    def from_dlpack(ext_tensor: Any, **kwargs: Any) -> torch.Tensor:
        if isinstance(ext_tensor, XLATensor2) and kwargs.get("copy") is None:
            kwargs["copy"] = True
        return original_from_dlpack(ext_tensor, **kwargs)

    torch.to_dlpack = torch.utils.dlpack.to_dlpack = to_dlpack
    torch.from_dlpack = torch.utils.dlpack.from_dlpack = from_dlpack
    tensor.torch = to_torch  # type: ignore[attr-defined]
    tensor.__jax_array__ = property(__jax_array__)  # type: ignore[attr-defined]
    torch._tensor_str._tensor_str = _tensor_str


def _exportable(tensor: torch.Tensor) -> Any:
    """The jax.Array behind `tensor`, for another library. It has no autograd history."""
    if tensor.requires_grad:
        raise BufferError(
            "can't export a tensor that requires gradient.\nDetach it first:  tensor.detach()"
        )
    return _XLAC.to_jax(tensor)
