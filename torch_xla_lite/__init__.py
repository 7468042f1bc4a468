"""PyTorch on XLA: an unchanged training loop on device 'jax'.

    import torch, torch_xla_lite

    x = torch.randn(8, 3, device="jax", requires_grad=True)
    loss = (x.relu() ** 2).sum()        # recorded
    loss.backward()                     # recorded
    loss.item()                         # run as one graph, compiled by XLA once that pays

Importing the package checks that torch and jax have the versions it was built for, loads the
compiled bridge, names the device and connects the compiler, in this order:

    startup.preflight  versions, variables; every error ends with the command that repairs it
    _XLAC       the bridge: recorder, aliases, executable cache (csrc/)
    device      `jax` as a torch device: torch.jax, Tensor.jax(), Module.to('jax')
    tensor      Tensor.torch(), .numpy(), printing and exchange with jax; XLATensor2
    serialization  torch.save and torch.load
    torchscript torch.jit.load
    jax_calls   call_jax: jax functions as recorded ops
    torch_functions  to_jax, call_torch: torch functions in jax, by capture
    opcheck     torch.library.opcheck for ops on the device
    compile_mode  torch.compile with the default backend
    flex_attention  torch's attention with functions that change scores
    flops       counts of torch.utils.flop_counter
    compiler    turns a recorded graph into an XLA executable
    graph_breaks  compile: functions that are one graph, or an error
    graph_cuts  starts the recorded ops after each step of an optimizer
    meta_functions  keeps the first ops from importing torch._dynamo
    edited_lowerings  runs those that were edited in a checkout
    trainers    mixed precision of accelerate and transformers
    patches     what is replaced in torch, safetensors and trainers
    compilation_cache  keeps executables on disk, for other processes
    environment default_env(): where tensors are created when the code names no device

User-defined ops: custom_ops (lowerings), utils.cpp_extension (C++ code).
Ops that torch does not have: ops, which users import themselves because it takes 20 ms.
"""

import importlib
import sys
from typing import TYPE_CHECKING

from . import commands
from .startup import preflight, random_states

if commands.called(getattr(sys, "argv", ()), sys.orig_argv):
    # The command line must work even if the package does not.
    raise SystemExit(commands.main(sys.argv[1:]))

with random_states.kept():
    preflight.check()  # imports jax, in the middle of a program that may have seeded
_XLAC = preflight.load_extension()

# Only after the checks: these import torch, jax and the extension.
from . import (  # noqa: E402
    __config__,
    capture,
    debug,
    device,
    distributed,
    edited_lowerings,
    environment,
    jax_calls,
    safetensors,
    sharding,
    tensor,
    trainers,
)
from .batches import from_process_local, shard_loader  # noqa: E402
from .checkpoint import full_state_dict, load_checkpoint, save_checkpoint  # noqa: E402
from .compiler import compiler as graph_compiler  # noqa: E402
from .custom_ops import register_lowering  # noqa: E402
from .environment import Environment, default_env, disable_globally, enable_globally  # noqa: E402
from .graph_breaks import GraphBreak, compile  # noqa: E402
from .jax_calls import call_jax  # noqa: E402
from .pure_modules import pure  # noqa: E402
from .sharding import (  # noqa: E402
    full,
    fully_shard,
    replicate,
    set_mesh,
    shard,
    shard_module,
    shard_output,
)
from .tensor import XLATensor2  # noqa: E402
from .torch_functions import call_torch, jax_view, to_jax, torch_view  # noqa: E402
from .torch_hooks import (  # noqa: E402
    compile_mode,
    flex_attention,
    flops,
    graph_cuts,
    meta_functions,
    opcheck,
    parallel,
    patches,
    serialization,
    torchscript,
)

device.register()
tensor.register()
serialization.register()
torchscript.register()
opcheck.register()
compile_mode.register()
flex_attention.register()
flops.register()
graph_compiler.register()
capture.register()
jax_calls.register()
debug.register()
graph_cuts.register()
meta_functions.register()
trainers.register()
patches.apply((*parallel.PATCHES, *safetensors.PATCHES, *trainers.PATCHES))
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
    "full",
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
