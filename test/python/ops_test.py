"""softmax_cross_entropy against torch's cross_entropy on the CPU."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

import torch_xla_lite
from torch_xla_lite.ops import softmax_cross_entropy

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
both_devices = pytest.mark.parametrize("device", ["jax", "cpu"])


def loss_and_gradient(
    logits: torch.Tensor, labels: torch.Tensor, device: str, **keywords: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Of softmax_cross_entropy, each row's gradient multiplied by its number."""
    x = logits.to(device, copy=True).requires_grad_()
    loss = softmax_cross_entropy(x, labels.to(device), **keywords)
    loss.backward(torch.arange(labels.numel(), dtype=loss.dtype).reshape(labels.shape).to(device))
    return loss.detach().cpu(), x.grad.cpu()


def wanted(
    logits: torch.Tensor, labels: torch.Tensor, ignore_index: int = -100
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same of cross_entropy on the CPU, computed in float64."""
    x = logits.double().requires_grad_()
    loss = cross_entropy(x, labels.long(), reduction="none", ignore_index=ignore_index)
    loss.backward(torch.arange(labels.numel(), dtype=torch.float64))
    return loss.detach(), x.grad


@st.composite
def problems(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor]:
    batch, classes = draw(st.integers(0, 5)), draw(st.sampled_from([1, 2, 15, 16, 33, 1023, 1025]))
    torch.manual_seed(draw(st.integers(0, 1000)))
    logits = torch.randn(batch, classes) * draw(st.sampled_from([0.1, 3.0, 50.0]))
    labels = torch.randint(
        0, classes, (batch,), dtype=draw(st.sampled_from([torch.int32, torch.int64]))
    )
    return logits, labels.masked_fill(torch.rand(batch) < 0.2, -100)


@settings(max_examples=15, deadline=None)
@given(problems(), st.sampled_from(DTYPES))
def test_loss_and_gradient_are_those_of_cross_entropy(problem, dtype):
    logits, labels = problem[0].to(dtype), problem[1]
    loss, gradient = loss_and_gradient(logits, labels, "jax")
    want_loss, want_gradient = wanted(logits, labels)
    assert (loss.dtype, gradient.dtype) == (torch.promote_types(dtype, torch.float32), dtype)
    torch.testing.assert_close(loss, want_loss.to(loss.dtype))
    torch.testing.assert_close(gradient, want_gradient.to(dtype))


@both_devices
def test_leading_dimensions_are_kept(device):
    logits, labels = torch.randn(2, 3, 4), torch.tensor([[0, 1, 2], [3, 0, 1]])
    loss = softmax_cross_entropy(logits.to(device), labels.to(device))
    want = cross_entropy(logits.movedim(-1, 1), labels, reduction="none")
    torch.testing.assert_close(loss.cpu(), want)


@both_devices
def test_ignored_rows_are_zero(device):
    logits = torch.tensor([[math.nan, 1.0], [math.inf, 1.0], [2.0, 2.0]])
    loss, gradient = loss_and_gradient(logits, torch.tensor([7, 7, 0]), device, ignore_index=7)
    assert loss.tolist() == [0, 0, pytest.approx(math.log(2))]
    assert gradient[:2].tolist() == [[0, 0], [0, 0]]


@both_devices
def test_what_is_not_finite_stays_so(device):
    inf, nan = math.inf, math.nan
    logits = torch.tensor([[nan, 0.0], [inf, 0.0], [-inf, -inf], [-inf, 0.0], [-inf, 0.0]])
    labels = torch.tensor([1, 1, 0, 1, 0])
    loss, gradient = loss_and_gradient(logits, labels, device)
    want_loss, want_gradient = wanted(logits, labels)
    torch.testing.assert_close(loss, want_loss.float(), equal_nan=True)
    torch.testing.assert_close(gradient[3:], want_gradient[3:].float(), equal_nan=True)


@both_devices
@pytest.mark.parametrize("offset", [0.0, 1000.0, -1e6])
def test_the_gradient_is_exact_wherever_the_scores_are(device, offset):
    torch.manual_seed(0)
    logits, labels = offset + torch.randn(4, 1500), torch.tensor([0, 1, 2, 3])
    loss, gradient = loss_and_gradient(logits, labels, device)
    want_loss, want_gradient = wanted(logits, labels)
    torch.testing.assert_close(loss, want_loss.float(), rtol=1e-6, atol=0)
    torch.testing.assert_close(gradient, want_gradient.float(), rtol=1e-6, atol=1e-9)


def test_large_scores_do_not_overflow():
    # Beyond one block of the kernel, with the largest score in the second.
    logits = torch.full((1, 1500), -1e30)
    logits[0, 1400], logits[0, 1401] = 1e30, 1e30
    loss, _ = loss_and_gradient(logits, torch.tensor([1400]), "jax")
    assert loss.item() == pytest.approx(math.log(2))


@both_devices
def test_a_batch_may_be_empty(device):
    loss, gradient = loss_and_gradient(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64), device)
    assert (loss.shape, gradient.shape) == ((0,), (0, 3))


def test_both_kernels_run_within_the_graph():
    torch_xla_lite.sync()
    torch_xla_lite.debug.reset_metrics()
    loss_and_gradient(torch.randn(4, 3), torch.tensor([0, 1, 2, 0]), "jax")
    assert torch_xla_lite.debug.metrics()["fallbacks"] == {}


@pytest.mark.needs("cpu")
@pytest.mark.parametrize("label", [3, -1, 2**40])
def test_a_label_out_of_range_is_an_error_that_names_its_row(label):
    labels = torch.tensor([0, label], device="jax")
    loss = softmax_cross_entropy(torch.zeros(2, 3, device="jax"), labels)
    with pytest.raises(RuntimeError, match=rf"label {label} of row 1 is not in \[0, 3\)"):
        loss.cpu()


@pytest.mark.needs("cpu")
def test_after_a_wrong_label_the_parameters_are_as_before():
    weight = torch.ones(3, 3, device="jax")
    torch_xla_lite.sync()
    labels = torch.tensor([9, 0, 1], device="jax")
    weight += softmax_cross_entropy(weight, labels)[:, None]
    with pytest.raises(RuntimeError, match="label 9"):
        weight.cpu()
    assert (torch.ones(3, 3, device="jax") + 1).cpu().sum() == 18


@pytest.mark.parametrize(
    ("logits", "labels"),
    [
        (torch.zeros(2, 3), torch.zeros(3, dtype=torch.int64)),
        (torch.zeros(2, 3), torch.zeros(2)),
        (torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)),
        (torch.zeros(()), torch.zeros((), dtype=torch.int64)),
    ],
    ids=["sizes", "labels of floats", "logits of integers", "no classes"],
)
def test_other_operands_raise_when_called(logits, labels):
    with pytest.raises(ValueError, match="first: "):
        softmax_cross_entropy(logits, labels)
