"""Tells accelerate and transformers that device 'jax' computes in bfloat16 and float16, and that
the processes of a mesh are one program.

    TrainingArguments(bf16=True)              # or fp16=True, with ACCELERATE_TORCH_DEVICE=jax
    Accelerator(mixed_precision="fp16")

Both refuse these dtypes for what is not in their lists of devices, and start torch.distributed for
processes; nothing can be added by registration. So their functions are changed when the libraries
are imported, and nothing happens in programs that import neither.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import warnings
from collections.abc import Callable
from typing import Any

import torch

from ..device.autoload import NAME, is_device_of_trainers
from ..startup import late_jax
from ..startup.patches import Patch


def _computing_in_float16(init: Callable[..., None]) -> Callable[..., None]:
    """Makes an Accelerator without mixed precision, which then gets what float16 needs."""
    signature = inspect.signature(init)

    @functools.wraps(init)
    def init_on_jax(self: Any, *args: Any, **options: Any) -> None:
        from accelerate.state import AcceleratorState

        call = signature.bind(self, *args, **options)
        state = AcceleratorState._shared_state
        known = state.get("_mixed_precision")  # That of the first Accelerator.
        variable = os.environ.get("ACCELERATE_MIXED_PRECISION")
        wanted = call.arguments.get("mixed_precision") or known or variable
        if not is_device_of_trainers(os.environ) or {str(wanted), known or "fp16"} != {"fp16"}:
            init(self, *args, **options)
            return
        call.arguments["mixed_precision"] = "no"
        if known:
            state["_mixed_precision"] = "no"
        try:
            init(*call.args, **call.kwargs)
        finally:
            if "_mixed_precision" in state:
                state["_mixed_precision"] = "fp16"
        if self.device.type == NAME:
            self.native_amp = True
            handler = self.scaler_handler
            self.scaler = torch.amp.GradScaler(NAME, **(handler.to_kwargs() if handler else {}))

    return init_on_jax


def _taking_a_mesh_for_one(init: Callable[..., None]) -> Callable[..., None]:
    """Takes the processes of a mesh for one: batches and sums are whole. The first writes files."""

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
        from ..mesh.base import distributed

        self.process_index = distributed.process()[0]
        self.local_process_index = self.process_index if rank is None else int(rank)

    return init_of_one


def _are_connected() -> bool:
    """Whether `distributed.initialize` was called."""
    return late_jax.is_imported() and late_jax.jax.distributed.is_initialized()


def _reading_in_each_process(prepare_data_loader: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(prepare_data_loader)
    def prepare(*args: Any, **options: Any) -> Any:
        if _are_connected() and options.get("dispatch_batches") is None:
            options["dispatch_batches"] = False
        return prepare_data_loader(*args, **options)

    return prepare


def _having_bfloat16(is_torch_bf16_gpu_available: Callable[[], bool]) -> Callable[[], bool]:
    @functools.wraps(is_torch_bf16_gpu_available)
    def is_available() -> bool:
        return is_device_of_trainers(os.environ) or is_torch_bf16_gpu_available()

    return is_available


def _telling(remedy: str, is_wanted: Callable[[Any], bool]) -> Callable[[Callable], Callable]:
    """Makes a method that says when it moves a model from jax to another device.

    Args:
      is_wanted: whether an object was told to use the other device.
    """

    def make(method: Callable) -> Callable:
        @functools.wraps(method)
        def move(self: Any, *args: Any, **options: Any) -> Any:
            model = (*args, *options.values(), getattr(self, "model", None))[0]
            device = _device_of(model)
            result = method(self, *args, **options)
            if device == NAME != _device_of(model) and not is_wanted(self):
                warnings.warn(
                    f"{type(self).__name__} has moved the model from {NAME} to "
                    f"{_device_of(model)}, where it will be trained.\nName the device:  {remedy}",
                    stacklevel=3,
                )
            return result

        return move

    return make


def _choosing_jax(choose: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Makes Lightning choose the strategy of the accelerator jax, and registers both."""
    importlib.import_module(f"{__package__}.lightning")

    @functools.wraps(choose)
    def choose_strategy(self: Any) -> Any:
        flag = self._accelerator_flag
        name = flag if isinstance(flag, str) else getattr(flag, "name", str)()
        return name if name == NAME else choose(self)

    return choose_strategy


def _taking_jax(get_max_memory: Callable) -> Callable:
    """Makes accelerate take a size for jax, which comes first, as other accelerators do."""

    @functools.wraps(get_max_memory)
    def get(max_memory: dict[Any, Any] | None = None) -> dict[Any, Any]:
        if not max_memory or NAME not in max_memory:
            return get_max_memory(max_memory)
        # The only one that has a name and not a number.
        named = get_max_memory({"mps" if k == NAME else k: v for k, v in max_memory.items()})
        return {NAME if k == "mps" else k: v for k, v in named.items()}

    return get


def _device_of(model: Any) -> str | None:
    parameters = model.parameters() if isinstance(model, torch.nn.Module) else ()
    return next((parameter.device.type for parameter in parameters), None)


_VARIABLE = f"export ACCELERATE_TORCH_DEVICE={NAME}"
_MOVES = "moves a model from jax to the CPU, and does not say so"
PATCHES = (
    Patch(
        "transformers.trainer",
        "Trainer._move_model_to_device",
        _MOVES,
        _telling(_VARIABLE, lambda trainer: trainer.args.use_cpu),
    ),
    Patch(
        "accelerate.accelerator",
        "Accelerator.prepare_model",
        _MOVES,
        _telling(_VARIABLE, lambda accelerator: getattr(accelerator.state, "_cpu", False)),
    ),
    Patch(
        "accelerate.accelerator",
        "Accelerator.__init__",
        "refuses float16 on devices that it does not know",
        _computing_in_float16,
    ),
    Patch(
        "accelerate.state",
        "PartialState.__init__",
        "starts torch.distributed for the processes of a mesh",
        _taking_a_mesh_for_one,
    ),
    Patch(
        "accelerate.data_loader",
        "prepare_data_loader",
        "lets the first process read an IterableDataset, and send it",
        _reading_in_each_process,
    ),
    Patch(
        "transformers.utils.import_utils",
        "is_torch_bf16_gpu_available",
        "asks CUDA whether the device has bfloat16",
        _having_bfloat16,
    ),
    Patch(
        "accelerate.utils.modeling",
        "get_max_memory",
        "refuses jax in the sizes of devices: infer_auto_device_map(model, {'jax': '8GB'})",
        _taking_jax,
    ),
    *(
        patch
        for package in ("lightning.pytorch", "pytorch_lightning")
        for patch in (
            Patch(
                f"{package}.strategies.single_device",
                "SingleDeviceStrategy.model_to_device",
                _MOVES,
                _telling(f'Trainer(accelerator="{NAME}")', lambda _: False),
            ),
            Patch(
                f"{package}.trainer.connectors.accelerator_connector",
                "_AcceleratorConnector._choose_strategy",
                "chooses the CPU for an accelerator that it does not know",
                _choosing_jax,
            ),
        )
    ),
)
