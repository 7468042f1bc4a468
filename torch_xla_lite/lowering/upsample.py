"""Resizes images (nearest, linear, cubic, in one to three dimensions) and samples them at points.

Each dimension is resized separately, by a product with a sparse matrix, a constant where the sizes
are known. Nearest gathers rows instead of multiplying. Gradients are transposes.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torch_xla_lite.lowering.base.promotion import are_known, opmath
from torch_xla_lite.lowering.base.registry import Unsupported, lower
from torch_xla_lite.lowering.factories import evenly_spaced
from torch_xla_lite.lowering.matmul import dot
from torch_xla_lite.lowering.sparse_matrix import SparseMatrix, banded

Scale = float | None
# Of images, their new sizes, scales and whether corners are aligned.
Resize = Callable[[jax.Array, Sequence[int], list[Scale], bool], jax.Array]
# Of size, new size, whether corners are aligned, and scale.
Matrix = Callable[[int, int, bool, Scale], SparseMatrix]


def _ratio(size: int, count: int, align_corners: bool, scale: Scale) -> float:
    """Distance in the input per step in the output."""
    if align_corners:
        return (size - 1) / jax.core.max_dim(count - 1, 1)
    return 1 / scale if scale else size / count


def _nearest_rows(size: int, count: int, scale: Scale, exact: bool) -> np.ndarray | jax.Array:
    """A constant: a gather that computes its indices takes 1.3 times as long. It does so where
    sizes vary."""
    numpy = _numpy(size, count)
    ratio = numpy.float32(1 / scale if scale else size / count)
    place = (numpy.arange(count, dtype=np.float32) + np.float32(0.5 if exact else 0)) * ratio
    return numpy.minimum(numpy.floor(place).astype(np.int32), size - 1)


def _nearest(x: jax.Array, counts: Sequence[int], scales: list[Scale], exact: bool) -> jax.Array:
    for i, (count, scale) in enumerate(zip(counts, scales, strict=True)):
        dim = i + 2
        size = x.shape[dim]
        rows = _nearest_rows(size, count, scale, exact)
        factor = count // size if isinstance(rows, np.ndarray) and count % size == 0 else 0
        if factor and (rows == np.arange(count) // factor).all():
            shape = (*x.shape[: dim + 1], factor, *x.shape[dim + 1 :])
            dims = [d for d in range(len(shape)) if d != dim + 1]
            spread = lax.broadcast_in_dim(x, shape, dims)
            x = lax.reshape(spread, (*x.shape[:dim], count, *x.shape[dim + 1 :]))
        else:
            x = jnp.take(x, rows, axis=dim, mode="clip")
    return x


def _places(size: int, count: int, align_corners: bool, scale: Scale) -> np.ndarray:
    ratio = _ratio(size, count, align_corners, scale)
    steps = _numpy(size, count).arange(count)
    return steps * ratio if align_corners else (steps + 0.5) * ratio - 0.5


def _numpy(*sizes: int) -> Any:
    """What computes with sizes: jax if they vary."""
    return np if are_known(*sizes) else jnp


@dataclasses.dataclass(frozen=True)
class _Gathered:
    """A matrix whose size varies. Each row has one entry of each element of the lists."""

    columns: Sequence[jax.Array]
    weights: Sequence[jax.Array]

    def times(self, x: jax.Array, dim: int) -> jax.Array:
        others = [d for d in range(x.ndim) if d != dim]
        parts = (
            jnp.take(x, column, axis=dim, mode="clip")
            * jnp.expand_dims(weight, others).astype(x.dtype)
            for column, weight in zip(self.columns, self.weights, strict=True)
        )
        return functools.reduce(lax.add, parts)


def _matrix(
    columns: list[np.ndarray], weights: list[np.ndarray], size: int
) -> SparseMatrix | _Gathered:
    """Each row has one entry of each element of the lists."""
    if not isinstance(columns[0], np.ndarray):
        return _Gathered(columns, weights)
    count = len(columns[0])
    rows = np.tile(np.arange(count), len(columns))
    return SparseMatrix(rows, np.concatenate(columns), np.concatenate(weights), (count, size))


def _linear_matrix(size: int, count: int, align_corners: bool, scale: Scale) -> SparseMatrix:
    numpy = _numpy(size, count)
    place = numpy.maximum(_places(size, count, align_corners, scale), 0)
    low = numpy.minimum(numpy.floor(place).astype(np.int64), size - 1)
    high = numpy.minimum(low + 1, size - 1)
    weight = place - low
    return _matrix([low, high], [1 - weight, weight], size)


def _cubic_weights(t: np.ndarray, a: float = -0.75) -> list[np.ndarray]:
    def near(x: np.ndarray) -> np.ndarray:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: np.ndarray) -> np.ndarray:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _cubic_matrix(size: int, count: int, align_corners: bool, scale: Scale) -> SparseMatrix:
    numpy = _numpy(size, count)
    place = _places(size, count, align_corners, scale)
    low = numpy.floor(place).astype(np.int64)
    columns = [numpy.clip(low - 1 + offset, 0, size - 1) for offset in range(4)]
    return _matrix(columns, _cubic_weights(place - low), size)


def _antialiased_matrix(kernel: Callable[[np.ndarray], np.ndarray], radius: float) -> Matrix:
    """The matrix of a filter that widens if the image shrinks, so that every pixel contributes."""

    def matrix(size: int, count: int, align_corners: bool, scale: Scale) -> SparseMatrix:
        ratio = _ratio(size, count, align_corners, scale)
        filter_scale = max(ratio, 1.0)
        center = ratio * (np.arange(count) + 0.5)
        first = np.maximum((center - radius * filter_scale + 0.5).astype(np.int64), 0)
        last = np.minimum((center + radius * filter_scale + 0.5).astype(np.int64), size)
        place = np.arange(size)
        weights = kernel((place + 0.5 - center[:, None]) / filter_scale)
        weights *= (place >= first[:, None]) & (place < last[:, None])
        return banded(first, last, weights / weights.sum(axis=1, keepdims=True))

    return matrix


def _tent(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - np.abs(x), 0)


def _cubic_kernel(x: np.ndarray) -> np.ndarray:
    x = np.abs(x)
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _by_matrices(matrix: Matrix) -> tuple[Resize, Resize]:
    def forward(x, counts, scales, align_corners):
        for dim, (count, scale) in enumerate(zip(counts, scales, strict=True), start=2):
            if x.shape[dim] != count or scale not in (None, 1.0):
                x = matrix(x.shape[dim], count, align_corners, scale).times(x, dim)
        return x

    def gradient(grad, sizes, scales, align_corners):
        for dim, (size, scale) in enumerate(zip(sizes, scales, strict=True), start=2):
            count = grad.shape[dim]
            if size != count or scale not in (None, 1.0):
                grad = matrix(size, count, align_corners, scale).transposed().times(grad, dim)
        return grad

    return forward, gradient


def _by_gathering(exact: bool) -> tuple[Resize, Resize]:
    def forward(x, counts, scales, align_corners):
        return _nearest(x, counts, scales, exact)

    def gradient(grad, sizes, scales, align_corners):
        image = jax.ShapeDtypeStruct((*grad.shape[:2], *sizes), grad.dtype)
        resize = functools.partial(_nearest, counts=grad.shape[2:], scales=scales, exact=exact)
        return jax.linear_transpose(resize, image)(grad)[0]

    return forward, gradient


def _bicubic() -> tuple[Resize, Resize]:
    forward, gradient = _by_matrices(_cubic_matrix)

    def gradient_or_copy(grad, sizes, scales, align_corners):
        is_same = tuple(sizes) == grad.shape[2:]
        return grad if is_same else gradient(grad, sizes, scales, align_corners)

    return forward, gradient_or_copy


# torch's kernels ignore the scale where a size is multiplied by these, forward and backward.
_Multiples = tuple[Sequence[int], Sequence[int]]


def _register(
    name: str, rank: int, resize: tuple[Resize, Resize], has_corners: bool, unscaled: _Multiples
) -> None:
    """Registers forward and backward of an op. Arguments: sizes, align_corners if any, scales."""
    resized, gradient = resize

    def options(sizes, counts, rest, multiples) -> tuple[list[Scale], bool]:
        given = list(rest[1:] if has_corners else rest)
        scales = [
            None if count in [size * multiple for multiple in multiples] else scale
            for size, count, scale in zip(sizes, counts, given or [None] * rank, strict=True)
        ]
        return scales, has_corners and rest[0]

    def forward(self, output_size, *rest):
        # Bytes have kernels of their own.
        multiples = [1] if has_corners and self.dtype == np.uint8 else unscaled[0]
        chosen = options(self.shape[2:], output_size, rest, multiples)
        return resized(opmath(self), output_size, *chosen)

    def backward(grad_output, output_size, input_size, *rest):
        chosen = options(input_size[2:], output_size, rest, unscaled[1])
        return gradient(opmath(grad_output), input_size[2:], *chosen)

    refuses, last = "biuc" if has_corners else "bic", rank == 2
    lower(f"aten::{name}", refuses=refuses, elements="self", channels_last=last)(forward)
    lower(f"aten::{name}_backward", elements="grad_output", channels_last=last)(backward)


for _rank in (1, 2, 3):
    _unscaled = [1, 2] if _rank == 2 else [], [1, 2]
    _register(f"upsample_nearest{_rank}d", _rank, _by_gathering(exact=False), False, _unscaled)
    _register(f"_upsample_nearest_exact{_rank}d", _rank, _by_gathering(True), False, ([], []))
for _rank, _name in enumerate(("linear1d", "bilinear2d", "trilinear3d"), start=1):
    _register(f"upsample_{_name}", _rank, _by_matrices(_linear_matrix), True, ([1], [1]))
_register("upsample_bicubic2d", 2, _bicubic(), True, ([], []))
for _name, _kernel, _radius in (("bilinear2d", _tent, 1), ("bicubic2d", _cubic_kernel, 2)):
    _resize = _by_matrices(_antialiased_matrix(_kernel, _radius))
    _register(f"_upsample_{_name}_aa", 2, _resize, True, ([1], []))


# Sampling at the points of a grid with coordinates in [-1, 1].

_BILINEAR, _NEAREST, _BICUBIC = range(3)
_ZEROS, _BORDER, _REFLECTION = range(3)


def _unnormalised(place: jax.Array, size: int, align_corners: bool) -> jax.Array:
    if align_corners:
        return (place + 1) / 2 * (size - 1)
    return ((place + 1) * size - 1) / 2


def _reflected(place: jax.Array, size: int, align_corners: bool) -> jax.Array:
    low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
    span = high - low
    if span <= 0:
        return jnp.zeros_like(place)
    distance = jnp.abs(place - low)
    extra = jnp.mod(distance, span)
    even = jnp.mod(jnp.floor(distance / span), 2) == 0
    return jnp.where(even, extra + low, span - extra + low)


def _bounded(place: jax.Array, size: int, padding_mode: int, align_corners: bool) -> jax.Array:
    """A position inside of the image, as far as the padding has one. NaN is at the left border."""
    if padding_mode == _ZEROS:
        return place
    if padding_mode == _REFLECTION:
        place = _reflected(place, size, align_corners)
    inside = (place > 0) & (place < size - 1)
    # As in torch, the gradient is 0 also at the border itself.
    border = lax.stop_gradient(jnp.clip(jnp.where(jnp.isnan(place), 0, place), 0, size - 1))
    return jnp.where(inside, place, border)


def _texel(image: jax.Array, places: list[jax.Array]) -> jax.Array:
    """Elements of [channels, *spatial] at integer positions; zero outside."""
    inside = jnp.ones(places[0].shape, bool)
    index = []
    for place, size in zip(places, image.shape[1:], strict=True):
        inside &= (place >= 0) & (place <= size - 1)
        index.append(jnp.clip(place, 0, size - 1).astype(np.int32))
    return jnp.where(inside, image[(slice(None), *index)], 0)


def _sample(
    image: jax.Array, grid: jax.Array, interpolation: int, padding_mode: int, align_corners: bool
) -> jax.Array:
    """Samples an image [channels, *spatial] at a grid [*places, rank] (x first)."""
    rank = grid.shape[-1]
    sizes = image.shape[1:]
    raw = [_unnormalised(grid[..., rank - 1 - i], sizes[i], align_corners) for i in range(rank)]
    if interpolation == _BICUBIC:
        if rank == 3:
            raise Unsupported("64 elements for each place: XLA takes minutes for the gradient")
        return _sample_cubic(image, raw, padding_mode, align_corners)
    if rank == 3 and padding_mode == _ZEROS:
        # Of volumes, torch leaves out what is outside; images have NaN at positions without end.
        raw = [jnp.where(jnp.isfinite(place), place, -2) for place in raw]
    places = [_bounded(p, n, padding_mode, align_corners) for p, n in zip(raw, sizes, strict=True)]
    if interpolation == _NEAREST:
        return _texel(image, [jnp.round(place) for place in places])
    lows = [lax.stop_gradient(jnp.floor(place)) for place in places]
    total = 0.0
    for corner in np.ndindex(*(2,) * rank):
        weight = 1.0
        for i, bit in enumerate(corner):
            part = places[i] - lows[i]
            weight = weight * (part if bit else 1 - part)
        total = total + weight * _texel(
            image, [low + bit for low, bit in zip(lows, corner, strict=True)]
        )
    return total


def _sample_cubic(
    image: jax.Array, places: list[jax.Array], padding_mode: int, align_corners: bool
) -> jax.Array:
    lows = [lax.stop_gradient(jnp.floor(place)) for place in places]
    weights = [_cubic_weights(place - low) for place, low in zip(places, lows, strict=True)]
    total = 0.0
    for i in range(4):
        for j in range(4):
            corner = [
                _bounded(low - 1 + step, size, padding_mode, align_corners)
                for low, step, size in zip(lows, (i, j), image.shape[1:], strict=True)
            ]
            total = total + weights[0][i] * weights[1][j] * _texel(image, corner)
    return total


@lower("aten::grid_sampler_3d", refuses="biuc", one_dtype="input grid")
@lower("aten::grid_sampler_2d", refuses="biuc", one_dtype="input grid", shape="grid")
@lower("aten::_grid_sampler_2d_cpu_fallback")
def grid_sampler(
    input: jax.Array,
    grid: jax.Array,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> jax.Array:
    one = functools.partial(
        _sample,
        interpolation=interpolation_mode,
        padding_mode=padding_mode,
        align_corners=align_corners,
    )
    return jax.vmap(one)(opmath(input), opmath(grid))


@lower("aten::grid_sampler_2d_backward", "aten::grid_sampler_3d_backward")
def grid_sampler_backward(
    grad_output: jax.Array,
    input: jax.Array,
    grid: jax.Array,
    *options: Any,
) -> tuple[jax.Array | None, jax.Array | None]:
    *modes, output_mask = options
    _, pull = jax.vjp(lambda image, places: grid_sampler(image, places, *modes), input, grid)
    grad_input, grad_grid = pull(opmath(grad_output))
    return grad_input if output_mask[0] else None, grad_grid


@lower("aten::affine_grid_generator")
def affine_grid_generator(theta: jax.Array, size: list[int], align_corners: bool) -> jax.Array:
    """The grid `[batch, *places, rank]` of the affine maps `theta`, `[batch, rank, rank + 1]`."""
    x = opmath(theta)
    lengths = size[2:]
    axes = []
    for length in lengths:
        line = evenly_spaced(-1, 1, length, x.dtype) if length > 1 else jnp.zeros(1, x.dtype)
        axes.append(line if align_corners else line * (length - 1) / length)
    # Coordinates of the grid are x first.
    places = jnp.meshgrid(*axes, indexing="ij")[::-1]
    base = jnp.stack([*places, jnp.ones(lengths, x.dtype)], axis=-1)
    rank = len(lengths)
    product = dot(x, base, (((2,), (rank,)), ((), ())))
    return jnp.moveaxis(product, 1, -1)
