"""Lowerings: the functions that translate aten ops to XLA.

Each file contains one family of ops, and is imported when one of them is first lowered; what they
share is in `base`, where `registry` defines what a lowering is. An op that has no lowering still
works: the compiler falls back to PyTorch's decompositions and then to the ATen kernel.
"""

# Imported because they register kernels that torch calls while a program records.
from torch_xla_lite.lowering.base.registry import (
    LOWERINGS,
    Lowering,
    LoweringError,
    Unsupported,
    WrappedNumber,
    call,
    write_view,
)
from torch_xla_lite.lowering.python_kernels import (  # noqa: F401
    composites,
    random_ops,
    recurrent_ops,
    shapes,
)

__all__ = [
    "LOWERINGS",
    "Lowering",
    "LoweringError",
    "Unsupported",
    "WrappedNumber",
    "call",
    "write_view",
]
