"""Names device 'jax' at the end of `import torch`; the first use of the name loads the package.

    import torch
    torch.ones(2, device="jax")     # imports torch_xla_lite

An installation has this file as the top-level module torch_xla_lite_autoload, because importing a
module of the package would load all of it. torch calls `register` through the entry point
`torch.backends` of the installed package. That takes a few milliseconds, in which it looks for
other such packages, and imports neither jax nor the compiled bridge.

torch calls `torch.jax._lazy_init` where a tensor is made on the device or copied to it. Other uses
begin with an attribute of `torch.jax`. Three begin with neither, and raise torch's error if nothing
has loaded the package before: torch.Generator, torch.Stream and torch.Event of device 'jax'.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import types
from collections.abc import Callable
from importlib import metadata
from importlib.machinery import PathFinder
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

# Functions of other libraries that take the name of a device before torch sees it.
_NAMED_FIRST_IN = {
    "lightning.pytorch.trainer.connectors.accelerator_connector": "_AcceleratorConnector.__init__",
    "pytorch_lightning.trainer.connectors.accelerator_connector": "_AcceleratorConnector.__init__",
    "safetensors._safetensors_rust": "safe_open",
}

# torch calls the functions that load storages in the order of these numbers; its own have up to 23,
# the one of the package has 15.
_BEFORE_PACKAGE = 14
_AFTER_TORCH = 40

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
        if _is_wanted(os.environ):
            _register()
        else:
            _register_refusal()
    except Exception as error:
        print(
            f"torch_xla_lite: device {NAME!r} is not available without an import: {error!r} "
            f"(not to see this:  export {VARIABLE}=0)",
            file=sys.stderr,
        )


def _register_refusal() -> None:
    # torch sorts what is registered, and cannot compare functions: each number is there once.
    numbers = {number for number, *_ in torch.serialization._package_registry}
    if _AFTER_TORCH not in numbers:
        torch.serialization.register_package(_AFTER_TORCH, lambda storage: None, _refuse)


def _refuse(storage: object, location: str) -> None:
    """Says how a file with tensors on jax is loaded where the device has no name."""
    if location.partition(":")[0] == NAME:
        raise RuntimeError(
            f"the file has tensors on device {NAME}, which this process has not loaded.\n"
            f"Load them to another:  torch.load(file, map_location='cpu'), or import torch_xla_lite"
        )


def _is_wanted(environ: Any) -> bool:
    """Whether the device gets its name now.

    torch has one accelerator, and prefers one that was registered from outside to its own ones:
    `torch.accelerator` and pinned memory would no longer be those of the GPU. So where there may be
    another one, the user says so by the variable of this package or of accelerate.
    """
    asked = environ.get(VARIABLE)
    if asked in ("0", "1"):
        return asked == "1"
    if is_device_of_trainers(environ):
        return True
    return not _has_another_accelerator() and _backends() <= {__name__}


def _backends() -> set[str]:
    """The modules of all packages that torch calls to register devices, this one among them."""
    return {entry.module for entry in metadata.entry_points(group="torch.backends")}


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
    torch.jit.load = _loading_once_more(torch.jit.load)
    torch.serialization.register_package(_BEFORE_PACKAGE, lambda storage: None, _load_for_storage)
    torch.Tensor.pin_memory = _pin_memory  # type: ignore[method-assign]
    sys.meta_path.insert(0, _BeforeNamed())
    if is_device_of_trainers(os.environ):
        sys.meta_path.insert(0, _BeforeTrainers())


class _BeforeNamed:
    """A finder of modules that lets functions load the package when they are given the name of the
    device. The package then replaces them, or what they call, by its own (startup/patches.py).
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        function = _NAMED_FIRST_IN.get(name)
        spec = PathFinder.find_spec(name, path, target) if function and not _is_loaded() else None
        if function is None or spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            execute(module)
            _load_when_named(module, function)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _load_when_named(module: types.ModuleType, function: str) -> None:
    owner, _, name = function.rpartition(".")
    place = getattr(module, owner) if owner else module
    original = getattr(place, name)

    @functools.wraps(original, updated=())
    def call(*args: Any, **options: Any) -> Any:
        if not any(names_device(value) for value in (*args, *options.values())):
            return original(*args, **options)
        _loaded()
        changed = getattr(place, name)
        return (original if changed is call else changed)(*args, **options)

    setattr(place, name, call)


def names_device(value: object) -> bool:
    """Whether the value is this device, or a name of it."""
    return isinstance(value, str | torch.device) and str(value).partition(":")[0] == NAME


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


def _pin_memory(self: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
    """Tensor.pin_memory for the call that loads the package, which has the memory."""
    _loaded()
    return self.pin_memory(*args, **options)


def _load_for_storage(storage: torch.UntypedStorage, location: str) -> torch.UntypedStorage | None:
    """Loads a storage from a file, as the package does, which may not be loaded yet."""
    if location.partition(":")[0] != NAME:
        return None
    _loaded()
    return sys.modules["torch_xla_lite.torch_hooks.serialization"].mark(storage, location)


def _loading_once_more(load: Callable[..., Any]) -> Callable[..., Any]:
    """A `torch.jit.load` for the file that loads the package: tensors on the device are in it, or
    mapped to it."""

    @functools.wraps(load)
    def load_once_more(f: Any, *args: Any, **options: Any) -> Any:
        start = f.tell() if hasattr(f, "seek") else None
        try:
            return load(f, *args, **options)
        except RuntimeError as error:
            if _is_loaded() or NAME not in str(error):
                raise
        _loaded()
        if start is not None:
            f.seek(start)
        return load(f, *args, **options)

    return load_once_more


class _PackageNeeded(Exception):
    pass


def _loading(apply: Callable[..., torch.nn.Module]) -> Callable[..., torch.nn.Module]:
    """A `Module._apply` for the call that loads the package: `model.to('jax')` begins again with
    that of the package, which keeps Parameters the same objects."""

    def _apply(self: torch.nn.Module, fn: Callable, recurse: bool = True) -> torch.nn.Module:
        if hasattr(fn, "checks_device"):  # That of a module that has this one.
            return apply(self, fn, recurse)

        def convert(tensor: torch.Tensor) -> torch.Tensor:
            moved = fn(tensor)
            if moved.device.type == NAME:
                raise _PackageNeeded
            return moved

        convert.checks_device = True  # type: ignore[attr-defined]
        try:
            return apply(self, convert, recurse)
        except _PackageNeeded:
            _loaded()
            return self._apply(fn, recurse)

    _apply.__doc__ = apply.__doc__
    _apply.replaced = apply  # type: ignore[attr-defined]
    return _apply
