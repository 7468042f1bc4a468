"""PyTorch on XLA: an unchanged training loop on device 'jax'.

    import torch, torch_xla_lite

    x = torch.randn(8, 3, device="jax", requires_grad=True)
    loss = (x.relu() ** 2).sum()        # recorded
    loss.backward()                     # recorded
    loss.item()                         # run as one graph, compiled by XLA once that pays

Importing the package checks that torch and jax have the versions it was built for, loads the
compiled bridge, names the device and connects the compiler, in this order:

    startup      versions, variables; every error ends with the command that repairs it
    _XLAC        the bridge: recorder, aliases, executable cache (csrc/)
    device       `jax` as a torch device, XLATensor2, default_env(), lowerings of users
    torch_hooks  what is registered with torch, or changed in it: torch.save, torch.jit.load ...
    compiler     turns a recorded graph into an XLA executable, and keeps it on disk
    interop      call_jax, to_jax, pure: jax functions as recorded ops, torch functions in jax
    mesh         tensors, modules and checkpoints on many devices
    debug        what was recorded and compiled, and why
    libraries    accelerate, transformers and Lightning

Not imported here, because it takes 20 ms and more: export, and ops, which torch does not have.
"""

import importlib
import sys
from typing import TYPE_CHECKING

from . import commands
from .startup import patches, preflight

if commands.called(getattr(sys, "argv", ()), sys.orig_argv):
    # The command line must work even if the package does not.
    raise SystemExit(commands.main(sys.argv[1:]))

preflight.check()
_XLAC = preflight.load_extension()

# Only after the checks: these import torch and the extension.
from . import __config__, debug, device  # noqa: E402
from .compiler import compiler as graph_compiler  # noqa: E402
from .compiler import edited_lowerings  # noqa: E402
from .compiler.graph_breaks import GraphBreak, compile  # noqa: E402
from .device import environment, tensor  # noqa: E402
from .device.custom_ops import register_lowering  # noqa: E402
from .device.environment import (  # noqa: E402
    Environment,
    default_env,
    disable_globally,
    enable_globally,
)
from .device.tensor import XLATensor2  # noqa: E402
from .interop import capture, jax_calls  # noqa: E402
from .interop.jax_calls import call_jax  # noqa: E402
from .interop.pure_modules import pure  # noqa: E402
from .interop.torch_functions import call_torch, jax_view, to_jax, torch_view  # noqa: E402
from .libraries import safetensors, trainers  # noqa: E402
from .mesh import sharding  # noqa: E402
from .mesh.base import distributed  # noqa: E402
from .mesh.batches import from_process_local, shard_loader  # noqa: E402
from .mesh.checkpoint import full_state_dict, load_checkpoint, save_checkpoint  # noqa: E402
from .mesh.sharding import (  # noqa: E402
    fully_shard,
    replicate,
    set_mesh,
    shard,
    shard_module,
    shard_output,
)
from .torch_hooks import (  # noqa: E402
    activation_checkpoints,
    compile_mode,
    data_loaders,
    flex_attention,
    flops,
    graph_cuts,
    meta_functions,
    moves,
    opcheck,
    parallel,
    serialization,
    tensor_methods,
    torchscript,
    weight_averages,
)

device.register()
tensor.register()
serialization.register()
flops.register()
graph_compiler.register()
capture.register()
jax_calls.register()
debug.register()
graph_cuts.register()
meta_functions.register()
patches.apply(
    *(moves.PATCHES, tensor_methods.PATCHES, serialization.PATCHES, torchscript.PATCHES),
    *(compile_mode.PATCHES, flex_attention.PATCHES, opcheck.PATCHES, data_loaders.PATCHES),
    *(meta_functions.PATCHES, parallel.PATCHES, safetensors.PATCHES, trainers.PATCHES),
    *(weight_averages.PATCHES, activation_checkpoints.PATCHES),
)
edited_lowerings.register()

sync = device.sync

if TYPE_CHECKING:
    from . import ops

    __version__: str
else:

    def __getattr__(name: str):
        """Imports `export` and `ops`, which take 20 ms and more, and looks `__version__` up, 1 ms,
        when they are read."""
        if name in ("export", "ops"):
            return importlib.import_module(f"{__name__}.{name}")
        if name == "__version__":
            return __config__.version()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", "export"])


__all__ = [
    "Environment",
    "GraphBreak",
    "XLATensor2",
    "__config__",
    "call_jax",
    "call_torch",
    "compile",
    "debug",
    "default_env",
    "device",
    "disable_globally",
    "distributed",
    "enable_globally",
    "environment",
    "from_process_local",
    "full_state_dict",
    "fully_shard",
    "jax_view",
    "load_checkpoint",
    "ops",
    "pure",
    "register_lowering",
    "replicate",
    "save_checkpoint",
    "set_mesh",
    "shard",
    "shard_loader",
    "shard_module",
    "shard_output",
    "sharding",
    "sync",
    "tensor",
    "to_jax",
    "torch_view",
]
