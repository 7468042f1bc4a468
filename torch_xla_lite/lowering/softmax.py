"""Softmax and log-softmax, forward and backward.

Computed in float32 for float16 and bfloat16. `half_to_float` needs no code: `outs` has the
resulting dtype.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base.promotion import canonical_dims, convert, opmath, opmath_dtype
from torch_xla_lite.lowering.base.registry import lower
from torch_xla_lite.lowering.binary import to_bool


def _along(x: jax.Array, dim: int) -> tuple[int, ...]:
    return canonical_dims(dim, x.ndim)


def _spread(x: jax.Array, dims: tuple[int, ...], shape: tuple[int, ...]) -> jax.Array:
    return lax.broadcast_in_dim(x, shape, [i for i in range(len(shape)) if i not in dims])


def _shifted(x: jax.Array, dims: tuple[int, ...]) -> jax.Array:
    """`x` minus its largest element: exp cannot overflow, and the result is the same."""
    return lax.sub(x, _spread(lax.reduce_max(x, dims), dims, x.shape))


def softmax_along(x: jax.Array, dim: int) -> jax.Array:
    """Softmax of an array that is float32 or wider."""
    dims = _along(x, dim)
    if x.size == 0:
        return x
    numerator = lax.exp(_shifted(x, dims))
    return lax.div(numerator, _spread(lax.reduce_sum(numerator, dims), dims, x.shape))


@lower("aten::_softmax", refuses="biuc")
def softmax(self: jax.Array, dim: int, half_to_float: object = False) -> jax.Array:
    return softmax_along(opmath(self), dim)


@lower("aten::_safe_softmax", refuses="biuc", shape="softmax")
def safe_softmax(self: jax.Array, dim: int, dtype: np.dtype | None = None, *, outs) -> jax.Array:
    """Softmax that is 0 instead of NaN for a row of -inf (a query without keys)."""
    x = convert(self, opmath_dtype(outs[0].dtype))
    dims = _along(x, dim)
    if x.size == 0:
        return x
    top = lax.reduce_max(x, dims)
    nothing = _spread(lax.eq(top, lax.full_like(top, -np.inf)), dims, x.shape)
    return jnp.where(nothing, lax.full_like(x, 0), softmax_along(x, dim))


@lower("aten::_log_softmax", refuses="biuc")
def log_softmax(self: jax.Array, dim: int, half_to_float: object = False) -> jax.Array:
    x = opmath(self)
    dims = _along(x, dim)
    if x.size == 0:
        return x
    shifted = _shifted(x, dims)
    total = lax.log(lax.reduce_sum(lax.exp(shifted), dims))
    return lax.sub(shifted, _spread(total, dims, x.shape))


@lower("aten::_softmax_backward_data", refuses="biu")
def softmax_backward(
    grad_output: jax.Array, output: jax.Array, dim: int, input_dtype: np.dtype
) -> jax.Array:
    grad, y = opmath(grad_output), opmath(output)
    dims = _along(y, dim)
    product = lax.mul(grad, y)
    total = lax.reduce_sum(product, dims) if dims else product
    return lax.mul(y, lax.sub(grad, _spread(total, dims, y.shape)))


@lower("aten::_log_softmax_backward_data")
def log_softmax_backward(
    grad_output: jax.Array, output: jax.Array, dim: int, input_dtype: np.dtype
) -> jax.Array:
    grad, y = opmath(grad_output), opmath(output)
    dims = _along(y, dim)
    total = lax.reduce_sum(grad, dims) if dims else grad
    return lax.sub(grad, lax.mul(lax.exp(y), _spread(total, dims, y.shape)))


@lower("aten::_masked_softmax")
def masked_softmax(
    self: jax.Array, mask: jax.Array, dim: int | None = None, mask_type: int | None = None
) -> jax.Array:
    """Softmax of the elements for which `mask` is not True; NaN where there are none.

    Shape of the mask by `mask_type`: 0 [L, L]; 1 [B, L], for keys; 2 or None that of `self`.
    """
    x = opmath(self)
    # A float mask hides elements where it is not zero, usually -inf.
    mask = to_bool(mask)
    if mask_type == 1 and mask.ndim == 2 and x.ndim == 4:
        mask = lax.broadcast_in_dim(mask, x.shape, (0, 3))
    else:
        mask = jnp.broadcast_to(mask, x.shape)
    hidden = lax.select(mask, lax.full_like(x, -np.inf), x)
    return softmax_along(hidden, -1 if dim is None else dim)


@lower("aten::_masked_softmax_backward")
def masked_softmax_backward(
    grad_output: jax.Array, output: jax.Array, mask: jax.Array, dim: int | None = None
) -> jax.Array:
    return softmax_backward(grad_output, output, -1 if dim is None else dim, None)
