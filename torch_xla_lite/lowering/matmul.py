"""Matrix products.

16-bit floats are multiplied without conversion and accumulated in float32; integers stay integers.
`alpha` and `beta` cost nothing if they are 1. As in torch, a tensor that is multiplied by 0 is
ignored, including its NaNs, but for the products of `baddbmm`.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base import merged_dims, target
from torch_xla_lite.lowering.base.promotion import (
    Operand,
    broadcast,
    convert,
    is_complex,
    is_number,
    opmath_dtype,
)
from torch_xla_lite.lowering.base.registry import Unsupported, lower
from torch_xla_lite.lowering.binary import scaled


def dot(
    a: jax.Array,
    b: jax.Array,
    dimension_numbers,
    dtype: np.dtype | None = None,
    is_result: bool = False,
) -> jax.Array:
    """`lax.dot_general` that accumulates 16-bit floats in float32.

    Args:
      dtype: of the result, by default that of `a`. The result of 16-bit operands is float32
        regardless; the caller rounds it at the end.
      is_result: whether the caller only rounds it; kernels that do so themselves then do.
    """
    dtype = a.dtype if dtype is None else dtype
    wanted = dtype if is_result and target.rounds_products() else opmath_dtype(dtype)
    if a.dtype == np.bool_:
        a, b = convert(a, np.dtype(np.int32)), convert(b, np.dtype(np.int32))
    return lax.dot_general(
        a,
        b,
        dimension_numbers,
        precision=target.product_precision(a.dtype),
        preferred_element_type=wanted,
    )


_MM = (((1,), (0,)), ((), ()))
_BMM = (((2,), (1,)), ((0,), (0,)))


@lower("aten::mm", refuses="b", one_dtype="self mat2", any_strides=True)
@lower("aten::mm.dtype", "aten::_int_mm")
def mm(self: jax.Array, mat2: jax.Array, out_dtype: np.dtype | None = None, *, outs) -> jax.Array:
    return dot(self, mat2, _MM, outs[0].dtype, is_result=True)


@lower("aten::bmm", refuses="b", one_dtype="self mat2", any_strides=True)
@lower("aten::bmm.dtype")
def bmm(self: jax.Array, mat2: jax.Array, out_dtype: np.dtype | None = None, *, outs) -> jax.Array:
    apart = merged_dims.all_of([self, mat2])
    if apart is None:
        return dot(self, mat2, _BMM, outs[0].dtype, is_result=True)
    batch = tuple(range(apart[0].ndim - 2))
    contracted = ((len(batch) + 1,), (len(batch),))
    product = dot(*apart, (contracted, (batch, batch)), outs[0].dtype)
    return merged_dims.merge(convert(product, outs[0].dtype))


def _blocks(total: int, offs: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The rows of each block, `[blocks, size]`, where those that are not of its group are `total`;
    its group, `[blocks]`; and how far from their rows the blocks of each group are, `[groups]`."""
    groups = len(offs)
    size = max(1, -(-total // groups))
    starts = jnp.concatenate([jnp.zeros_like(offs[:1]), offs[:-1]])
    counts = (offs - starts + size - 1) // size
    ends = counts.cumsum()
    shifts = (ends - counts) * size - starts
    block = jnp.arange(total // size + groups)
    group = (ends[:, None] <= block).sum(0).clip(max=groups - 1)
    rows = (block * size - shifts[group])[:, None] + jnp.arange(size)
    return jnp.where(rows < offs[group][:, None], rows, total), group, shifts


def _rows_of_groups(x: jax.Array, matrices: jax.Array, offs: jax.Array) -> jax.Array:
    """Each row of `x`, `[n, k]`, times the matrix of its group, `[groups, k, m]`."""
    rows, group, shifts = _blocks(len(x), offs)
    in_blocks = x.at[rows].get(mode="fill", fill_value=0)
    products = dot(in_blocks, matrices[group], _BMM).reshape(-1, matrices.shape[2])
    row = jnp.arange(len(x))
    of_row = (offs[:, None] <= row).sum(0)
    place = row + shifts[of_row.clip(max=len(offs) - 1)]
    # Rows behind the last group are zero.
    return jnp.where((of_row < len(offs))[:, None], products[place], 0)


@lower("torch_xla_lite::grouped_mm", own_kernel="grouped_mm")
def grouped_mm(self: jax.Array, mat2: jax.Array, offs: jax.Array) -> jax.Array:
    """Does not read `offs`: the shared dimension is cut into blocks of the average size of a group,
    none of which belongs to two groups. That is twice the work of one product at most."""
    if self.ndim == 3:
        return _rows_of_groups(mat2.T, self.swapaxes(1, 2), offs).T
    if mat2.ndim == 3:
        return _rows_of_groups(self, mat2, offs)
    rows, group, _ = _blocks(len(mat2), offs)
    x, y = (z.at[rows].get(mode="fill", fill_value=0) for z in (self.T, mat2))
    products = dot(x, y, (((1,), (1,)), ((0,), (0,))))
    return jax.ops.segment_sum(products, group, len(offs))


@lower("aten::mv", refuses="b", one_dtype="self vec", shape="mv")
def mv(self: jax.Array, vec: jax.Array) -> jax.Array:
    return dot(self, vec, (((1,), (0,)), ((), ())))


@lower("aten::dot", refuses="b", shape="dot")
def dot_(self: jax.Array, tensor: jax.Array) -> jax.Array:
    return dot(self, tensor, (((0,), (0,)), ((), ())))


@lower("aten::vdot", refuses="b")
def vdot(self: jax.Array, other: jax.Array) -> jax.Array:
    return dot(lax.conj(self) if self.dtype.kind == "c" else self, other, (((0,), (0,)), ((), ())))


def _plus(self: Operand, product: jax.Array, beta: Operand) -> jax.Array:
    added = broadcast(convert(self, product.dtype), product.shape)
    return lax.add(_times(added, beta), product)


def _times(x: jax.Array, factor: Operand) -> jax.Array:
    """The product; zero if the factor is, also where x is NaN."""
    if is_number(factor, 1):
        return x
    is_zero = lax.eq(convert(factor, x.dtype), np.array(0, x.dtype))
    return jnp.where(is_zero, lax.full_like(x, 0), scaled(x, factor))


@lower(
    "aten::addmm",
    one_dtype="self mat1 mat2",
    shares="self=same",
    any_strides=True,
    refused_if="misfit_addend",
)
@lower("aten::addmm.dtype", shares="self=same")
def addmm(
    self: Operand,
    mat1: jax.Array,
    mat2: jax.Array,
    out_dtype: np.dtype | None = None,
    *,
    beta: Operand = 1,
    alpha: Operand = 1,
) -> jax.Array:
    return _plus(self, _times(dot(mat1, mat2, _MM, out_dtype), alpha), beta)


@lower("aten::addmv", refuses="b", one_dtype="self mat vec", shares="self=same")
def addmv(
    self: Operand, mat: jax.Array, vec: jax.Array, *, beta: Operand = 1, alpha: Operand = 1
) -> jax.Array:
    return _plus(self, _times(mv(mat, vec), alpha), beta)


@lower("aten::baddbmm", refuses="b", shares="self=same", any_strides=True)
@lower("aten::baddbmm.dtype", shares="self=same")
def baddbmm(
    self: Operand,
    batch1: jax.Array,
    batch2: jax.Array,
    out_dtype: np.dtype | None = None,
    *,
    beta: Operand = 1,
    alpha: Operand = 1,
) -> jax.Array:
    return _plus(self, scaled(dot(batch1, batch2, _BMM, out_dtype), alpha), beta)


@lower("aten::addbmm", refuses="b", one_dtype="self batch1 batch2", shares="self=same")
def addbmm(
    self: Operand, batch1: jax.Array, batch2: jax.Array, *, beta: Operand = 1, alpha: Operand = 1
) -> jax.Array:
    product = dot(batch1, batch2, (((0, 2), (0, 1)), ((), ())))
    return _plus(self, _times(product, alpha), beta)


def linear(x: jax.Array, weight: jax.Array, bias: jax.Array | None = None) -> jax.Array:
    """`x @ weight.T + bias` over the last dimension of `x`, in the dtype of `x`."""
    product = dot(x, weight, (((x.ndim - 1,), (1,)), ((), ())), is_result=bias is None)
    if bias is not None:
        product = lax.add(product, broadcast(convert(bias, product.dtype), product.shape))
    return convert(product, x.dtype)


@lower(
    "aten::linear",
    kernel="recorder",
    refuses="b",
    one_dtype="input weight bias",
    any_strides=True,
    shape="linear",
)
def linear_(input: jax.Array, weight: jax.Array, bias: jax.Array | None = None) -> jax.Array:
    if weight.ndim == 1:
        weight, bias = weight[None], bias if bias is None else lax.reshape(bias, (1,))
        return lax.squeeze(linear(input, weight, bias), (input.ndim - 1,))
    return linear(input, weight, bias)


@lower("aten::linear_backward", own_kernel="linear_backward", shape="linear_backward")
def linear_backward(
    self: jax.Array, grad_output: jax.Array, weight: jax.Array, output_mask: list[bool], *, outs
) -> tuple[jax.Array | None, jax.Array | None, jax.Array | None]:
    if weight.ndim == 1:
        raise Unsupported("the gradient of a product with one row")
    outer = tuple(range(grad_output.ndim - 1))
    grad_input = grad_weight = grad_bias = None
    if is_complex(grad_output.dtype):
        self, weight = lax.conj(self), lax.conj(weight)
    if output_mask[0]:
        grad_input = dot(grad_output, weight, (((len(outer),), (0,)), ((), ())), is_result=True)
    # torch expects both of these outputs if one of them is requested.
    if outs[1] is not None:
        grad_weight = dot(grad_output, self, ((outer, outer), ((), ())), is_result=True)
    if outs[2] is not None:
        wide = convert(grad_output, opmath_dtype(grad_output.dtype))
        grad_bias = lax.reduce_sum(wide, outer)
    return grad_input, grad_weight, grad_bias


@lower("aten::_trilinear", refuses="b")
def trilinear(
    i1: jax.Array,
    i2: jax.Array,
    i3: jax.Array,
    expand1: list[int],
    expand2: list[int],
    expand3: list[int],
    sumdim: list[int],
    unroll_dim: int = 1,
) -> jax.Array:
    """Product of three tensors, summed over `sumdim`; `expand*`: dimensions that each lacks."""
    rank = i1.ndim + len(expand1)
    present = [
        [dim for dim in range(rank) if dim not in missing]
        for missing in (expand1, expand2, expand3)
    ]
    result = [dim for dim in range(rank) if dim not in sumdim]
    wide = opmath_dtype(i1.dtype)
    operands = [item for pair in zip((i1, i2, i3), present, strict=True) for item in pair]
    precision = target.product_precision(i1.dtype)
    return jnp.einsum(*operands, result, precision=precision, preferred_element_type=wide)
