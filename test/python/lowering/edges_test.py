"""Calls at the edges of lowerings, which the samples of torch's database (database_test.py) do not
reach: gradients at kinks, parameters that are not finite, numbers that must keep their digits.
"""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from comparison import check

aten = torch.ops.aten
NAN, INF = math.nan, math.inf
SPECIAL = torch.tensor([-2.0, -0.0, 0.0, 3.0, INF, -INF, NAN])
KINKS = torch.tensor([-4.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0, 25.0, NAN])
GRAD = torch.linspace(-1, 1, len(KINKS))
HALVES = KINKS.bfloat16()
ROWS = torch.tensor([[1.0, NAN, 2.0], [NAN, 1.0, 2.0], [2.0, 1.0, 0.0]])
LABELS = torch.tensor([0, 0, 0])
ANGLES = (torch.complex(GRAD, GRAD + 1), torch.complex(KINKS, 2 * KINKS - 1))
SORTED_PLACES = torch.tensor([4.0, NAN, 1.0, 2.0, NAN, -1.0, 5.0, NAN])
PLACES = torch.tensor([NAN, 2.0, -INF, INF, 5.0, 0.0])
MASK = torch.tensor([[True, True, True], [True, False, True], [False, False, False]])

Row = tuple[Any, ...]  # A name, an op, its arguments, and its keywords, if any.


def activations() -> Iterator[Row]:
    for alpha in (1e-3, -1.0, INF, NAN):
        yield f"celu by {alpha}", aten.celu, (SPECIAL, alpha)
        yield f"elu by {alpha}", aten.elu_backward, (torch.ones(7), alpha, 1, 1, False, SPECIAL)
    for name, *args in (
        *(("hardshrink", 0.5), ("hardsigmoid",), ("hardswish",), ("hardtanh", -1, 1), ("mish",)),
        *(("leaky_relu", 0.01, False), ("sigmoid",), ("silu",), ("softplus", 1.5, 20), ("tanh",)),
        *(("softshrink", 0.5), ("threshold", 0), ("gelu",)),
    ):
        yield (
            f"kinks of the slope of {name}",
            getattr(aten, f"{name}_backward"),
            (GRAD, KINKS, *args),
        )
    for eps in (None, 0.1, 1.0):
        yield f"logit {eps}", aten.logit, (torch.tensor([0.05, 0.4, 0.95, 2.0, -3.0, NAN]), eps)
    yield "halves are rounded once", aten.gelu, (HALVES,)
    for name in ("sigmoid", "tanh"):
        yield f"conjugated slope of {name}", getattr(aten, f"{name}_backward"), ANGLES
    yield "a row that is all masked", aten._masked_softmax, (torch.randn(3, 3), MASK, 1, 0)
    infinite = torch.tensor([[INF, 1.0]])
    yield "an infinite share", aten._softmax_backward_data, (-infinite, infinite, 1, torch.float32)


def losses() -> Iterator[Row]:
    certain = torch.tensor([0.0, 1.0, 0.0]), torch.tensor([1.0, 1.0, 0.0])
    yield "a certain mistake", aten.binary_cross_entropy, (*certain, None, 1)
    logits = torch.tensor([-150.0, 150.0, 1.0]), torch.tensor([1.0, 0.5, 0.0])
    yield "large logits", aten.binary_cross_entropy_with_logits, (*logits, None, None, 0)
    scores = torch.tensor([[-INF, 0.0], [-1.0, -2.0]])
    some, none = torch.tensor([-100, 1]), torch.tensor([-1, -1])
    yield "an ignored infinity", aten.nll_loss_forward, (scores, some, None, 2, -100)
    yield "only ignored samples", aten.nll_loss_forward, (scores, none, None, 1, -1)
    for p in (1, 2):
        yield f"margins of NaN, {p}", aten.multi_margin_loss, (ROWS, LABELS, p, 1.0, None, 0)
        args = (torch.ones(3), ROWS, LABELS, p, 1.0, None, 0)
        yield f"slopes of margins of NaN, {p}", aten.multi_margin_loss_backward, args


def reductions() -> Iterator[Row]:
    yield "halves are added in float32", aten.sum, (torch.full((4096,), 0.1).bfloat16(),)
    yield "the mean of halves", aten.mean, (torch.full((4096,), 0.1).half(),)
    large = torch.tensor([10000.0, 10001.0, 10002.0])
    yield "variance of large numbers", aten.var, (large, True)
    for order in (0, 1, 2, 3.5, INF, -INF):
        yield f"norm {order}", aten.linalg_vector_norm, (SPECIAL[:4], order)


def orders() -> Iterator[Row]:
    for length, right in itertools.product((0, 1, 5, 8), (False, True)):
        places = SORTED_PLACES[:length]
        for kind, found in (("unsorted", places), ("sorted", places.sort()[0])):
            name, options = f"{kind} places {length} {right}", {"right": right}
            yield name, aten.searchsorted.Tensor, (found, PLACES), options


def shapes() -> Iterator[Row]:
    for op, diagonal in itertools.product((aten.tril, aten.triu), (2**31, -(2**31), 2**40, -4)):
        yield f"{op} {diagonal}", op, (torch.ones(3, 4), diagonal)
    volume = torch.tensor([[[[[NAN, 0.5, 0], [0.5, NAN, INF], [0.5, 0.2, 0]]]]])
    args = (torch.randn(1, 3, 5, 6, 4), volume, 0, 0, True)
    yield "a volume of NaN", aten.grid_sampler_3d, args
    border = torch.tensor([[[[-1.0, 0.5], [1, 0.25], [0.5, -1], [0.25, 1], [0.5, 0.5]]]])
    image = torch.randn(1, 3, 5, 6)
    for padding in (1, 2):
        args = (torch.ones(1, 3, 1, 5), image, border, 0, padding, True, [True, True])
        yield f"slopes at the border {padding}", aten.grid_sampler_2d_backward, args
    folded = (torch.rand(2, 8, 9) < 0.2, [4, 4], [2, 2], [1, 1], [0, 0], [1, 1])
    yield "bools are folded", aten.col2im, folded


def indices() -> Iterator[Row]:
    values = torch.tensor([False, True, False])
    args = (torch.arange(4) > 1, [torch.tensor([3, 0, 1])], values, True)
    yield "bools that are accumulated", aten.index_put, args
    far, mask = torch.tensor([0, 7, -9, 2]), torch.tensor([True, False, False, True])
    args = (torch.zeros(3), mask, [far], torch.arange(1.0, 5))
    yield "masked places far away", aten._unsafe_masked_index_put_accumulate, args
    args = (torch.arange(3.0), mask, [far], 9.0)
    yield "masked elements far away", aten._unsafe_masked_index, args
    for size in (3, 200):
        yield f"{size} of the nonzeros", aten.nonzero_static, (SPECIAL > 1,), {"size": size}


CALLS: dict[str, tuple] = {
    f"{family.__name__}-{name}": call
    for family in (activations, losses, reductions, orders, shapes, indices)
    for name, *call in family()
}


@pytest.mark.few_daily(15)
@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_what_torch_gives(name: str):
    op, args, *options = CALLS[name]
    op = op if isinstance(op, torch._ops.OpOverload) else op.default
    check(op, *args, rtol=1e-4, atol=1e-4, **(options[0] if options else {}))


def test_the_slope_of_hardsigmoid_is_a_float32_number():
    check(aten.hardsigmoid_backward, GRAD.double(), KINKS.double(), rtol=1e-14, atol=0)


@pytest.mark.parametrize("nan", [NAN, -NAN])
def test_top_k_begins_with_nan_of_either_sign(nan: float):
    check(aten.topk, torch.tensor([1.0, nan, 3.0, math.copysign(nan, 1)]), 3, compare=[0])


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("correction", [0, 1, 3, 5, NAN])
def test_variance_without_degrees_of_freedom(correction: float):
    x = torch.tensor([[1 + 2j, 3 + 2j, 2 + 2j], [1, NAN, 1]])
    check(aten.var_mean.correction, x, [1], correction=correction)
    check(aten.std.correction, x.real, [1], correction=correction)


RESIZED = ["upsample_bilinear2d", "upsample_bicubic2d"]
RESIZED += ["_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"]


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("number", [NAN, INF])
@pytest.mark.parametrize("size", [[9, 7], [80, 3]])
@pytest.mark.parametrize("name", RESIZED)
def test_resizing_an_image_with_one_number_that_is_not_finite(
    name: str, size: list[int], number: float
):
    image, grad = torch.rand(1, 1, 40, 44), torch.rand(1, 1, *size)
    image[..., 3, 5], grad[..., 1, 1] = number, number
    check(getattr(aten, name), image, size, False)
    check(getattr(aten, f"{name}_backward"), grad, size, [1, 1, 40, 44], False)


RANKS = {
    **{f"upsample_nearest{rank}d": rank for rank in (1, 2, 3)},
    **{f"_upsample_nearest_exact{rank}d": rank for rank in (1, 2, 3)},
    **{"upsample_linear1d": 1, "upsample_bilinear2d": 2, "upsample_trilinear3d": 3},
    **{"upsample_bicubic2d": 2, "_upsample_bilinear2d_aa": 2, "_upsample_bicubic2d_aa": 2},
}


@pytest.mark.few_daily(4)
@pytest.mark.parametrize("name", RANKS)
@pytest.mark.parametrize("scales", [(1.1, 1.1, 1.1), (1.1, 1.3, 2.1), (1.0, 1.1, 1.1)])
def test_a_scale_that_keeps_or_doubles_a_size(name: str, scales: tuple[float, ...]):
    """Some of torch's kernels ignore it, forward, backward or both."""
    scales = scales[: RANKS[name]]
    shape = [2, 3, *(5, 6, 4)[: len(scales)]]
    size = [int(length * scale) for length, scale in zip(shape[2:], scales, strict=True)]
    corners = [] if "nearest" in name else [False]
    image, grad = torch.randn(shape), torch.randn([2, 3, *size])
    close = {"rtol": 1e-4, "atol": 1e-4}
    check(getattr(aten, name), image, size, *corners, *scales, **close)
    check(getattr(aten, f"{name}_backward"), grad, size, shape, *corners, *scales, **close)


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
