"""The settings of a thread that decide what a recorded function computes.

    key = thread_settings.key()       # a part of the signature of what is recorded
    settings = ThreadSettings()       # in one thread
    settings.apply()                  # in another one, which has the same settings then

They are torch's autocast, default dtype, default device and function modes, jax's options that
change how functions are traced, and the mesh, which is the same for all threads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator
from contextvars import ContextVar

import torch
from torch.utils._device import DeviceContext

from torch_xla_lite.startup.late_jax import jax

from ..mesh.base import placements

# Of jax: each option is a context manager and has a value. `jax.enable_x64` is one, too.
_OPTIONS = (
    "default_matmul_precision",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "default_prng_impl",
    "threefry_partitionable",
    "default_device",
)

# Whether jax has 64 bits outside of `wide`.
_x64_outside: ContextVar[bool | None] = ContextVar("_x64_outside", default=None)


@contextlib.contextmanager
def wide() -> Iterator[None]:
    """jax has 64 bits in the body, so that what is recorded there keeps torch's dtypes. Functions
    of jax that a captured function calls see what was set outside."""
    token = _x64_outside.set(_x64())
    try:
        with jax.enable_x64(True):
            yield
    finally:
        _x64_outside.reset(token)


def key() -> Hashable:
    """Differs where the settings differ."""
    # Part of each call of `call_jax`, so it asks for little where nothing is set.
    modes = autocast = None
    if torch._C._len_torch_function_stack():
        modes = tuple(map(_key_of_mode, _modes()))
    if torch._C._is_any_autocast_enabled() and torch.is_autocast_enabled("jax"):
        autocast = torch.get_autocast_dtype("jax")
    return (
        modes,
        autocast,
        torch.get_default_dtype(),
        _x64(),
        jax.default_matmul_precision.value,
        jax.numpy_dtype_promotion.value,
        jax.default_prng_impl.value,
        placements.current(),
    )


class ThreadSettings:
    """The settings that this thread has now."""

    def __init__(self) -> None:
        self._gradients = torch.is_grad_enabled()
        self._autocast = torch.is_autocast_enabled("jax")
        self._autocast_dtype = torch.get_autocast_dtype("jax")
        self._modes = _modes()
        self._x64 = _x64()
        options = [getattr(jax, name) for name in _OPTIONS]
        self._options = [(option, option.value) for option in options]

    def apply(self) -> None:
        """Sets them in this thread, until it ends."""
        torch.set_grad_enabled(self._gradients)
        torch.set_autocast_enabled("jax", self._autocast)
        torch.set_autocast_dtype("jax", self._autocast_dtype)
        for mode in self._modes:
            torch.overrides._push_mode(mode)
        _x64_outside.set(None)
        for option, value in ((jax.enable_x64, self._x64), *self._options):
            option(value).__enter__()


def _x64() -> bool:
    outside = _x64_outside.get()
    return jax.enable_x64.value if outside is None else outside


def _modes() -> list[torch.overrides.TorchFunctionMode]:
    """torch's function modes, the outermost first. The default device is one."""
    return torch.overrides._get_current_function_mode_stack()


def _key_of_mode(mode: torch.overrides.TorchFunctionMode) -> Hashable:
    # Each `with torch.device(...)` makes a new mode.
    return mode.device if isinstance(mode, DeviceContext) else mode
