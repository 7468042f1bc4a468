"""The device module of 'jax': this file is `torch.jax`, as torch/cuda is `torch.cuda`.

    torch.jax.is_available()           # True
    torch.jax.synchronize()            # runs what is recorded and waits for it
    torch.jax.manual_seed(0)           # torch.manual_seed(0) does this too

torch finds a device's functions by their names in its module: torch.random seeds through
`manual_seed_all` and saves state through `get_rng_state`, torch.autocast calls
`get_amp_supported_dtype`, torch.load and checkpointing enter `device(index)`. There is one jax
device, index 0, with one stream, as in csrc/device.
"""

from __future__ import annotations

import os
import sys
import threading
import types
from typing import Any

import torch

from .. import _XLAC
from ..lowering.base import untraced
from ..startup import late_jax
from .autoload import NAME, NAMES

# Checkpointing saves and restores the random state of a device only if this is true.
_initialized = True

_forked = False
# Whether XLA's threads are missing, because jax had started them when this process was forked.
_in_bad_fork = False
# Whether jax had started XLA when this process last forked a child.
_had_started_xla = False

_register_lock = threading.Lock()
_registered = False


def __dir__() -> list[str]:
    return list(NAMES)


def register() -> None:
    """Names the device, makes this module `torch.jax`, adds `.jax()` to Tensor and Module."""
    global _registered
    with _register_lock:
        if _registered:
            return
        taken = torch._C._get_privateuse1_backend_name()
        if taken not in ("privateuseone", NAME):
            raise ImportError(
                f"torch supports one device of this kind, and {taken!r} is registered already.\n"
                "Import torch_xla_lite in a process that does not import that package."
            )
        if taken != NAME:
            torch.utils.rename_privateuse1_backend(NAME)
            torch.utils.generate_methods_for_privateuse1_backend(for_storage=False)
        _take_the_place_of(sys.modules.get(f"torch.{NAME}"))
        os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
        _XLAC.set_memory_info(_memory_info)
        # torch.compile calls them, too.
        for function in list(globals().values()):
            if isinstance(function, types.FunctionType):
                untraced.skip(function.__code__)
        _registered = True


def _take_the_place_of(unloaded: Any) -> None:
    """Makes this module `torch.jax`, in place of that of autoload.py, whose seed it takes over."""
    # Without torch._register_device_module, which refuses to replace a module.
    torch.jax = sys.modules[f"torch.{NAME}"] = sys.modules[__name__]  # type: ignore[attr-defined]
    torch.get_device_module.cache_clear()
    # Of autoload.py; torch's own is that of the base class.
    if "pin_memory" in vars(torch.Tensor):
        del torch.Tensor.pin_memory
    if unloaded is not None and unloaded.seed_to_set is not None:
        manual_seed_all(unloaded.seed_to_set)


# --- which device ---------------------------------------------------------------------------------


def is_available() -> bool:
    """Always True: XLA compiles for the CPU if there is no other device."""
    return True


def is_initialized() -> bool:
    return True


def init() -> None:
    """Does nothing: importing torch_xla_lite initialises the device."""


# torch calls it once, before it makes the first tensor on the device.
_lazy_init = init


def device_count() -> int:
    return 1


def current_device() -> int:
    return 0


def set_device(device: torch.device | str | int | None) -> None:
    """Accepts index 0, the only device. Raises RuntimeError for any other."""
    _index(device)


class device:
    """Context that selects the current device. There is one, so this only checks the argument."""

    def __init__(self, device: torch.device | str | int | None = None) -> None:
        self.idx = _index(device)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


class device_of(device):
    """Context that selects the device of `tensor`; has no effect for other devices."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__(tensor.device if tensor.device.type == NAME else None)


def get_device_name(device: torch.device | str | int | None = None) -> str:
    """The name of the hardware that XLA uses, such as `cpu` or `NVIDIA H200`."""
    _index(device)
    import jax

    return jax.devices()[0].device_kind


def get_device_properties(device: torch.device | str | int | None = None) -> dict[str, Any]:
    """Name, platform (`cpu`, `gpu`, ...) and the id that jax uses for the device."""
    _index(device)
    import jax

    used = jax.devices()[0]
    return {"name": used.device_kind, "platform": used.platform, "id": used.id}


# --- streams, events and memory -------------------------------------------------------------------
# There is one stream: XLA orders computations by the values that they need.

Stream = torch.Stream


class Event:
    """Makes a torch.Event: a point in the recorded work.

    With `enable_timing`, `record` runs all recorded work and waits for it, because XLA does not say
    when a computation ended. `query` waits, too.
    """

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> torch.Event:  # type: ignore[misc]
        # Not a subclass: torch.Event.elapsed_time accepts no other type.
        return torch.Event(
            device=NAME, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess
        )


def current_stream(device: torch.device | str | int | None = None) -> torch.Stream:
    return torch.Stream(torch.device(NAME, _index(device)))


default_stream = current_stream


def set_stream(stream: torch.Stream) -> None:
    """Accepts the only stream."""
    _index(stream.device)


class stream(device):
    """Context that selects a stream. There is one, so this only checks the argument."""

    def __init__(self, stream: torch.Stream | None) -> None:
        super().__init__(None if stream is None else stream.device)


def memory_stats(device: torch.device | str | int | None = None) -> dict[str, Any]:
    """Bytes and numbers of the arrays that tensors hold, named as in torch.cuda.memory_stats.

    On a GPU also what XLA's allocator reports; these names begin with `xla.`.
    """
    _index(device)
    xla = _xla_memory_stats()
    return dict(torch.accelerator.memory_stats(0)) | {
        f"xla.{name}": value for name, value in xla.items()
    }


def memory_allocated(device: torch.device | str | int | None = None) -> int:
    """Bytes of the arrays that tensors hold. What is only recorded takes no memory yet."""
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: torch.device | str | int | None = None) -> int:
    """The largest `memory_allocated` so far. XLA's temporary buffers are not part of it."""
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: torch.device | str | int | None = None) -> int:
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device: torch.device | str | int | None = None) -> int:
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: torch.device | str | int | None = None) -> None:
    torch._C._accelerator_resetPeakStats(_index(device))


def reset_accumulated_memory_stats(device: torch.device | str | int | None = None) -> None:
    torch._C._accelerator_resetAccumulatedStats(_index(device))


def mem_get_info(device: torch.device | str | int | None = None) -> tuple[int, int]:
    """Free and total bytes of the memory that XLA allocates from."""
    _index(device)
    return _memory_info()


def empty_cache() -> None:
    """Gives back the arrays that no tensor holds any more. XLA keeps its own reserve."""
    torch._C._accelerator_emptyCache()


def _xla_memory_stats() -> dict[str, int]:
    if late_jax.is_by_default():  # Its CPUs have none.
        return {}
    return late_jax.jax.devices()[0].memory_stats() or {}


def _memory_info() -> tuple[int, int]:
    stats = _xla_memory_stats()
    if "bytes_limit" in stats:
        return stats["bytes_limit"] - stats["bytes_in_use"], stats["bytes_limit"]
    page = os.sysconf("SC_PAGE_SIZE")  # XLA's CPU allocates from the memory of the machine.
    return os.sysconf("SC_AVPHYS_PAGES") * page, os.sysconf("SC_PHYS_PAGES") * page


def sync() -> None:
    """Runs all ops that this thread recorded as one graph. XLA may still be computing when this
    returns.

    Tensors that were deleted are not computed, unless others depend on them.
    """
    _XLAC.sync()


def synchronize(device: torch.device | str | int | None = None) -> None:
    """Runs all recorded ops, of other threads too, and waits for the results. For measuring
    time."""
    _index(device)
    _XLAC.synchronize()


def _index(device: torch.device | str | int | None) -> int:
    if device is None:
        return 0
    if not isinstance(device, int):
        named = torch.device(device)
        if named.type != NAME:
            raise ValueError(
                f"expected a {NAME} device, found {named}.\nName it:  torch.device('{NAME}')"
            )
        device = 0 if named.index is None else named.index
    if device not in (-1, 0):
        raise RuntimeError(
            f"there is no device {NAME}:{device}: torch_xla_lite has one device.\n"
            f"Use it:  device='{NAME}'"
        )
    return 0


# --- random numbers -------------------------------------------------------------------------------
# The state of a generator is a pair (seed, offset); see csrc/device/generator.h. As a tensor it is
# 16 bytes.


def manual_seed(seed: int) -> None:
    """Starts the random sequence of `seed`. A negative seed s stands for s + 2**64."""
    _XLAC.manual_seed(int(seed) % 2**64)


def manual_seed_all(seed: int) -> None:
    manual_seed(seed)


def seed() -> int:
    """Seeds from the system's entropy and returns the seed."""
    return _XLAC.seed()


def seed_all() -> None:
    seed()


def initial_seed() -> int:
    return _XLAC.initial_seed()


def get_rng_state(device: torch.device | str | int | None = None) -> torch.Tensor:
    """State of the default generator: a CPU byte tensor, `[16]`, seed and offset."""
    _index(device)
    with torch._C.DisableTorchFunction():  # a CPU tensor, whatever the environment says
        words = [_signed(word) for word in _XLAC.get_rng_state()]
        return torch.tensor(words, dtype=torch.int64, device="cpu").view(torch.uint8)


def set_rng_state(new_state: torch.Tensor, device: torch.device | str | int | None = None) -> None:
    """Restores a state of the default generator that `get_rng_state` returned."""
    _index(device)
    with torch._C.DisableTorchFunction():
        state = new_state.detach().cpu().contiguous()
        if state.dtype != torch.uint8 or state.numel() != 16:
            raise RuntimeError(
                f"a random state of device {NAME} is 16 bytes, "
                f"found {tuple(state.shape)} of {state.dtype}.\n"
                f"Pass what torch.{NAME}.get_rng_state() returned."
            )
        seed_, offset = (word % 2**64 for word in state.view(torch.int64).tolist())
    _XLAC.set_rng_state(seed_, offset)


def get_rng_state_all() -> list[torch.Tensor]:
    return [get_rng_state()]


def set_rng_state_all(new_states: list[torch.Tensor]) -> None:
    for state in new_states:
        set_rng_state(state)


def _signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word


# --- autocast -------------------------------------------------------------------------------------


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The dtypes that `torch.autocast('jax', dtype=...)` may compute in."""
    return [torch.bfloat16, torch.float16]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return True


# --- processes ------------------------------------------------------------------------------------


def _is_in_bad_fork() -> bool:
    """Whether this process was forked from one that used the device: XLA's threads are missing."""
    return _in_bad_fork


def _is_forked() -> bool:
    return _forked


def _before_fork() -> None:
    global _had_started_xla
    _had_started_xla = _has_started_xla()


def _has_started_xla() -> bool:
    # jax has no public function for this; without the internal one, children get an error.
    if "jax" not in sys.modules:
        return False
    xla_bridge = sys.modules.get("jax._src.xla_bridge")
    has_started = getattr(xla_bridge, "backends_are_initialized", None)
    return has_started is None or has_started()


def _after_fork_in_child() -> None:
    global _forked, _in_bad_fork
    _forked, _in_bad_fork = True, _had_started_xla or not _XLAC.use_in_this_process()
