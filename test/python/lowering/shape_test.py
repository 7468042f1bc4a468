import itertools
import math

import jax
import numpy as np
import pytest
import torch
from comparison import check

from torch_xla_lite.lowering import factories, views

aten = torch.ops.aten
X = torch.randn(4, 5, 6)


def test_joining():
    check(aten.cat, [X, torch.randn(4, 2, 6)], 1)
    check(aten.cat, [torch.empty(0), X], 0)
    check(aten.cat, [torch.ones(2), torch.ones(2, dtype=torch.int64)])
    check(aten.stack, [X, X], -1)
    check(aten.block_diag, [torch.randn(2, 3), torch.randn(4), torch.randn(1, 2)])


def test_repeating_and_reordering():
    check(aten.repeat, X, [2, 1, 3, 1])
    check(aten.repeat_interleave.Tensor, torch.tensor([1, 0, 3]))
    check(aten.flip, X, [0, -1])
    check(aten.roll, X, [2, -1], [0, 2])
    check(aten.roll, X, [3])
    check(aten.rot90, X, 3, [0, 2])


@pytest.mark.parametrize("diagonal", [-2, 0, 1])
def test_triangles(diagonal):
    check(aten.tril, X, diagonal)
    check(aten.triu, X, diagonal)
    check(aten.diag_embed, X, diagonal, 0, 2)


def test_pixels_and_channels():
    check(aten.pixel_shuffle, torch.randn(2, 8, 3, 4), 2)
    check(aten.pixel_unshuffle, torch.randn(2, 2, 6, 4), 2)
    check(aten.channel_shuffle, torch.randn(2, 6, 3, 3), 3)


def test_padding_with_a_number_may_cut_off():
    check(aten.constant_pad_nd, X, [1, 2, -1, 3], 2.5)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("mode", ["reflection", "replication"])
def test_padding_with_what_is_there_and_its_gradient(mode, rank):
    x, padding = torch.randn(2, 3, *(5,) * rank), [1, 2] * rank
    check(getattr(aten, f"{mode}_pad{rank}d"), x, padding)
    grad = torch.randn(2, 3, *(8,) * rank)
    check(getattr(aten, f"{mode}_pad{rank}d_backward"), grad, x, padding)


def test_images_and_columns():
    window = ([2, 3], [2, 1], [1, 0], [2, 1])
    check(aten.im2col, torch.randn(2, 3, 7, 8), *window)
    check(aten.col2im, torch.randn(2, 18, 16), [5, 6], [2, 3], [1, 1], [0, 0], [1, 1])


def test_factories():
    check(aten.arange.start_step, 1, 10, 3)
    check(aten.arange.start_step, 0.5, 2, 0.25)
    check(aten.linspace, 0, 1, 7)
    check(aten.linspace, 3, -4, 6, dtype=torch.int64)
    check(aten.logspace, 0, 2, 5)
    start, end = torch.tensor(-1.5), torch.tensor(4)
    check(aten.linspace.Tensor_Tensor, start, end, 6)
    check(aten.linspace.Tensor_Scalar, start, 4, 6, dtype=torch.int64)
    check(aten.linspace.Scalar_Tensor, 7, start, 1)
    check(aten.logspace.Tensor_Scalar, start, 4, 5, dtype=torch.int32)
    check(aten.logspace.Tensor_Tensor, end, start, 5, 2.0)
    check(aten.eye.m, 3, 4)
    check(aten.full, [2, 3], 2.5)
    check(aten.full_like, X, 7, dtype=torch.int32)
    check(aten.tril_indices, 4, 3, 1)


def test_windows_and_frequencies():
    check(aten.hann_window, 9)
    check(aten.hann_window.periodic, 9, False, dtype=torch.float64)
    check(aten.hamming_window.periodic_alpha, 8, True, 0.3)
    check(aten.kaiser_window.beta, 7, True, 9.5)
    check(aten.fft_fftfreq, 6, 0.5)
    for op, number, spacing in itertools.product(
        (aten.fft_fftfreq, aten.fft_rfftfreq), (0, 1, 4), (0.0, -0.0, 1.0)
    ):
        check(op, number, spacing)


@pytest.mark.parametrize("dtype", [torch.int32, torch.bool, torch.float16, torch.complex64])
def test_conversion(dtype):
    check(aten._to_copy, X, dtype=dtype)
    check(aten.copy, torch.empty(4, 5, 6, dtype=dtype), X[:1])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16], ids=str)
@pytest.mark.parametrize("source", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_floats_wrap_around_in_small_integers(source, dtype):
    x = torch.tensor([-1.5, -129.0, -33000.0, 127.9, 128.0, 255.0, 256.0, 300.0, 70000.0])
    check(aten._to_copy, x.to(source), dtype=dtype)


def test_complex_parts():
    z = torch.complex(X, X + 1)
    check(aten.view_as_real, z)
    check(aten.view_as_complex, torch.randn(3, 2))
    check(aten.complex, X, torch.ones(6))
    check(aten.polar, X.abs(), X)


@pytest.mark.parametrize("size", [[10, 12], [7, 3], [5, 6], [1, 1]])
def test_resizing_and_its_gradient(size):
    image = torch.randn(2, 3, 5, 6)
    grad = torch.randn(2, 3, *size)
    close = {"rtol": 1e-4, "atol": 1e-4}
    for name in ("upsample_nearest2d", "_upsample_nearest_exact2d"):
        check(getattr(aten, name), image, size)
        check(getattr(aten, f"{name}_backward"), grad, size, [2, 3, 5, 6], **close)
    for name in ("upsample_bilinear2d", "upsample_bicubic2d"):
        for corners in (False, True):
            check(getattr(aten, name), image, size, corners, **close)
            backward = getattr(aten, f"{name}_backward")
            check(backward, grad, size, [2, 3, 5, 6], corners, **close)


@pytest.mark.parametrize("number", [math.nan, math.inf])
@pytest.mark.parametrize("size", [[9, 7], [80, 3]])
@pytest.mark.parametrize(
    "name",
    [
        "upsample_bilinear2d",
        "upsample_bicubic2d",
        "_upsample_bilinear2d_aa",
        "_upsample_bicubic2d_aa",
    ],
)
def test_resizing_an_image_with_one_number_that_is_not_finite(name, size, number):
    image, grad = torch.rand(1, 1, 40, 44), torch.rand(1, 1, *size)
    image[..., 3, 5], grad[..., 1, 1] = number, number
    check(getattr(aten, name), image, size, False)
    check(getattr(aten, f"{name}_backward"), grad, size, [1, 1, 40, 44], False)


@pytest.mark.parametrize("size", [[10, 12], [3, 2]])
@pytest.mark.parametrize("name", ["_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"])
def test_resizing_against_aliasing(name, size):
    image, grad = torch.randn(2, 3, 7, 8), torch.randn(2, 3, *size)
    close = {"rtol": 1e-4, "atol": 1e-4}
    check(getattr(aten, name), image, size, False, **close)
    check(getattr(aten, f"{name}_backward"), grad, size, [2, 3, 7, 8], False, **close)


RANKS = {
    **{f"upsample_nearest{rank}d": rank for rank in (1, 2, 3)},
    **{f"_upsample_nearest_exact{rank}d": rank for rank in (1, 2, 3)},
    **{"upsample_linear1d": 1, "upsample_bilinear2d": 2, "upsample_trilinear3d": 3},
    **{"upsample_bicubic2d": 2, "_upsample_bilinear2d_aa": 2, "_upsample_bicubic2d_aa": 2},
}


@pytest.mark.parametrize("scales", [(1.1, 1.1, 1.1), (1.1, 1.3, 2.1), (1.0, 1.1, 1.1)])
@pytest.mark.parametrize("name", RANKS)
def test_a_scale_that_keeps_or_doubles_a_size(name, scales):
    """Some of torch's kernels ignore it, forward, backward or both."""
    scales = scales[: RANKS[name]]
    shape = [2, 3, *(5, 6, 4)[: len(scales)]]
    size = [int(length * scale) for length, scale in zip(shape[2:], scales, strict=True)]
    corners = [] if "nearest" in name else [False]
    image, grad = torch.randn(shape), torch.randn([2, 3, *size])
    close = {"rtol": 1e-4, "atol": 1e-4}
    check(getattr(aten, name), image, size, *corners, *scales, **close)
    check(getattr(aten, f"{name}_backward"), grad, size, shape, *corners, *scales, **close)


@pytest.mark.parametrize("name", ["upsample_bilinear2d", "upsample_bicubic2d"])
def test_a_scale_that_keeps_the_size_of_an_image_of_bytes(name):
    image = torch.randint(0, 256, (1, 3, 5, 6), dtype=torch.uint8)
    check(getattr(aten, name), image, [5, 6], False, 1.1, 1.1)


def test_bools_are_folded():
    check(aten.col2im, torch.rand(2, 8, 9) < 0.2, [4, 4], [2, 2], [1, 1], [0, 0], [1, 1])


@pytest.mark.parametrize("size", [[2, 3, 4, 5], [2, 3, 1, 5], [2, 3, 4, 3, 2]])
@pytest.mark.parametrize("align_corners", [False, True])
def test_a_grid_from_an_affine_map(align_corners, size):
    rank = len(size) - 2
    check(aten.affine_grid_generator, torch.randn(2, rank, rank + 1), size, align_corners)


@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("interpolation", [0, 1, 2])
def test_sampling_at_a_grid(interpolation, padding):
    image, grid = torch.randn(2, 3, 5, 6), torch.rand(2, 4, 5, 2) * 2.6 - 1.3
    args = (image, grid, interpolation, padding, False)
    check(aten.grid_sampler_2d, *args, rtol=1e-3, atol=1e-3)


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("padding", [1, 2])
@pytest.mark.parametrize("interpolation", [0, 1])
def test_a_nan_in_a_grid_is_at_the_border(interpolation, padding):
    grid = torch.tensor([[[[NAN, 0.5], [0.5, NAN], [NAN, NAN]]]])
    check(aten.grid_sampler_2d, torch.randn(1, 3, 5, 6), grid, interpolation, padding, True)


@pytest.mark.parametrize("padding", [1, 2])
def test_the_gradient_of_a_grid_is_zero_at_the_border(padding):
    grid = torch.tensor([[[[-1.0, 0.5], [1, 0.25], [0.5, -1], [0.25, 1], [0.5, 0.5]]]])
    args = (torch.ones(1, 3, 1, 5), torch.randn(1, 3, 5, 6), grid, 0, padding, True, [True, True])
    check(aten.grid_sampler_2d_backward, *args, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("interpolation", [0, 1])
def test_a_nan_in_a_grid_of_a_volume_is_outside(interpolation):
    grid = torch.tensor([[[[[NAN, 0.5, 0], [0.5, NAN, INF], [0.5, 0.2, 0]]]]])
    check(aten.grid_sampler_3d, torch.randn(1, 3, 5, 6, 4), grid, interpolation, 0, True)


def test_distances():
    a, b = torch.randn(2, 4, 3), torch.randn(2, 5, 3)
    for p in (0.0, 1.0, 2.0, 3.0, float("inf")):
        check(aten._cdist_forward, a, b, p, None, rtol=1e-4, atol=1e-4)
    distance = aten._cdist_forward(a, b, 2.0, None)
    check(aten._cdist_backward, torch.randn(2, 4, 5), a, b, 2.0, distance, rtol=1e-4, atol=1e-4)
    check(aten._pdist_forward, a[0], 2.0, rtol=1e-4, atol=1e-4)
    a[0, 1, 2] = torch.nan
    check(aten._pdist_forward, a[0], 0.0)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, INF])
def test_distances_of_nan_and_infinity(p):
    x = torch.tensor([[NAN, 1.0], [INF, 2.0], [3.0, INF], [1.0, 1.0]])
    check(aten._cdist_forward, x, x, p, None)
    check(aten._pdist_forward, x, p)


def struct(*sizes):
    return jax.ShapeDtypeStruct(sizes, np.float32)


PROGRAMS = {
    "as_strided": (lambda x: views.as_strided(x, [300, 300], [3, 1], 0), struct(1500)),
    "as_strided_scatter": (
        lambda x, y: views.as_strided_scatter(x, y, [300, 300], [300, 1]),
        struct(90000),
        struct(300, 300),
    ),
    "unfold": (lambda x: views.unfold(x, 0, 300, 1), struct(1000)),
    "arange": (lambda: factories.arange_end(9000, outs=[struct(9000)]),),
    "linspace": (lambda: factories.linspace(0, 1, 9000, outs=[struct(9000)]),),
    "logspace": (lambda: factories.logspace(0, 1, 9000, outs=[struct(9000)]),),
    "eye": (lambda: factories.eye(300, outs=[struct(300, 300)]),),
    "tril_indices": (lambda: factories.tril_indices(300, 300, outs=[struct(2, 45150)]),),
    "triu_indices": (lambda: factories.triu_indices(300, 300, outs=[struct(2, 45150)]),),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_of_a_program_has_no_tables(name):
    function, *operands = PROGRAMS[name]
    with jax.enable_x64(True):
        text = jax.jit(function).lower(*operands).as_text()
    assert max(len(line) for line in text.splitlines()) < 500


@pytest.mark.parametrize("op", [aten.tril_indices, aten.triu_indices])
@pytest.mark.parametrize("offset", [-9, -2, 0, 1, 4, 9])
@pytest.mark.parametrize(("rows", "columns"), [(3, 5), (5, 3), (1, 1), (0, 4), (4, 0)])
def test_indices_of_triangles(op, rows, columns, offset):
    check(op, rows, columns, offset)


@pytest.mark.parametrize("diagonal", [2**31, -(2**31), 2**40, -4])
@pytest.mark.parametrize("op", [aten.tril, aten.triu])
def test_a_diagonal_far_outside_of_a_matrix(op, diagonal):
    check(op, torch.ones(3, 4), diagonal)
