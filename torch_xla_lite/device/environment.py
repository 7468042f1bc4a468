"""default_env(): chooses where tensors are created when the code names no device.

    env = torch_xla_lite.default_env()

    with env:
        torch.randn(1)                           # a CPU tensor: native CPU is faster for small work
        torch.randn(1, device="jax")             # an XLATensor2

    env.config.use_torch_native_for_cpu_tensor = False
    with env:
        torch.randn(1)                           # an XLATensor2
        torch.randn(1, device="cpu").cpu()       # an XLATensor2
        torch.randn(1).torch()                   # a CPU tensor: how data leaves

    torch_xla_lite.enable_globally()             # as `with env:`, until disable_globally()

With the default configuration an environment changes nothing and costs nothing. With
`use_torch_native_for_cpu_tensor = False` each call of a torch function passes through a torch
function mode, which costs about a microsecond. The mode belongs to the thread that entered it, as
with `with torch.device(...)`: other threads enter the environment themselves. Environments nest,
and may be left in another order than they were entered.

These stay on the CPU even then: existing CPU tensors, and results computed from them alone;
torch.from_numpy and torch.frombuffer, which share memory (torch.as_tensor copies to jax), and the
constructors torch.Tensor(...) and torch.FloatTensor(...), because torch calls no mode for them;
what torch.load reads; sparse tensors; and the internal counters of optimizers and data loaders,
which are small and read in every step.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.utils._device
from torch.overrides import TorchFunctionMode

from . import NAME, _is_forked

_SETTINGS = ("use_torch_native_for_cpu_tensor",)


def _unknown_setting(name: str) -> str:
    import difflib  # only a mistake pays for this import

    near = difflib.get_close_matches(name, _SETTINGS, n=1, cutoff=0.3)
    guess = f" Did you mean {near[0]}?" if near else ""
    return f"an environment has no setting {name}.{guess}\nSettings: {', '.join(_SETTINGS)}."


class Config:
    """Settings of an Environment. A change takes effect at once, in the thread that makes it."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._native_cpu = True

    def __setattr__(self, name: str, value: object) -> None:
        if name not in ("_changed", "_native_cpu", *_SETTINGS):
            raise AttributeError(_unknown_setting(name))
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> object:  # only for names that do not exist
        raise AttributeError(_unknown_setting(name))

    @property
    def use_torch_native_for_cpu_tensor(self) -> bool:
        """Whether CPU factories, `.cpu()` and `.to('cpu')` give plain CPU tensors inside."""
        return self._native_cpu

    @use_torch_native_for_cpu_tensor.setter
    def use_torch_native_for_cpu_tensor(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"use_torch_native_for_cpu_tensor is True or False, found {value!r}.")
        self._native_cpu = value
        self._changed()

    def __repr__(self) -> str:
        return f"Config(use_torch_native_for_cpu_tensor={self._native_cpu})"


class Environment:
    """Decides whether code that names no device, or 'cpu', gets CPU tensors or XLATensor2.

    `with env:` enables it in this thread and may be nested. See the top of this file.
    """

    def __init__(self) -> None:
        self.config = Config(self._update)
        self._mode = _CpuMeansJax(self.config)
        self._thread = _ThreadState()

    @property
    def enabled(self) -> bool:
        """Whether this thread is inside the environment."""
        return self._thread.depth > 0 or self._thread.globally

    def __enter__(self) -> Environment:
        self._thread.depth += 1
        self._update()
        return self

    def __exit__(self, *exc: object) -> None:
        self._thread.depth -= 1
        self._update()

    def _set_globally(self, value: bool) -> None:
        self._thread.globally = value
        self._update()

    def _update(self) -> None:
        """Adds the mode to this thread's stack, or removes it, as the state requires."""
        wanted = self.enabled and not self.config.use_torch_native_for_cpu_tensor
        if wanted != self._thread.mode_pushed:
            (_push if wanted else _remove)(self._mode)
            self._thread.mode_pushed = wanted

    def __repr__(self) -> str:
        return f"Environment(enabled={self.enabled}, config={self.config})"


class _ThreadState(threading.local):
    """The state of an environment in one thread."""

    depth = 0  # number of enclosing `with env:`
    globally = False
    mode_pushed = False


@functools.cache
def default_env() -> Environment:
    """The environment of this process; always the same object."""
    return Environment()


def enable_globally() -> None:
    """Enters the default environment for the rest of this thread, without a `with`.

    Calling it again changes nothing. With `use_torch_native_for_cpu_tensor = False`, each thread
    that creates tensors must call it.
    """
    default_env()._set_globally(True)


def disable_globally() -> None:
    """Reverts enable_globally(). An enclosing `with default_env():` stays enabled."""
    default_env()._set_globally(False)


# --- the mode -------------------------------------------------------------------------------------


class _CpuMeansJax(TorchFunctionMode):
    """Makes calls that would create a CPU tensor create a jax tensor."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self._config = config

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        keywords = {**kwargs} if kwargs else {}
        if self._config.use_torch_native_for_cpu_tensor or _is_forked():
            return func(*args, **keywords)
        if func is torch.Tensor.cpu and not _called_by_torch_internals():
            return torch.Tensor.to(args[0], NAME, **_memory_format(args, keywords))
        if func is torch.Tensor.to and not _called_by_torch_internals():
            args = tuple(_jax_if_cpu(arg) for arg in args[:2]) + args[2:]
        if _names_cpu(keywords.get("device")) or (
            keywords.get("device") is None
            and _creates_tensor(func, args, keywords)
            and not _default_device_is_other()
        ):
            return self._create(func, args, keywords)
        return func(*args, **keywords)

    @staticmethod
    def _create(func: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if keywords.get("out") is not None or _called_by_torch_internals():
            return func(*args, **keywords)
        generator = keywords.get("generator")
        if generator is not None and generator.device.type == "cpu":
            # A CPU generator can only be used on the CPU.
            grad = keywords.pop("requires_grad", False)
            return func(*args, **keywords).to(NAME).requires_grad_(grad)
        keywords["device"] = NAME
        keywords.pop("pin_memory", None)  # applies to host memory only
        return func(*args, **keywords)


@functools.cache
def _factories() -> frozenset[Any]:
    """Functions that create a dense tensor on the default device if the call names none."""
    sparse = {
        torch.sparse_coo_tensor,
        torch.sparse_compressed_tensor,
        torch.sparse_csr_tensor,
        torch.sparse_csc_tensor,
        torch.sparse_bsr_tensor,
        torch.sparse_bsc_tensor,
        torch.nested.nested_tensor,
        torch.empty_quantized,
    }
    return frozenset(torch.utils._device._device_constructors() - sparse)


def _creates_tensor(func: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Whether this call, which names no device, creates a tensor on the default device."""
    if func is torch.normal:  # a factory only if it is given numbers
        return not any(isinstance(value, torch.Tensor) for value in (*args, *keywords.values()))
    return func in _factories()


# Modules of torch that create CPU tensors for internal use.
_TORCH_INTERNALS = (
    "torch.optim.",
    "torch.utils.data.",
    "torch.amp.",
    "torch.serialization",
    "torch.storage",
    "torch._utils",
    "torch._tensor",
)


def _called_by_torch_internals() -> bool:
    """Whether the first caller outside this file is one of `_TORCH_INTERNALS`."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__", "").startswith(_TORCH_INTERNALS)


def _names_cpu(device: Any) -> bool:
    if isinstance(device, str):
        return device == "cpu" or device.startswith("cpu:")
    return isinstance(device, torch.device) and device.type == "cpu"


def _jax_if_cpu(argument: Any) -> Any:
    return NAME if _names_cpu(argument) else argument


def _default_device_is_other() -> bool:
    """Whether `with torch.device(...)` selects a device other than CPU and jax."""
    current = torch.utils._device.CURRENT_DEVICE
    return current is not None and current.type not in ("cpu", NAME)


def _memory_format(args: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any]:
    """The only argument of Tensor.cpu, which may be positional."""
    return {"memory_format": args[1]} if len(args) > 1 else keywords


def _push(mode: TorchFunctionMode) -> None:
    """Adds `mode` below the active modes, but above torch's device context, which must be lowest.

    So environments may be left in any order, and a mode that the user enters stays on top.
    """
    stack = _pop_all()
    at = 1 if stack and isinstance(stack[0], torch.utils._device.DeviceContext) else 0
    _push_all([*stack[:at], mode, *stack[at:]])


def _remove(mode: TorchFunctionMode) -> None:
    _push_all([other for other in _pop_all() if other is not mode])


def _pop_all() -> list[Any]:
    """Takes all function modes off this thread's stack and returns them, lowest first."""
    stack = [torch.overrides._pop_mode() for _ in range(torch._C._len_torch_function_stack())]
    return stack[::-1]


def _push_all(stack: list[Any]) -> None:
    for mode in stack:
        torch.overrides._push_mode(mode)
