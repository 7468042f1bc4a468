"""Lowers ops to calls of ATen's CPU kernels from devices whose memory the CPU cannot read.

    outs = lower_by_host("aten::ormqr", words, [a, tau, other], [], [other_struct])

XLA copies the operands to the host and the results back, in the middle of the program. On a CPU
lowering/base/ffi.py does the same without copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from torch_xla_lite.lowering.base import decomposition, ffi, target
from torch_xla_lite.startup.late_jax import jax, jnp, lax


def lower_by_host(
    op_name: str,
    words: Sequence[int],
    operands: Sequence[jax.Array],
    scalars: Sequence[jax.Array],
    outs: Sequence[jax.ShapeDtypeStruct | None],
    *,
    step: int = -1,
) -> list[jax.Array | None]:
    """A call of the CPU kernel `op_name`, as by `ffi.lower_by_ffi`."""
    from torch_xla_lite import _XLAC  # Here, because the package imports this one.

    target.refuse_if_portable(op_name)
    kernel = _XLAC.aten_call(op_name, words, ffi.defined(outs))
    arrays = [*operands, *scalars]
    likes = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
    wanted = [out for out in outs if out is not None]
    packed = list(map(_packed_struct, wanted))

    def call(*values: Any) -> list[np.ndarray]:
        # Copies, because torch has no tensors that cannot be written to.
        tensors = list(map(tensor_of, map(np.array, values), likes))
        results = [np.empty(out.shape, out.dtype) for out in packed]
        outputs = list(map(tensor_of, results, wanted))
        try:
            kernel(tensors[: len(operands)], tensors[len(operands) :], outputs)
        except Exception as error:
            raise RuntimeError(ffi.failure(op_name, step, error)) from error
        return results

    called = jax.pure_callback(call, packed, *map(_packed, arrays))
    results = iter(map(_unpacked, called, wanted))
    return [None if out is None else next(results) for out in outs]


def tensor_of(array: np.ndarray, like: Any) -> torch.Tensor:
    """A tensor in the memory of an array that may be packed."""
    octets = torch.from_numpy(array.reshape(-1).view(np.uint8))
    return octets.view(decomposition.torch_dtype(like.dtype)).view(like.shape)


# jax converts the operands and results of a callback to 32 bits, unless x64 is enabled when the
# graph runs. So those of 64 bits are passed as pairs of 32.


def _is_wide(dtype: np.dtype) -> bool:
    return dtype.itemsize == 16 or (dtype.itemsize == 8 and dtype.kind != "c")


def _packed_struct(like: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    if not _is_wide(like.dtype):
        return like
    return jax.ShapeDtypeStruct((*like.shape, like.dtype.itemsize // 4), np.dtype(np.uint32))


def _packed(x: jax.Array) -> jax.Array:
    if not _is_wide(x.dtype):
        return x
    if x.dtype.kind == "c":
        x = jnp.stack([lax.real(x), lax.imag(x)], axis=-1)
    return target.split_bits(x, np.dtype(np.uint32))


def _unpacked(x: jax.Array, out: jax.ShapeDtypeStruct) -> jax.Array:
    if not _is_wide(out.dtype):
        return x
    if out.dtype.kind != "c":
        return lax.bitcast_convert_type(x, out.dtype)
    parts = lax.bitcast_convert_type(lax.reshape(x, (*out.shape, 2, 2)), np.float64)
    return lax.complex(parts[..., 0], parts[..., 1])
