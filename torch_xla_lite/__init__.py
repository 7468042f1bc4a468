"""PyTorch on XLA: an unchanged training loop on device 'jax'.

    import torch, torch_xla_lite

    x = torch.randn(8, 3, device="jax", requires_grad=True)
    loss = (x.relu() ** 2).sum()        # recorded
    loss.backward()                     # recorded
    loss.item()                         # compiled by XLA as one graph, and run

Importing the package checks that torch and jax are the ones it was built for, loads the compiled
bridge, names the device and connects the compiler, in this order:

    _preflight  versions, variables; every error ends in the command that mends it
    _XLAC       the bridge: recorder, aliases, executable cache (csrc/)
    device      `jax` as a torch device: torch.jax, Tensor.jax(), Module.to('jax')
    tensor      Tensor.torch(), .numpy(), printing and exchange with jax; XLATensor2
    serialization  torch.save and torch.load
    compiler    turns a recorded graph into an XLA executable
    environment default_env(): what plain `torch.randn(1)` gives

Ops of one's own: custom_ops (what they are on XLA), utils.cpp_extension (in C++).
Ops beyond torch's: ops, which is imported by who uses it (it costs 20 ms).
"""

import sys

from . import _preflight, commands

if commands.called(getattr(sys, "argv", ()), sys.orig_argv):
    # What says why the package does not work has to work without it.
    raise SystemExit(commands.main(sys.argv[1:]))

_preflight.check()
_XLAC = _preflight.load_extension()

# Only after the checks: these import torch, jax and the extension.
from . import __config__, compiler, debug, device, environment, serialization, tensor  # noqa: E402
from .custom_ops import register_lowering  # noqa: E402
from .environment import Environment, default_env, disable_globally, enable_globally  # noqa: E402
from .tensor import XLATensor2  # noqa: E402

device.register()
tensor.register()
serialization.register()
compiler.register()
debug.register()

sync = device.sync

__all__ = [
    "Environment",
    "XLATensor2",
    "__config__",
    "compiler",
    "debug",
    "default_env",
    "device",
    "disable_globally",
    "enable_globally",
    "environment",
    "register_lowering",
    "sync",
    "tensor",
]
