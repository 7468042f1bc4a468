"""Runs Lightning on device 'jax', which Lightning's `accelerator="auto"` does not know.

    from torch_xla_lite.lightning import JaxStrategy

    Trainer(strategy=JaxStrategy(), precision="bf16-mixed")      # on jax, with all else "auto"
    Trainer(accelerator="jax", strategy="jax")                   # the same, by name

Import Lightning first: this module uses `lightning.pytorch` or `pytorch_lightning`, whichever the
program has imported, because their classes are not interchangeable.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..device import NAME, memory_stats, set_device
from ..mesh import sharding
from ..mesh.base import distributed

_PACKAGE = (
    "pytorch_lightning"
    if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules
    else "lightning.pytorch"
)
_accelerators = importlib.import_module(f"{_PACKAGE}.accelerators")
_strategies = importlib.import_module(f"{_PACKAGE}.strategies")
_precision = importlib.import_module(f"{_PACKAGE}.plugins.precision")


class JaxAccelerator(_accelerators.Accelerator):  # type: ignore[name-defined,misc]
    """Tells Lightning that there is one device, jax:0."""

    def setup_device(self, device: torch.device) -> None:
        set_device(device)

    def get_device_stats(self, device: Any) -> dict[str, Any]:
        return memory_stats(device)

    def teardown(self) -> None:
        """Does nothing: the device belongs to the process."""

    @staticmethod
    def parse_devices(devices: Any) -> list[int]:
        """Accepts what means one device: 1, "1", "auto", -1, [0]."""
        if devices not in (1, "1", "auto", -1, "-1", [0], "0,"):
            raise ValueError(
                f"there is one device jax, found devices={devices!r}.\n"
                "Use it:  Trainer(devices=1, strategy=JaxStrategy())"
            )
        return [0]

    @staticmethod
    def get_parallel_devices(devices: Any) -> list[torch.device]:
        return [torch.device(NAME, 0)]

    @staticmethod
    def auto_device_count() -> int:
        return 1

    @staticmethod
    def is_available() -> bool:
        return True

    @staticmethod
    def name() -> str:
        return NAME


class JaxStrategy(_strategies.SingleDeviceStrategy):  # type: ignore[name-defined,misc]
    """Trains on jax:0, or on a mesh, whose processes are one program: the first writes the files.
    Its mixed precision is that of jax; Lightning would choose that of CUDA."""

    strategy_name = NAME

    def __init__(self, accelerator: Any = None, **options: Any) -> None:
        super().__init__(f"{NAME}:0", accelerator=accelerator or JaxAccelerator(), **options)

    @property
    def is_global_zero(self) -> bool:
        return distributed.process()[0] == 0

    def lightning_module_state_dict(self) -> dict[str, Any]:
        return _whole(super().lightning_module_state_dict())

    def optimizer_state(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        return _whole(super().optimizer_state(optimizer))

    def teardown(self) -> None:
        if distributed.process()[1] == 1:
            super().teardown()
            return
        # No process has all of what that moves to the CPU.
        for part in (self.precision_plugin, self.accelerator, self.checkpoint_io):
            part.teardown()

    @property
    def precision_plugin(self) -> Any:
        return super().precision_plugin

    @precision_plugin.setter
    def precision_plugin(self, plugin: Any) -> None:
        if isinstance(plugin, _precision.MixedPrecision) and plugin.device != NAME:
            plugin = _precision.MixedPrecision(plugin.precision, NAME)
        _strategies.Strategy.precision_plugin.fset(self, plugin)


def _whole(state: dict[str, Any]) -> dict[str, Any]:
    """Of several processes, which all call this, the whole tensors, on the CPU."""
    if distributed.process()[1] == 1:
        return state

    def gather(value: Any) -> Any:
        is_on_jax = isinstance(value, torch.Tensor) and value.device.type == NAME
        return sharding.replicate(value.detach()).cpu() if is_on_jax else value

    return pytree.tree_map(gather, state)


_accelerators.AcceleratorRegistry.register(NAME, JaxAccelerator, description="XLA, through jax")
_strategies.StrategyRegistry.register(NAME, JaxStrategy, description="One device, jax:0")
