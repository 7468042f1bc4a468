"""Lowerings: what each aten op is on XLA.

`registry` explains what a lowering is and holds the table; every other file holds one family of ops
and registers them when it is imported here. An op that has no lowering still works: the compiler
falls back to PyTorch's decompositions and then to the ATen kernel.
"""

# Imported for the lowerings that they register.
from torch_xla_lite.lowering import (  # noqa: F401
    activation,
    attention,
    binary,
    convolution,
    distance,
    embedding,
    factories,
    fft,
    foreach,
    index,
    linalg,
    loss,
    matmul,
    norm,
    optimizer,
    pool,
    random,
    recurrent,
    reduction,
    scan,
    segment,
    shape,
    shapes,
    softmax,
    sort,
    ternary,
    unary,
    upsample,
    views,
)
from torch_xla_lite.lowering.registry import (
    LOWERINGS,
    Lowering,
    LoweringError,
    Unsupported,
    WrappedNumber,
    call,
    write_view,
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
