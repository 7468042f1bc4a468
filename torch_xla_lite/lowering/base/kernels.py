"""Calls this project's own kernels as XLA custom calls, on the CPU and on CUDA.

    loss, normalizer = softmax_cross_entropy(logits, labels, ignore_index=-100)

The functions are for use while `jax.jit` traces, under `jax.enable_x64(True)` where an operand has
64 bits. They have no jax gradient; use the `_backward` functions for that. csrc/kernels/*.h define
the custom calls, and what happens if labels are invalid.

The CPU implementations are in lib/libtorch_xla_lite_ffi.so. lib/libtorch_xla_lite_cuda.so is opened
only where jax has a CUDA device.
"""

from __future__ import annotations

import ctypes
import functools
import pathlib
from collections.abc import Sequence

import numpy as np

from torch_xla_lite.lowering.base import target
from torch_xla_lite.lowering.base.mesh import partitioned
from torch_xla_lite.startup.late_jax import jax

_LIBRARIES = pathlib.Path(__file__).parents[2] / "lib"
_CPU = _LIBRARIES / "libtorch_xla_lite_ffi.so"
_CUDA = _LIBRARIES / "libtorch_xla_lite_cuda.so"

# Name of each custom call, without "torch_xla_lite.", and its symbol in both libraries.
_SYMBOLS = {
    "softmax_cross_entropy": "TorchXlaLiteSoftmaxCrossEntropy",
    "softmax_cross_entropy_backward": "TorchXlaLiteSoftmaxCrossEntropyBackward",
}


@functools.cache
def register() -> None:
    """Registers the kernels with XLA, those for CUDA only if jax has a CUDA device.

    Raises:
      RuntimeError: there is a CUDA device, but no CUDA library.
      OSError: a library cannot be loaded.
    """
    register_library(_CPU, "cpu")
    if _has_cuda():
        register_cuda(_CUDA)


def register_cuda(library: pathlib.Path) -> None:
    """Registers the CUDA kernels with XLA. Needs no GPU: CUDA is first used by a launch."""
    if not library.exists():
        raise RuntimeError(
            f"jax has a CUDA device, but torch_xla_lite was built without CUDA: {library} is "
            "missing.\n"
            "Build it again:  USE_CUDA=1 python setup.py develop\n"
            "Or keep to the CPU:  export JAX_PLATFORMS=cpu"
        )
    register_library(library, "CUDA")


def register_library(library: pathlib.Path, platform: str) -> None:
    """Registers all kernels of one library for one of XLA's platforms."""
    handlers = ctypes.CDLL(str(library))
    for name, symbol in _SYMBOLS.items():
        capsule = jax.ffi.pycapsule(getattr(handlers, symbol))
        jax.ffi.register_ffi_target(f"torch_xla_lite.{name}", capsule, platform=platform)


def _has_cuda() -> bool:
    # jax's backends are running when a graph is compiled, so this starts none.
    try:
        return bool(jax.devices("cuda"))
    except RuntimeError:
        return False


def softmax_cross_entropy(
    logits: jax.Array,
    labels: jax.Array,
    *,
    ignore_index: int,
    op: str = "torch_xla_lite.softmax_cross_entropy",
) -> tuple[jax.Array, jax.Array]:
    """Softmax cross-entropy of each row, without the softmax being stored.

    Args:
      logits: `[batch, classes]`; float32, float64, bfloat16 or float16, computed in float32 at
        least.
      labels: `[batch]`, int32 or int64, each in `[0, classes)` or `ignore_index`.
      ignore_index: the label of rows whose loss is 0, whatever their logits.
      op: what errors call the operation.

    Returns:
      (loss, normalizer), float64 for float64 and otherwise float32: `[batch]` in nats, and
      `[batch, 2]` for the gradient: the largest score of each row and the sum of
      exp(score - largest).

    Raises:
      jax.errors.JaxRuntimeError: when the program runs on a CPU, for a label out of range. On CUDA
        the loss of that row is NaN.

    Source: aten::_log_softmax followed by aten::nll_loss_forward with reduction "none".
    """
    target.refuse_if_portable(op)
    register()
    dtype = _accumulator(logits.dtype)
    loss = jax.ShapeDtypeStruct(labels.shape, dtype)
    normalizer = jax.ShapeDtypeStruct((*labels.shape, 2), dtype)

    def kernel(
        operands: Sequence[jax.Array], outs: Sequence[jax.ShapeDtypeStruct]
    ) -> Sequence[jax.Array]:
        call = jax.ffi.ffi_call("torch_xla_lite.softmax_cross_entropy", tuple(outs))
        return call(*operands, op=op, ignore_index=np.int64(ignore_index))

    takes, gives = ["n c", "n"], ["n", "n t"]
    results = partitioned(
        kernel, [logits, labels], [loss, normalizer], takes=takes, gives=gives, along="n"
    )
    return results[0], results[1]


def softmax_cross_entropy_backward(
    grad: jax.Array,
    logits: jax.Array,
    labels: jax.Array,
    normalizer: jax.Array,
    *,
    ignore_index: int,
    op: str = "torch_xla_lite.softmax_cross_entropy_backward",
) -> jax.Array:
    """The gradient of `softmax_cross_entropy` for its logits: `[batch, classes]`, their dtype.

    Args:
      grad: `[batch]`, the gradient of each row's loss; of the dtype of the loss.
      logits, labels, ignore_index: as passed to softmax_cross_entropy.
      normalizer: `[batch, 2]`, as returned by softmax_cross_entropy.
      op: what errors call the operation.
    """
    target.refuse_if_portable(op)
    register()
    like = jax.ShapeDtypeStruct(logits.shape, logits.dtype)

    def kernel(
        operands: Sequence[jax.Array], outs: Sequence[jax.ShapeDtypeStruct]
    ) -> Sequence[jax.Array]:
        call = jax.ffi.ffi_call("torch_xla_lite.softmax_cross_entropy_backward", outs[0])
        return [call(*operands, op=op, ignore_index=np.int64(ignore_index))]

    operands, takes = [grad, logits, labels, normalizer], ["n", "n c", "n", "n t"]
    return partitioned(kernel, operands, [like], takes=takes, gives=["n c"], along="n")[0]


def _accumulator(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)
