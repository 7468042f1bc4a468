"""torch.segment_reduce on device 'jax' against the CPU."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import torch_xla_lite
from test.python import tiers

REDUCTIONS = ("sum", "mean", "max", "min")
each_reduction = pytest.mark.parametrize("reduce", REDUCTIONS)


def reduced_and_gradient(
    data: torch.Tensor, reduce: str, device: str, **keywords: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """The result on a device and, each element of it counted with its number, the gradient."""
    x = data.to(device, copy=True).requires_grad_()
    keywords = {
        key: value.to(device) if isinstance(value, torch.Tensor) else value
        for key, value in keywords.items()
    }
    reduced = torch.segment_reduce(x, reduce, **keywords)
    weights = torch.arange(reduced.numel(), dtype=x.dtype).reshape(reduced.shape)
    reduced.backward(weights.to(device))
    return reduced.detach().cpu(), x.grad.cpu()


def check(data: torch.Tensor, reduce: str, **keywords: Any) -> None:
    """Asserts that both are on jax what they are on the CPU, where halves are taken as floats."""
    wide = data if data.dtype == torch.float64 else data.float()
    torch_xla_lite.sync()
    torch_xla_lite.debug.reset_metrics()
    got = reduced_and_gradient(data, reduce, "jax", **keywords)
    assert torch_xla_lite.debug.metrics()["fallbacks"] == {}
    for mine, want in zip(got, reduced_and_gradient(wide, reduce, "cpu", **keywords), strict=True):
        torch.testing.assert_close(mine, want.to(data.dtype), equal_nan=True)


@st.composite
def lengths_of_segments(draw: st.DrawFn) -> torch.Tensor:
    lengths = draw(st.lists(st.sampled_from([0, 0, 1, 2, 3, 40]), min_size=1, max_size=6))
    return torch.tensor(lengths, dtype=draw(st.sampled_from([torch.int32, torch.int64])))


@settings(max_examples=12, deadline=None)
@given(
    lengths_of_segments(),
    st.sampled_from([(), (1,), (3,), (2, 9), (1025,), (0,)]),
    st.sampled_from(REDUCTIONS),
    st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
    st.sampled_from([None, 0.0, 5.0]),
)
def test_segments_are_reduced_as_on_the_cpu(lengths, shape, reduce, dtype, initial):
    # Small integers: many are equal, and sums are exact in each dtype.
    torch.manual_seed(0)
    data = torch.randint(-2, 3, (int(lengths.sum()), *shape)).to(dtype)
    check(data, reduce, lengths=lengths, initial=initial)


@pytest.mark.few_daily(1)
@each_reduction
def test_halves_are_added_up_in_float32(reduce):
    check(torch.rand(3000, 2).half(), reduce, lengths=torch.tensor([2999, 1]))


def test_rows_outside_of_all_offsets_have_no_gradient():
    keywords = {"offsets": torch.tensor([2, 4, 5], device="jax"), "unsafe": True}
    _, gradient = reduced_and_gradient(torch.ones(8), "sum", "jax", **keywords)
    assert gradient.tolist() == [0, 0, 0, 0, 1, 0, 0, 0]


@pytest.mark.few_daily(1)
@each_reduction
def test_nan_wins(reduce):
    check(torch.tensor([1, float("nan"), 3, 4, 4, -1]), reduce, lengths=torch.tensor([3, 3]))


@pytest.mark.needs("cpu")
@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"lengths": [2, 1]}, "segments do not have 4 rows in total"),
        ({"lengths": [5, -1]}, "segments are not consecutive groups of 4 rows"),
        ({"lengths": [-1, 5]}, "segments are not consecutive groups of 4 rows"),
        ({"offsets": [0, 9]}, "segments are not consecutive groups of 4 rows"),
        ({"offsets": [0, 3, 2]}, "segments are not consecutive groups of 4 rows"),
    ],
    ids=str,
)
def test_wrong_segments_are_an_error(keywords, message):
    keywords = {key: torch.tensor(value, device="jax") for key, value in keywords.items()}
    reduced = torch.segment_reduce(torch.ones(4, device="jax"), "sum", **keywords)
    with pytest.raises(RuntimeError, match=f"aten::segment_reduce: {message}"):
        reduced.cpu()


@pytest.mark.needs("cpu")
@pytest.mark.parametrize("compile_when", ["first", "repeated"])
@pytest.mark.parametrize("offsets", [[[0, 4]], [[0, 9], [0, 4]]], ids=str)
def test_segments_of_columns_that_do_not_fit_are_an_error(offsets, compile_when):
    """torch's kernel reads other memory."""
    offsets = torch.tensor(offsets, device="jax")
    with tiers.mode(compile_when):
        reduced = torch.segment_reduce(torch.ones(2, 4).jax(), "sum", offsets=offsets, axis=1)
        with pytest.raises(RuntimeError, match=r"aten::segment_reduce.* do not fit its other"):
            reduced.cpu()
