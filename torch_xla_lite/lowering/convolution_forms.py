"""A convolution and its two gradients, in the forms that XLA compiles to fast code.

    y = forward(x, weight, window)
    input_gradient(grad, weight, x.shape, window)        # also the forward of a transposed one
    weight_gradient(x, grad, weight.shape, window)

XLA's CPU backend is fast for a convolution with many positions and one group, in two dimensions. It
needs up to a thousand times as long as torch for others: windows larger than the image, groups,
gradients of strided ones. These become products of matrices or sums. `_form` chooses; its constants
come from scripts/bench_convolutions.py. GPUs have their own library: there it is always XLA's.

`x` is `[batch, in, *spatial]`, `weight` `[out, in / groups, *kernel]`. Results of 16-bit operands
are float32; the caller rounds them.
"""

import dataclasses
import enum
import functools
import itertools
import math
from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering import target
from torch_xla_lite.lowering.matmul import dot
from torch_xla_lite.lowering.promotion import opmath


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
    """What a convolution is compiled to.

    XLA: the convolution of XLA.
    PATCHES: one product of matrices, of the weights and the patches of the input.
    TAPS: a sum over the elements of the kernel, each a product of arrays; one channel a group.
    """

    XLA = enum.auto()
    PATCHES = enum.auto()
    TAPS = enum.auto()


# Patches are made where the weight has at least this many times as many elements as they have. With
# fewer, copying each element into several patches takes longer than transposing the weight, as
# XLA's convolution does.
_LEAST_WEIGHT = 0.5


def _form(
    weight: jax.Array | jax.ShapeDtypeStruct,
    image: Sequence[int],
    out: jax.Array | jax.ShapeDtypeStruct,
    groups: int,
) -> Form:
    """The fastest form on a CPU, of the convolution and of both gradients.

    Args:
      image: the spatial dimensions of the input.
      out: the result of the convolution, or its gradient.
    """
    channels, kernel = weight.shape[1], weight.shape[2:]
    if groups > 1 and channels == 1:
        return Form.TAPS
    # XLA has fast code for one group, and for kernels that fit into the image.
    fits = all(taps <= size for taps, size in zip(kernel, image, strict=True))
    if groups > 1 or math.prod(kernel) == 1 or not fits:
        return Form.PATCHES
    positions = out.shape[0] * math.prod(out.shape[2:])
    is_large = weight.shape[0] >= _LEAST_WEIGHT * positions
    return Form.PATCHES if is_large else Form.XLA


def forward(x: jax.Array, weight: jax.Array, window: Window) -> jax.Array:
    """The convolution."""
    if not target.is_slow_at_convolutions():
        return _by_xla(x, weight, window)
    weight = opmath(weight)
    used = _used_taps(x.shape[2:], weight.shape[2:], window)
    window = _cut(window, x.shape[2:], weight.shape[2:], used)
    return _forward(opmath(x), weight[(..., *used)], window)


def input_gradient(
    grad: jax.Array, weight: jax.Array, shape: Sequence[int], window: Window
) -> jax.Array:
    """The gradient of the input, whose shape is `shape`."""
    if not target.is_slow_at_convolutions():
        x = jax.ShapeDtypeStruct(shape, grad.dtype)
        return jax.linear_transpose(lambda x: _by_xla(x, weight, window), x)(grad)[0]
    used = _used_taps(shape[2:], weight.shape[2:], window)
    window = _cut(window, shape[2:], weight.shape[2:], used)
    grad, weight = opmath(grad), opmath(weight)[(..., *used)]
    if _form(weight, shape[2:], grad, window.groups) is Form.PATCHES:
        return _sum_of_patches(grad, weight, shape, window)
    return _interleaved_phases(grad, weight, shape, window)


def weight_gradient(
    x: jax.Array, grad: jax.Array, shape: Sequence[int], window: Window
) -> jax.Array:
    """The gradient of the weight, whose shape is `shape`."""
    kernel = shape[2:]
    if not target.is_slow_at_convolutions():
        weight = jax.ShapeDtypeStruct(shape, grad.dtype)
        return jax.linear_transpose(lambda weight: _by_xla(x, weight, window), weight)(grad)[0]
    used = _used_taps(x.shape[2:], kernel, window)
    window = _cut(window, x.shape[2:], kernel, used)
    x, grad = opmath(x), opmath(grad)
    part = (*shape[:2], *(taps.stop - taps.start for taps in used))
    weight = jax.ShapeDtypeStruct(part, grad.dtype)
    match _form(weight, x.shape[2:], grad, window.groups):
        case Form.TAPS:
            result = _sum_for_each_tap(x, grad, part, window)
        case Form.PATCHES:
            result = _product_of_grad_and_patches(x, grad, part, window)
        case Form.XLA:
            convolution = functools.partial(_by_xla_in_2d, x, window=window)
            result = jax.linear_transpose(convolution, weight)(grad)[0]
    unused = [(taps.start, size - taps.stop) for taps, size in zip(used, kernel, strict=True)]
    return _padded(result, unused)


def _forward(x: jax.Array, weight: jax.Array, window: Window) -> jax.Array:
    sizes = _out_sizes(x.shape[2:], weight.shape[2:], window)
    out = jax.ShapeDtypeStruct((x.shape[0], weight.shape[0], *sizes), x.dtype)
    match _form(weight, x.shape[2:], out, window.groups):
        case Form.TAPS:
            return _sum_of_taps(x, weight, window)
        case Form.PATCHES:
            return _product_with_patches(x, weight, window)
        case Form.XLA:
            return _by_xla_in_2d(x, weight, window)


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
    )


def _by_xla_in_2d(x: jax.Array, weight: jax.Array, window: Window) -> jax.Array:
    """Three dimensions are several times slower than two: they become a sum over the planes of the
    kernel. Negative padding is slow, too."""
    x = _padded(x, [(min(0, before), min(0, after)) for before, after in window.padding])
    padding = tuple((max(0, before), max(0, after)) for before, after in window.padding)
    window = dataclasses.replace(window, padding=padding)
    if x.ndim != 5:
        return _by_xla(x, weight, window)
    depth = Window(
        (window.stride[0], 1, 1), (padding[0], (0, 0), (0, 0)), (window.dilation[0], 1, 1), 1
    )
    plane = Window(window.stride[1:], padding[1:], window.dilation[1:], window.groups)
    terms = []
    for number, read in enumerate(_shifted(x, (weight.shape[2], 1, 1), depth)):
        images = lax.transpose(read, (0, 2, 1, 3, 4))
        images = lax.reshape(
            images, (read.shape[0] * read.shape[2], read.shape[1], *read.shape[3:])
        )
        terms.append(_by_xla(images, weight[:, :, number], plane))
    total = functools.reduce(lax.add, terms)
    total = total.reshape(x.shape[0], -1, *total.shape[1:])
    return lax.transpose(total, (0, 2, 1, 3, 4))


# --- products of matrices: [groups] or nothing, then rows and columns ---


def _patches(x: jax.Array, kernel: Sequence[int], window: Window) -> jax.Array:
    """`[batch, groups, in / groups, taps, *out]`."""
    patches = jnp.stack([*_shifted(x, kernel, window)], 2)
    batch, channels, *rest = patches.shape
    return lax.reshape(patches, (batch, window.groups, channels // window.groups, *rest))


def _by_groups(weight: jax.Array, groups: int) -> jax.Array:
    """`[groups, out / groups, in / groups, taps]`. Taps last, as in memory: large weights are not
    transposed."""
    out, channels, *kernel = weight.shape
    return lax.reshape(weight, (groups, out // groups, channels, math.prod(kernel)))


def _product_with_patches(x: jax.Array, weight: jax.Array, window: Window) -> jax.Array:
    patches = _patches(x, weight.shape[2:], window)
    grouped = _by_groups(weight, window.groups)
    product = dot(grouped, patches, (((2, 3), (2, 3)), ((0,), (1,))))
    product = lax.transpose(product, (2, 0, 1, *range(3, product.ndim)))
    return lax.reshape(product, (x.shape[0], weight.shape[0], *product.shape[3:]))


def _sum_of_patches(
    grad: jax.Array, weight: jax.Array, shape: Sequence[int], window: Window
) -> jax.Array:
    """Sums overlapping patches into the result (col2im)."""
    batch, channels, *out = grad.shape
    grad = lax.reshape(grad, (batch, window.groups, channels // window.groups, *out))
    last = lax.transpose(grad, (1, 0, *range(3, grad.ndim), 2))
    grouped = _by_groups(weight, window.groups)
    patches = dot(last, grouped, (((last.ndim - 1,), (1,)), ((0,), (0,))))
    # [groups, batch, *out, in / groups, taps] -> [taps, batch, groups, in / groups, *out]
    spatial = range(2, 2 + len(out))
    patches = lax.transpose(patches, (patches.ndim - 1, 1, 0, patches.ndim - 2, *spatial))
    patches = lax.reshape(patches, (patches.shape[0], *shape[:2], *out))
    total = None
    for number, taps in enumerate(itertools.product(*map(range, weight.shape[2:]))):
        config = [(0, 0, 0), (0, 0, 0)]
        for tap, dilation, stride, (before, _), size, length in zip(
            taps, window.dilation, window.stride, window.padding, shape[2:], out, strict=True
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
    batch, channels, *out = grad.shape
    grad = lax.reshape(grad, (batch, window.groups, channels // window.groups, *out))
    ours, theirs = (0, *range(3, grad.ndim)), (0, *range(4, patches.ndim))
    return lax.reshape(dot(grad, patches, ((ours, theirs), ((1,), (1,)))), shape)


# --- one channel a group ---


def _sum_of_taps(x: jax.Array, weight: jax.Array, window: Window) -> jax.Array:
    """A loop over the images of the batch: otherwise XLA computes the sum again for each use of the
    result."""
    sizes = _out_sizes(x.shape[2:], weight.shape[2:], window)
    grouped = lax.reshape(
        weight, (window.groups, weight.shape[0] // window.groups, *weight.shape[2:])
    )
    inside = dataclasses.replace(window, padding=((0, 0),) * len(sizes))

    def of_image(image: jax.Array) -> jax.Array:
        terms = []
        shifted = _shifted(image[None], weight.shape[2:], inside)
        for taps in np.ndindex(weight.shape[2:]):
            factors = grouped[(..., *taps)]
            terms.append(
                next(shifted)[0, :, None] * lax.expand_dims(factors, range(2, 2 + len(sizes)))
            )
        return functools.reduce(lax.add, terms)

    result = lax.map(of_image, _padded(x, window.padding))
    return lax.reshape(result, (x.shape[0], weight.shape[0], *sizes))


# Up to which size of an image, relative to that of the kernel, products of matrices sum faster.
_MOST_PRODUCTS = 16


def _sum_for_each_tap(
    x: jax.Array, grad: jax.Array, shape: Sequence[int], window: Window
) -> jax.Array:
    batch, channels, *out = grad.shape
    grad = lax.reshape(grad, (batch, window.groups, channels // window.groups, *out))
    kernel = shape[2:]
    spatial = tuple(range(3, grad.ndim))
    if x.shape[-1] > _MOST_PRODUCTS * kernel[-1]:
        sums = [
            lax.reduce_sum(read[:, :, None] * grad, (0, *spatial))
            for read in _shifted(x, kernel, window)
        ]
        return lax.reshape(jnp.stack(sums, -1), shape)
    # XLA adds the numbers of a sum one by one, but multiplies matrices fast. So each row of the
    # gradient is multiplied by a whole row of the image, and of these products only the diagonals
    # are used.
    rows = Window(
        (*window.stride[:-1], 1), window.padding, (*window.dilation[:-1], 1), window.groups
    )
    contracted = (0, *spatial[:-1])
    products = [
        dot(
            read, grad, ((tuple(max(0, axis - 1) for axis in contracted), contracted), ((1,), (1,)))
        )
        for read in _shifted(x, (*kernel[:-1], 1), rows)
    ]
    # [groups, taps, width, channels / groups, out width]
    product = jnp.stack(products, 1)
    sizes = (kernel[-1], product.shape[2], out[-1])
    tap, column, at = (lax.broadcasted_iota(np.int32, sizes, dim) for dim in range(3))
    diagonals = column == at * window.stride[-1] + tap * window.dilation[-1]
    sums = dot(product, diagonals.astype(x.dtype), (((2, 4), (1, 2)), ((), ())))
    return lax.reshape(lax.transpose(sums, (0, 2, 1, 3)), shape)


# --- gradients of the input as convolutions ---


def _interleaved_phases(
    grad: jax.Array, weight: jax.Array, shape: Sequence[int], window: Window
) -> jax.Array:
    """One convolution of the gradient for each place of an element relative to the stride."""
    strides = window.stride
    # [out, in / groups] -> [in, out / groups], the kernel mirrored.
    groups, (out, channels, *kernel) = window.groups, weight.shape
    weight = lax.reshape(weight, (groups, out // groups, channels, *kernel))
    weight = lax.transpose(weight, (0, 2, 1, *range(3, weight.ndim)))
    weight = lax.reshape(weight, (groups * channels, out // groups, *kernel))
    weight = lax.rev(weight, range(2, weight.ndim))
    counts = [-(-size // stride) for size, stride in zip(shape[2:], strides, strict=True)]
    phases = []
    for places in itertools.product(*map(range, strides)):
        dims = [
            _phase(
                place + window.padding[i][0],
                strides[i],
                window.dilation[i],
                kernel[i],
                grad.shape[2 + i],
                counts[i],
            )
            for i, place in enumerate(places)
        ]
        if None in dims:
            phases.append(lax.full((*shape[:2], *counts), 0, grad.dtype))
            continue
        taps, padding, dilation = zip(*dims, strict=True)
        part = Window((1,) * len(strides), padding, dilation, groups)
        phases.append(forward(grad, weight[(..., *taps)], part))
    if len(phases) == 1:
        return phases[0]
    rank = len(strides)
    result = lax.reshape(jnp.stack(phases, -1), (*shape[:2], *counts, *strides))
    order = [axis for i in range(rank) for axis in (2 + i, 2 + rank + i)]
    result = lax.transpose(result, (0, 1, *order))
    sizes = [count * stride for count, stride in zip(counts, strides, strict=True)]
    return lax.slice(lax.reshape(result, (*shape[:2], *sizes)), (0,) * len(shape), shape)


def _phase(
    at: int, stride: int, dilation: int, kernel: int, size: int, count: int
) -> tuple[slice, tuple[int, int], int] | None:
    """Which taps of the mirrored kernel reach the elements `at`, `at + stride`, ... of the padded
    input, and the padding and dilation with which they read the gradient; None if none does.

    Args:
      size: of the gradient.
      count: of these elements.
    """
    taps = [tap for tap in range(kernel) if (dilation * tap - at) % stride == 0]
    if not taps:
        return None
    # Tap t of element `at + stride * i` reads the gradient at `i + (at - dilation * t) / stride`.
    first, last = ((at - dilation * tap) // stride for tap in (taps[-1], taps[0]))
    common = math.gcd(stride, dilation)
    mirrored = slice(kernel - 1 - taps[-1], kernel - taps[0], stride // common)
    return mirrored, (-first, last + count - size), dilation // common
