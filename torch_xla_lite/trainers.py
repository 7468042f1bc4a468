"""Tells accelerate and transformers that device 'jax' computes in bfloat16 and float16, and that
the processes of a mesh are one program.

    TrainingArguments(bf16=True)              # or fp16=True, with ACCELERATE_TORCH_DEVICE=jax
    Accelerator(mixed_precision="fp16")

Both refuse these dtypes for what is not in their lists of devices, and start torch.distributed for
processes; nothing can be added by registration. So their functions are changed when the libraries
are imported, and nothing happens in programs that import neither. In a version that has other
lists, nothing is changed, and its own error remains.
"""

from __future__ import annotations

import functools
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import torch

from . import after_import
from .autoload import NAME, is_device_of_trainers


def register() -> None:
    """Changes the libraries that are imported, and the others when they are."""
    after_import.call(
        {
            "accelerate.accelerator": _change_accelerate,
            "accelerate.data_loader": _change_loaders,
            "accelerate.state": _change_processes,
            "transformers.utils.import_utils": _change_transformers,
        }
    )


def _change_accelerate(accelerator: types.ModuleType) -> None:
    """Adds the device to those that may compute in float16, a constant of Accelerator.__init__, and
    gives it a scaler of gradients: the function has that of CUDA for devices that it does not
    know."""
    init = accelerator.Accelerator.__init__
    while hasattr(init, "__wrapped__"):
        init = init.__wrapped__
    code = init.__code__
    constants = tuple(
        (*constant, NAME)
        if isinstance(constant, tuple) and {"cuda", "xpu", "npu"} <= {*constant}
        else constant
        for constant in code.co_consts
    )
    init.__code__ = code.replace(co_consts=constants)
    get_grad_scaler = accelerator.get_grad_scaler

    def get_scaler(distributed_type: Any = None, **options: Any) -> torch.amp.GradScaler:
        if is_device_of_trainers(os.environ):
            return torch.amp.GradScaler(NAME, **options)
        return get_grad_scaler(distributed_type, **options)

    accelerator.get_grad_scaler = get_scaler


def _change_processes(state: types.ModuleType) -> None:
    """Lets accelerate, which would start torch.distributed, take the processes of a mesh for one:
    their batches and sums are whole. The first is the one that writes files."""
    init = state.PartialState.__init__

    @functools.wraps(init)
    def init_of_one(self: Any, *args: Any, **kwargs: Any) -> None:
        if self._shared_state or not _are_connected():
            init(self, *args, **kwargs)
            return
        rank = os.environ.pop("LOCAL_RANK", None)
        try:
            init(self, *args, **kwargs)
        finally:
            if rank is not None:
                os.environ["LOCAL_RANK"] = rank
        from . import distributed

        self.process_index = distributed.process()[0]
        self.local_process_index = self.process_index if rank is None else int(rank)

    state.PartialState.__init__ = init_of_one


def _are_connected() -> bool:
    """Whether `distributed.initialize` was called."""
    import jax

    return jax.distributed.is_initialized()


def _change_loaders(data_loader: types.ModuleType) -> None:
    """Lets each process read an IterableDataset: by default the first one does, and sends it."""
    name = "prepare_data_loader"
    original = getattr(data_loader, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def prepare(*args: Any, **options: Any) -> Any:
        if _are_connected() and options.get("dispatch_batches") is None:
            options["dispatch_batches"] = False
        return original(*args, **options)

    _replace(name, original, prepare)


def _change_transformers(import_utils: types.ModuleType) -> None:
    """Lets the question whether the device has bfloat16 be answered."""
    name = "is_torch_bf16_gpu_available"
    original = getattr(import_utils, name, None)
    if original is None:
        return

    def is_available() -> bool:
        return is_device_of_trainers(os.environ) or original()

    _replace(name, original, is_available)


def _replace(name: str, original: Callable, changed: Callable) -> None:
    """Replaces a function in all modules that have it."""
    for module in list(sys.modules.values()):
        # Not by getattr, which would import what transformers imports late.
        if getattr(module, "__dict__", {}).get(name) is original:
            setattr(module, name, changed)
