"""A convolution and its two gradients, in the forms that are compiled to fast code.

    match choose(x.dtype, weight.shape, stride, positions, groups):
        case Form.PATCHES | Form.XLA as form:
            y = forward(x, weight, window, form)
            input_gradient(grad, weight, x.shape, window, form)    # and of transposed ones
            weight_gradient(x, grad, weight.shape, window, form)
        case Form.ATEN: ...                                        # convolution.py

XLA's CPU backend needs up to a thousand times as long as torch for windows larger than the image,
groups, gradients of strided ones, and up to four times for three dimensions. So torch's own kernel
is called, or the convolution is a product of matrices. GPUs have their own library: there it is
always XLA's.

`x` is `[batch, in, *spatial]`, `weight` `[out, in / groups, *kernel]`.
"""

import dataclasses
import enum
import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base import target
from torch_xla_lite.lowering.matmul import dot


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """How a kernel moves over its input; an element for each spatial dimension.

    padding: before and after; negative cuts off.
    """

    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    groups: int


class Form(enum.Enum):
    """What a convolution and its gradients are compiled to.

    XLA: the convolution of XLA.
    PATCHES: products of matrices, with patches of the input; one group. Of convolutions with one
      channel a group only the weight's gradient.
    ATEN: torch's kernel.
    """

    XLA = enum.auto()
    PATCHES = enum.auto()
    ATEN = enum.auto()


# Patches are made where the weight has at least this many times as many elements as they have. With
# fewer, torch's kernel is faster.
_LEAST_WEIGHT = 2

# torch's kernel for the weight's gradient with one channel a group takes up to 33 times as long as
# the forward one, but where the kernel has at most this many elements in a row. Products are faster
# up to this size of an image, relative to that of the kernel.
_MOST_TAPS_OF_ATEN = 3
_MOST_PRODUCTS = 16

_ATEN_DTYPES = frozenset(map(np.dtype, ("float16", "float32", "float64", jnp.bfloat16)))


def choose(
    dtype: np.dtype, weight: Sequence[int], stride: Sequence[int], positions: int, groups: int
) -> Form:
    """The form of a convolution and of both gradients.

    Args:
      weight: its shape.
      positions: how many elements a channel of the result has, in the whole batch.
    """
    if not target.is_slow_at_convolutions() or dtype not in _ATEN_DTYPES:
        return Form.XLA
    is_large = weight[0] >= _LEAST_WEIGHT * positions
    # A product of the elements that are read was faster in each case that was measured.
    skips = math.prod(weight[2:]) == 1 and max(stride) > 1
    return Form.PATCHES if groups == 1 and (is_large or skips) else Form.ATEN


def choose_for_weight_gradient(
    form: Form, weight: Sequence[int], image: Sequence[int], groups: int
) -> Form:
    """The form of the weight's gradient, where that of the convolution is `form`.

    Args:
      weight: its shape.
      image: the shape of the input.
    """
    is_slow = groups > 1 and weight[1] == 1 and weight[-1] > _MOST_TAPS_OF_ATEN
    fits = image[-1] <= _MOST_PRODUCTS * weight[-1]
    return Form.PATCHES if form is Form.ATEN and is_slow and fits else form


def forward(x: jax.Array, weight: jax.Array, window: Window, form: Form) -> jax.Array:
    """The convolution."""
    if form is Form.XLA:
        return _by_xla(x, weight, window)
    used = _used_taps(x.shape[2:], weight.shape[2:], window)
    window = _cut(window, x.shape[2:], weight.shape[2:], used)
    return _product_with_patches(x, weight[(..., *used)], window)


def input_gradient(
    grad: jax.Array, weight: jax.Array, shape: Sequence[int], window: Window, form: Form
) -> jax.Array:
    """The gradient of the input, whose shape is `shape`."""
    if form is Form.XLA:
        x = jax.ShapeDtypeStruct(shape, grad.dtype)
        return _transposed(lambda x: _by_xla(x, weight, window), x)(grad)[0]
    used = _used_taps(shape[2:], weight.shape[2:], window)
    window = _cut(window, shape[2:], weight.shape[2:], used)
    return _sum_of_patches(grad, weight[(..., *used)], shape, window)


def weight_gradient(
    x: jax.Array, grad: jax.Array, shape: Sequence[int], window: Window, form: Form
) -> jax.Array:
    """The gradient of the weight, whose shape is `shape`."""
    kernel = shape[2:]
    if form is Form.XLA:
        weight = jax.ShapeDtypeStruct(shape, grad.dtype)
        return _transposed(lambda weight: _by_xla(x, weight, window), weight)(grad)[0]
    used = _used_taps(x.shape[2:], kernel, window)
    window = _cut(window, x.shape[2:], kernel, used)
    part = (*shape[:2], *(taps.stop - taps.start for taps in used))
    product = _diagonals_of_products if window.groups > 1 else _product_of_grad_and_patches
    result = product(x, grad, part, window)
    unused = [(taps.start, size - taps.stop) for taps, size in zip(used, kernel, strict=True)]
    return _padded(result, unused)


def _transposed(
    function: Callable[[jax.Array], jax.Array], x: jax.ShapeDtypeStruct
) -> Callable[[jax.Array], tuple[jax.Array]]:
    """The transpose of a linear function of one array."""
    if target.is_portable():
        # jax may differentiate it for what the function captures. XLA drops the function itself.
        return jax.vjp(function, lax.full(x.shape, 0, x.dtype))[1]
    return jax.linear_transpose(function, x)


# --- sizes ---


def _out_sizes(sizes: Sequence[int], kernel: Sequence[int], window: Window) -> tuple[int, ...]:
    return tuple(
        (size + before + after - dilation * (taps - 1) - 1) // stride + 1
        for size, taps, stride, (before, after), dilation in zip(
            sizes, kernel, window.stride, window.padding, window.dilation, strict=True
        )
    )


def _used_taps(sizes: Sequence[int], kernel: Sequence[int], window: Window) -> tuple[slice, ...]:
    """The elements of the kernel that ever read something else than padding: of 7x7 on an image of
    2x2 these are 3x3."""
    used = []
    outs = _out_sizes(sizes, kernel, window)
    for size, taps, out, stride, (before, _), dilation in zip(
        sizes, kernel, outs, window.stride, window.padding, window.dilation, strict=True
    ):
        first = [max(0, -((dilation * tap - before) // stride)) for tap in range(taps)]
        last = [(size - 1 + before - dilation * tap) // stride for tap in range(taps)]
        inside = [tap for tap in range(taps) if first[tap] <= min(last[tap], out - 1)] or [0]
        used.append(slice(inside[0], inside[-1] + 1))
    return tuple(used)


def _cut(
    window: Window, sizes: Sequence[int], kernel: Sequence[int], used: Sequence[slice]
) -> Window:
    """The window of the used part of a kernel, with results of the same size."""
    padding = []
    outs = _out_sizes(sizes, kernel, window)
    for i, (size, out, taps) in enumerate(zip(sizes, outs, used, strict=True)):
        before = window.padding[i][0] - window.dilation[i] * taps.start
        reach = window.stride[i] * (out - 1) + window.dilation[i] * (taps.stop - taps.start - 1)
        padding.append((before, reach + 1 - size - before))
    return dataclasses.replace(window, padding=tuple(padding))


def _padded(x: jax.Array, padding: Sequence[tuple[int, int]]) -> jax.Array:
    """With zeros around the spatial dimensions; negative numbers cut off."""
    config = [(0, 0, 0), (0, 0, 0), *((before, after, 0) for before, after in padding)]
    return lax.pad(x, np.zeros((), x.dtype), config)


def _shifted(x: jax.Array, kernel: Sequence[int], window: Window) -> Iterator[jax.Array]:
    """What each element of the kernel reads, `[batch, in, *out]`."""
    out = _out_sizes(x.shape[2:], kernel, window)
    x = _padded(x, window.padding)
    for taps in itertools.product(*map(range, kernel)):
        start = [tap * dilation for tap, dilation in zip(taps, window.dilation, strict=True)]
        stop = [
            at + stride * (size - 1) + 1
            for at, stride, size in zip(start, window.stride, out, strict=True)
        ]
        yield lax.slice(x, (0, 0, *start), (*x.shape[:2], *stop), (1, 1, *window.stride))


# --- XLA's convolution ---


def _by_xla(x: jax.Array, weight: jax.Array, window: Window) -> jax.Array:
    layout = tuple(range(x.ndim))
    return lax.conv_general_dilated(
        x,
        weight,
        window.stride,
        window.padding,
        rhs_dilation=window.dilation,
        dimension_numbers=lax.ConvDimensionNumbers(layout, layout, layout),
        feature_group_count=window.groups,
        precision=target.product_precision(x.dtype),
    )


# --- products of matrices ---


def _patches(x: jax.Array, kernel: Sequence[int], window: Window) -> jax.Array:
    """`[batch, in, taps, *out]`. `window` is that of `_cut`."""
    if tuple(window.stride) != tuple(kernel) or max(window.dilation) > 1:
        return jnp.stack([*_shifted(x, kernel, window)], 2)
    # They lie side by side: a transposition, and not a slice for each element of the kernel.
    x = _padded(x, window.padding)
    out = [size // taps for size, taps in zip(x.shape[2:], kernel, strict=True)]
    x = lax.reshape(x, (*x.shape[:2], *itertools.chain(*zip(out, kernel, strict=True))))
    x = lax.transpose(x, (0, 1, *range(3, x.ndim, 2), *range(2, x.ndim, 2)))
    return lax.reshape(x, (*x.shape[:2], math.prod(kernel), *out))


def _flat(weight: jax.Array) -> jax.Array:
    """`[out, in, taps]`. Taps last, as in memory: large weights are not transposed."""
    return lax.reshape(weight, (*weight.shape[:2], math.prod(weight.shape[2:])))


def _product_with_patches(x: jax.Array, weight: jax.Array, window: Window) -> jax.Array:
    patches = _patches(x, weight.shape[2:], window)
    product = dot(_flat(weight), patches, (((1, 2), (1, 2)), ((), ())))
    return lax.transpose(product, (1, 0, *range(2, product.ndim)))


def _sum_of_patches(
    grad: jax.Array, weight: jax.Array, shape: Sequence[int], window: Window
) -> jax.Array:
    """Sums overlapping patches into the result (col2im)."""
    rank = grad.ndim - 2
    last = lax.transpose(grad, (0, *range(2, grad.ndim), 1))
    patches = dot(last, _flat(weight), (((last.ndim - 1,), (0,)), ((), ())))
    # [batch, *out, in, taps] -> [taps, batch, in, *out]
    patches = lax.transpose(patches, (rank + 2, 0, rank + 1, *range(1, rank + 1)))
    total = None
    for number, taps in enumerate(itertools.product(*map(range, weight.shape[2:]))):
        config = [(0, 0, 0), (0, 0, 0)]
        for tap, dilation, stride, (before, _), size, length in zip(
            taps,
            window.dilation,
            window.stride,
            window.padding,
            shape[2:],
            grad.shape[2:],
            strict=True,
        ):
            at = tap * dilation - before
            config.append((at, size - at - stride * (length - 1) - 1, stride - 1))
        term = lax.pad(patches[number], np.zeros((), patches.dtype), config)
        total = term if total is None else total + term
    return total


def _product_of_grad_and_patches(
    x: jax.Array, grad: jax.Array, shape: Sequence[int], window: Window
) -> jax.Array:
    patches = _patches(x, shape[2:], window)
    ours, theirs = (0, *range(2, grad.ndim)), (0, *range(3, patches.ndim))
    return lax.reshape(dot(grad, patches, ((ours, theirs), ((), ()))), shape)


def _diagonals_of_products(
    x: jax.Array, grad: jax.Array, shape: Sequence[int], window: Window
) -> jax.Array:
    """For one channel a group. Each row of the gradient is multiplied by a whole row of the image,
    and of these products only the diagonals are used: XLA adds the numbers of a sum one by one, but
    multiplies matrices fast."""
    batch, channels, *out = grad.shape
    grad = lax.reshape(grad, (batch, window.groups, channels // window.groups, *out))
    kernel = shape[2:]
    rows = Window(
        (*window.stride[:-1], 1), window.padding, (*window.dilation[:-1], 1), window.groups
    )
    ours, theirs = (0, *range(2, grad.ndim - 2)), (0, *range(3, grad.ndim - 1))
    products = [
        dot(read, grad, ((ours, theirs), ((1,), (1,))))
        for read in _shifted(x, (*kernel[:-1], 1), rows)
    ]
    # [groups, taps, width, channels / groups, out width]
    product = jnp.stack(products, 1)
    sizes = (kernel[-1], product.shape[2], out[-1])
    tap, column, at = (lax.broadcasted_iota(np.int32, sizes, dim) for dim in range(3))
    diagonals = column == at * window.stride[-1] + tap * window.dilation[-1]
    sums = dot(product, diagonals.astype(x.dtype), (((2, 4), (1, 2)), ((), ())))
    return lax.reshape(lax.transpose(sums, (0, 2, 1, 3)), shape)
