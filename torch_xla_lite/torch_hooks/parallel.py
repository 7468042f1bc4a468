"""torch's own ways to use several devices, on jax: its devices are a mesh (docs/mesh.md).

torch.nn.DataParallel(model)                          # calls the model, as on the CPU
torch.nn.parallel.DistributedDataParallel(model)      # an error that says what to do
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..device.autoload import NAME
from ..startup.patches import Patch


def _calling_the_module(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def init_without_replicas(
        self: Any, module: torch.nn.Module, *args: Any, **options: Any
    ) -> None:
        if not (_is_on_jax(module) or torch._utils._get_available_device_type() == NAME):
            init(self, module, *args, **options)
            return
        torch.nn.Module.__init__(self)
        self.module, self.device_ids = module, []

    return init_without_replicas


def _refusing(name: str, remedy: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes functions of a module that raise if it is on jax."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def refuse(*args: Any, **options: Any) -> Any:
            given = [x for x in (*args, *options.values()) if isinstance(x, torch.nn.Module)]
            if any(_is_on_jax(module) for module in given):
                raise RuntimeError(
                    f"{name} connects devices by torch.distributed, which has none for {NAME}: "
                    "here they are a mesh, and one program (docs/mesh.md).\n"
                    f"Spread the model over it:  torch_xla_lite.set_mesh(mesh, batch='data'); "
                    f"torch_xla_lite.{remedy}"
                )
            return original(*args, **options)

        return refuse

    return make


def _naming_the_flag(make_mesh: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(make_mesh)
    def make(axis_shapes: Sequence[int], *args: Any, **options: Any) -> Any:
        try:
            return make_mesh(axis_shapes, *args, **options)
        except ValueError as error:
            if "Number of devices" not in str(error):
                raise
            raise ValueError(
                f"{error}\nFor tests, give a CPU more:  "
                f"export XLA_FLAGS=--xla_force_host_platform_device_count={math.prod(axis_shapes)}"
            ) from None

    return make


def _is_on_jax(module: torch.nn.Module) -> bool:
    # What is made first is in __init__ a module without parameters yet.
    parameters = module.__dict__.get("_parameters") is not None and module.parameters()
    return any(parameter.device.type == NAME for parameter in parameters or ())


PATCHES = (
    Patch(
        "torch.nn.parallel.data_parallel",
        "DataParallel.__init__",
        "divides a batch among devices by a function that builds of torch for CPUs lack",
        _calling_the_module,
    ),
    Patch(
        "torch.nn.parallel.distributed",
        "DistributedDataParallel.__init__",
        "raises an error without a remedy",
        _refusing("DistributedDataParallel", "shard_module(model)"),
    ),
    Patch(
        "torch.distributed.fsdp.fully_sharded_data_parallel",
        "FullyShardedDataParallel.__init__",
        "raises an error without a remedy",
        _refusing("FullyShardedDataParallel", "fully_shard(model)"),
    ),
    Patch(
        "torch.distributed.fsdp._fully_shard._fully_shard",
        "fully_shard",
        "raises an error without a remedy",
        _refusing("fully_shard of torch", "fully_shard(model)"),
    ),
    Patch("jax", "make_mesh", "does not say how a CPU has more devices", _naming_the_flag),
)
