"""Names device 'jax' at the end of `import torch`; the first use of the name loads the package.

    import torch
    torch.ones(2, device="jax")     # imports torch_xla_lite

An installation has this file as the top-level module torch_xla_lite_autoload, because importing a
module of the package would load all of it. torch calls `register` through the entry point
`torch.backends` of the installed package. That takes a third of a millisecond and imports neither
jax nor the compiled bridge, so that programs for other devices do not notice it.

torch calls `torch.jax._lazy_init` where a tensor is made on the device or copied to it. Other uses
begin with an attribute of `torch.jax`. Three begin with neither, and raise torch's error if nothing
has loaded the package before: torch.Generator, torch.Stream and torch.Event of device 'jax'.
"""

from __future__ import annotations

import importlib
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import torch

NAME = "jax"

VARIABLE = "TORCH_XLA_LITE_AUTOLOAD"

# What torch asks each device that has a name, and the answers while the program does not use this
# one.
_PROBES: dict[str, Callable[[], object]] = {
    "is_available": lambda: False,
    "device_count": lambda: 0,
    "synchronize": lambda: None,
}
# These modules of torch ask a device that the program has named.
_ASKED_BY_NAME = ("torch.serialization", "torch.utils.backend_registration")

# The public names of torch_xla_lite.device.
NAMES = (
    "Event",
    "Stream",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_amp_supported_dtype",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
)


def register() -> None:
    """Names the device, unless that would take the place of another one. Never raises: a problem
    of this package must not break `import torch` in programs that do not use it."""
    try:
        others = sys._getframe(1).f_locals.get("backend_extensions", ())
        if _is_wanted(os.environ, [entry.module for entry in others]):
            _register()
    except Exception as error:
        print(
            f"torch_xla_lite: device {NAME!r} is not available without an import: {error!r} "
            f"(not to see this:  export {VARIABLE}=0)",
            file=sys.stderr,
        )


def _is_wanted(environ: Any, backends: list[str]) -> bool:
    """Whether the device gets its name now.

    torch has one accelerator, and prefers one that was registered from outside to its own ones:
    `torch.accelerator` and pinned memory would no longer be those of the GPU. So where there may be
    another one, the user says so by the variable of this package or of accelerate.

    Args:
      environ: of the process.
      backends: modules of all packages that torch calls to register devices, this one among them.
    """
    asked = environ.get(VARIABLE)
    if asked in ("0", "1"):
        return asked == "1"
    if is_device_of_trainers(environ):
        return True
    return not _has_another_accelerator() and set(backends) <= {__name__}


def is_device_of_trainers(environ: Any) -> bool:
    """Whether accelerate, and transformers' Trainer, use the device."""
    return environ.get("ACCELERATE_TORCH_DEVICE", "").partition(":")[0] == NAME


def _has_another_accelerator() -> bool:
    """Whether torch was built for an accelerator that this machine may have.

    By device files, because the question initialises CUDA, which takes long and breaks forks."""
    if torch.version.cuda:
        return any(os.path.exists(file) for file in ("/dev/nvidiactl", "/dev/dxg"))
    if torch.version.hip:
        return os.path.exists("/dev/kfd")
    return torch.version.xpu is not None or torch.backends.mps.is_built()


def _register() -> None:
    if torch._C._get_privateuse1_backend_name() != "privateuseone":
        return  # The package, which is being imported, or a device of somebody else.
    torch.utils.rename_privateuse1_backend(NAME)
    # Without torch._register_device_module, which searches torch for the name for 3 ms.
    torch.jax = sys.modules[f"torch.{NAME}"] = _UnloadedDevice(f"torch.{NAME}", __doc__)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=False)
    torch.nn.Module._apply = _loading(torch.nn.Module._apply)
    if is_device_of_trainers(os.environ):
        sys.meta_path.insert(0, _BeforeTrainers())


class _BeforeTrainers:
    """A finder of modules that loads the package before it is asked for accelerate or transformers,
    because they ask for the dtypes of a device before they use it (trainers.py)."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in ("accelerate", "transformers"):
            sys.meta_path.remove(self)
            _loaded()


class _UnloadedDevice(types.ModuleType):
    """`torch.jax` until the package is loaded, which then takes its place.

    It still serves those who keep a reference to it."""

    seed_to_set: int | None = None

    def _lazy_init(self) -> None:
        _loaded()

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        """torch.manual_seed calls this for each device. The loaded device begins with the seed."""
        loaded = sys.modules.get("torch_xla_lite.device")
        if loaded:
            loaded.manual_seed_all(seed)
        self.seed_to_set = seed

    def __getattr__(self, name: str) -> Any:
        if name not in NAMES:
            # Such as Scheduling, for which torch.compile asks on the way to another device.
            raise AttributeError(f"module 'torch.{NAME}' has no attribute {name!r}")
        if name in _PROBES and not _is_loaded():
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if caller.startswith("torch.") and caller not in _ASKED_BY_NAME:
                return _PROBES[name]
        return getattr(_loaded(), name)

    def __dir__(self) -> list[str]:
        return list(NAMES)


def _loaded() -> types.ModuleType:
    """The device module of the package. Raises ImportError if the package cannot be loaded."""
    return importlib.import_module("torch_xla_lite.device")


def _is_loaded() -> bool:
    return torch.__dict__.get(NAME).__class__ is not _UnloadedDevice


def _loading(apply: Callable[..., torch.nn.Module]) -> Callable[..., torch.nn.Module]:
    """A `Module._apply` for the call that loads the package: `model.to('jax')` is on its way when
    the package replaces this one by its own, which keeps Parameters the same objects."""

    def _apply(self: torch.nn.Module, fn: Callable, recurse: bool = True) -> torch.nn.Module:
        def convert(tensor: torch.Tensor) -> torch.Tensor:
            moved = fn(tensor)
            if moved.device.type != NAME:
                return moved
            return _loaded().keep_parameter(self, tensor, moved, fn)

        return apply(self, convert, recurse)

    _apply.__doc__ = apply.__doc__
    _apply.replaced = apply  # type: ignore[attr-defined]
    return _apply
