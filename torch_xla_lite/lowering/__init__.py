"""Lowerings: the functions that translate aten ops to XLA.

`registry` defines what a lowering is and contains the table; every other file contains one family
of ops and registers them when it is imported here. An op that has no lowering still works: the
compiler falls back to PyTorch's decompositions and then to the ATen kernel.
"""

# Imported because they register lowerings.
from torch_xla_lite.lowering import (  # noqa: F401
    activation,
    amp,
    attention,
    binary,
    composites,
    convolution,
    ctc,
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
    recurrent_layer,
    reduction,
    scan,
    segment,
    shape,
    shapes,
    softmax,
    sort,
    special,
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
