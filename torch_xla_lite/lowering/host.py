"""Lowers ops to calls of ATen's CPU kernels from devices whose memory the CPU cannot read.

    outs = lower_by_host("aten::ormqr", [a, tau, other], [other_struct])

XLA copies the operands to the host and the results back, in the middle of the program. On a CPU
lowering/ffi.py does the same without copies.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import lax

from torch_xla_lite.lowering import decomposition, registry, target


def lower_by_host(
    op_name: str, args: Sequence[Any], outs: Sequence[jax.ShapeDtypeStruct | None]
) -> list[jax.Array | None]:
    """A call of the CPU kernel `op_name`, for use while `jax.jit` traces.

    Args:
      op_name: full name, such as "aten::add.Tensor". It must not be a random op, whose numbers
        would come from the CPU's generator.
      args: in schema order, as lowerings get them.
      outs: shape and dtype per output; None for an output that torch leaves undefined.

    Returns:
      One array per element of `outs`, or None if that is None.
    """
    target.refuse_if_portable(op_name)
    op = decomposition.overload(op_name)
    signature = tuple(decomposition.describe(arg) for arg in args)
    arrays = [
        array.value if isinstance(array, registry.WrappedNumber) else array
        for array in decomposition.tensors(args)
    ]
    likes = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
    wanted = [out for out in outs if out is not None]

    def call(*values: Any) -> list[np.ndarray]:
        operands = map(_tensor, values, likes)
        positional, keywords = decomposition.bind(op, signature, operands)
        with torch.no_grad(), torch._C.DisableTorchFunction():
            results = registry.flatten(op(*positional, **keywords))
        found = [x for x, out in zip(results, outs, strict=True) if out is not None]
        return list(map(_array, found, wanted))

    called = jax.pure_callback(call, [_packed_struct(out) for out in wanted], *map(_packed, arrays))
    results = iter(map(_unpacked, called, wanted))
    return [None if out is None else next(results) for out in outs]


def _tensor(value: Any, like: jax.ShapeDtypeStruct) -> torch.Tensor:
    # A copy: a kernel may not write to XLA's memory.
    array = np.array(value).reshape(-1).view(np.uint8)
    return torch.from_numpy(array).view(decomposition.torch_dtype(like.dtype)).view(like.shape)


def _array(tensor: torch.Tensor, out: jax.ShapeDtypeStruct) -> np.ndarray:
    dense = tensor.to(decomposition.torch_dtype(out.dtype)).resolve_conj().contiguous()
    packed = _packed_struct(out)
    return dense.view(-1).view(torch.uint8).numpy().view(packed.dtype).reshape(packed.shape)


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
