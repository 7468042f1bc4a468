"""Calls at the edges of lowerings, which the samples of torch's database (database_test.py) do not
reach: NaN and infinities, ties, overflow, nothing at all, and numbers that must keep their digits.
"""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from comparison import check, run

from torch_xla_lite.lowering.base.registry import Unsupported

aten = torch.ops.aten
NAN, INF = math.nan, math.inf
SPECIAL = torch.tensor([-2.0, -0.0, 0.0, 3.0, INF, -INF, NAN])
KINKS = torch.tensor([-4.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0, 25.0, NAN])
GRAD = torch.linspace(-1, 1, len(KINKS))
HALVES = KINKS.bfloat16()
ROWS = torch.tensor([[1.0, NAN, 2.0], [NAN, 1.0, 2.0], [2.0, 1.0, 0.0]])
LABELS = torch.tensor([0, 0, 0])
ANGLES = (torch.complex(GRAD, GRAD + 1), torch.complex(KINKS, 2 * KINKS - 1))
TIES = torch.tensor([2, 5, 2, 5, 2])
INFINITE = torch.full((2, 3), -INF)
SORTED_PLACES = torch.tensor([4.0, NAN, 1.0, 2.0, NAN, -1.0, 5.0, NAN])
PLACES = torch.tensor([NAN, 2.0, -INF, INF, 5.0, 0.0])
WRAPPING = torch.tensor([-1.5, -129.0, -33000.0, 127.9, 128.0, 255.0, 256.0, 300.0, 70000.0])
MASK = torch.tensor([[True, True, True], [True, False, True], [False, False, False]])

Row = tuple[Any, ...]  # A name, an op, its arguments, and its keywords, if any.


def activations() -> Iterator[Row]:
    for alpha in (1e-3, -1.0, INF, NAN):
        yield f"celu by {alpha}", aten.celu, (SPECIAL, alpha)
        yield f"elu by {alpha}", aten.elu_backward, (torch.ones(7), alpha, 1, 1, False, SPECIAL)
    for name, *args in (
        *(("celu", 1.3), ("elu", 1.3, 1.1, 0.9), ("hardshrink", 0.5), ("hardsigmoid",)),
        *(("hardswish",), ("hardtanh", -1, 1), ("leaky_relu", 0.01), ("mish",), ("silu",)),
        *(("softplus", 1.5, 20), ("softshrink", 0.5), ("threshold", 0.5, -7), ("gelu",)),
    ):
        yield f"kinks of {name}", getattr(aten, name), (KINKS, *args)
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
    yield "huge numbers", aten._softmax, (torch.tensor([1e30, -1e30, 1e30]), 0, False)
    yield "a row that is all masked", aten._masked_softmax, (torch.randn(3, 3), MASK, 1, 0)
    yield "a hidden row", aten._safe_softmax, (torch.stack([INFINITE[0], torch.ones(3)]), -1)
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
    yield "a large number", aten.logsumexp, (torch.tensor(1000.0), [0])
    yield "halves are added in float32", aten.sum, (torch.full((4096,), 0.1).bfloat16(),)
    yield "the mean of halves", aten.mean, (torch.full((4096,), 0.1).half(),)
    for name, op in (("max", aten.max), ("min", aten.min)):
        yield f"{name} of infinities", op.dim, (INFINITE, 1)
        yield f"{name} of NaN", op.dim, (ROWS, 1)
        yield f"{name} of a number", op.dim, (torch.tensor(3.5), 0)
    yield "the first of equals", aten.argmax, (TIES,)
    yield "the first of least", aten.argmin, (TIES,)
    for op in (aten.sum, aten.mean, aten.median, aten.nanmedian):
        yield f"{op} of nothing", op, (torch.empty(0),)
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
    rounded = torch.tensor([2**24 + 1, 3, 7]), torch.tensor([2.0**24 + 0.5])
    yield "integers that are rounded", aten.bucketize.Tensor, rounded
    for op in (aten.cumsum, aten.cumprod, aten.cummax, aten.cummin, aten.logcumsumexp):
        yield f"{op} of NaN", op, (SPECIAL, 0)
        yield f"{op} of a number", op, (torch.tensor(3.0), 0)


def shapes() -> Iterator[Row]:
    for op, diagonal in itertools.product((aten.tril, aten.triu), (2**31, -(2**31), 2**40, -4)):
        yield f"{op} {diagonal}", op, (torch.ones(3, 4), diagonal)
    x = torch.tensor([[NAN, 1.0], [INF, 2.0], [3.0, INF], [1.0, 1.0]])
    for p in (0.0, 1.0, 2.0, 3.0, INF):
        yield f"distances {p}", aten._cdist_forward, (x, x, p, None)
        yield f"distances in pairs {p}", aten._pdist_forward, (x, p)
    grid = torch.tensor([[[[NAN, 0.5], [0.5, NAN], [NAN, NAN]]]])
    volume = torch.tensor([[[[[NAN, 0.5, 0], [0.5, NAN, INF], [0.5, 0.2, 0]]]]])
    for interpolation, padding in itertools.product((0, 1), (1, 2)):
        args = (torch.randn(1, 3, 5, 6), grid, interpolation, padding, True)
        yield f"a grid of NaN {interpolation} {padding}", aten.grid_sampler_2d, args
    args = (torch.randn(1, 3, 5, 6, 4), volume, 0, 0, True)
    yield "a volume of NaN", aten.grid_sampler_3d, args
    border = torch.tensor([[[[-1.0, 0.5], [1, 0.25], [0.5, -1], [0.25, 1], [0.5, 0.5]]]])
    image = torch.randn(1, 3, 5, 6)
    for padding in (1, 2):
        args = (torch.ones(1, 3, 1, 5), image, border, 0, padding, True, [True, True])
        yield f"slopes at the border {padding}", aten.grid_sampler_2d_backward, args
    for shifts, dims in (([2, -1], [0, 1]), ([4], [])):
        yield f"rolled by {shifts}", aten.roll, (torch.arange(15).view(3, 5), shifts, dims)
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


@pytest.mark.needs("rounding")
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16], ids=str)
@pytest.mark.parametrize("source", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_floats_wrap_around_in_small_integers(source: torch.dtype, dtype: torch.dtype):
    check(aten._to_copy, WRAPPING.to(source), dtype=dtype)


def test_a_mask_cannot_be_an_index_in_a_graph():
    with pytest.raises(Unsupported):
        run(aten.index.Tensor, torch.ones(3), [SPECIAL[:3] > 0], expected=[torch.empty(3)])


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


@pytest.mark.parametrize("name", RESIZED[:2])
def test_a_scale_that_keeps_the_size_of_an_image_of_bytes(name: str):
    image = torch.randint(0, 256, (1, 3, 5, 6), dtype=torch.uint8)
    check(getattr(aten, name), image, [5, 6], False, 1.1, 1.1)


@pytest.mark.few_daily(4)
@pytest.mark.parametrize("op", [aten.tril_indices, aten.triu_indices])
@pytest.mark.parametrize("offset", [-9, -2, 0, 1, 4, 9])
@pytest.mark.parametrize(("rows", "columns"), [(3, 5), (5, 3), (1, 1), (0, 4), (4, 0)])
def test_indices_of_triangles(op: Any, rows: int, columns: int, offset: int):
    check(op, rows, columns, offset)
