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
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import torch
import torch._tensor_str

from .. import _XLAC
from . import NAME

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

    from ..mesh.base import placements

    sharding = array.sharding
    is_spread = isinstance(sharding, jax.sharding.NamedSharding) and len(sharding.device_set) > 1
    return placements.number_of(sharding, array.ndim) if is_spread else placements.ONE_DEVICE


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


def __jax_array__(self: torch.Tensor) -> Any:
    """What jax asks a tensor for: a function that gives its array, on device jax alone."""
    if self.is_cpu or self.device.type != NAME:
        # jax calls hasattr to find out whether there is a conversion; other tensors have none.
        raise AttributeError("__jax_array__")
    if message := _refusal.get():
        raise TypeError(message)
    return lambda: exportable(self)


def register() -> None:
    """Adds methods that torch does not have to torch.Tensor."""
    torch.Tensor.torch = to_torch  # type: ignore[attr-defined]
    torch.Tensor.__jax_array__ = property(__jax_array__)  # type: ignore[attr-defined]


def exportable(tensor: torch.Tensor) -> Any:
    """The jax.Array behind `tensor`, for another library. It has no autograd history."""
    if tensor.requires_grad:
        raise BufferError(
            "can't export a tensor that requires gradient.\nDetach it first:  tensor.detach()"
        )
    return _XLAC.to_jax(tensor)
