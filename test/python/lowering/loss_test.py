import math

import pytest
import torch
from comparison import check

aten = torch.ops.aten
reductions = pytest.mark.parametrize("reduction", [0, 1, 2])
PREDICTION, TARGET = torch.randn(4, 3), torch.randn(4, 3)


def grad_for(reduction: int, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.randn(shape) if reduction == 0 else torch.tensor(0.7)


@reductions
@pytest.mark.parametrize(
    ("name", "extra"),
    [("mse", ()), ("smooth_l1", (0.5,)), ("huber", (0.5,)), ("soft_margin", ())],
)
def test_elementwise_losses_and_their_gradients(name, extra, reduction):
    check(getattr(aten, f"{name}_loss"), PREDICTION, TARGET, reduction, *extra)
    backward = getattr(aten, f"{name}_loss_backward")
    grad = grad_for(reduction, (4, 3))
    check(backward, grad, PREDICTION, TARGET, reduction, *extra)


@reductions
@pytest.mark.parametrize("weight", [None, torch.rand(3)])
def test_binary_cross_entropy(weight, reduction):
    chance, target = torch.rand(4, 3), torch.rand(4, 3)
    chance[0, 0], target[0, 0] = 0.0, 1.0
    check(aten.binary_cross_entropy, chance, target, weight, reduction)
    grad = grad_for(reduction, (4, 3))
    args = (grad, chance, target, weight, reduction)
    check(aten.binary_cross_entropy_backward, *args, rtol=1e-4, atol=1e-4)


@reductions
@pytest.mark.parametrize("weights", [(None, None), (torch.rand(3), torch.rand(3))])
def test_binary_cross_entropy_with_logits(weights, reduction):
    logits, target = torch.randn(4, 3) * 50, torch.rand(4, 3)
    check(aten.binary_cross_entropy_with_logits, logits, target, *weights, reduction)


@reductions
@pytest.mark.parametrize("weight", [None, torch.rand(5)])
def test_nll_loss_and_its_gradient(weight, reduction):
    scores = torch.log_softmax(torch.randn(4, 5), 1)
    labels = torch.tensor([1, 4, -100, 0])
    check(aten.nll_loss_forward, scores, labels, weight, reduction, -100)
    total = aten.nll_loss_forward(scores, labels, weight, reduction, -100)[1]
    grad = grad_for(reduction, (4,))
    args = (grad, scores, labels, weight, reduction, -100, total)
    check(aten.nll_loss_backward, *args)


@reductions
def test_nll_loss_of_images_and_its_gradient(reduction):
    scores, labels = torch.randn(2, 5, 3, 3), torch.randint(0, 5, (2, 3, 3))
    check(aten.nll_loss2d_forward, scores, labels, None, reduction, 2)
    total = aten.nll_loss2d_forward(scores, labels, None, reduction, 2)[1]
    grad = grad_for(reduction, (2, 3, 3))
    args = (grad, scores, labels, None, reduction, 2, total)
    check(aten.nll_loss2d_backward, *args)


def test_nll_loss_of_one_sample():
    check(aten.nll_loss_forward, torch.randn(5), torch.tensor(3), None, 1, -100)


def test_an_ignored_sample_may_have_an_infinite_score():
    scores = torch.tensor([[-math.inf, 0.0], [-1.0, -2.0]])
    check(aten.nll_loss_forward, scores, torch.tensor([-100, 1]), None, 2, -100)


def test_the_mean_over_ignored_samples_only_is_nan():
    check(aten.nll_loss_forward, torch.randn(2, 3), torch.tensor([-1, -1]), None, 1, -1)


@pytest.mark.parametrize("p", [1, 2])
def test_multi_margin_loss(p):
    scores, labels = torch.randn(4, 3), torch.tensor([0, 2, 1, 1])
    check(aten.multi_margin_loss, scores, labels, p, 1.5, torch.rand(3), 1)
    check(aten.multi_margin_loss_backward, torch.tensor(1.0), scores, labels, p, 1.5, None, 1)


@pytest.mark.parametrize("p", [1, 2])
def test_multi_margin_loss_of_nan_and_of_scores_at_the_margin(p):
    scores = torch.tensor([[1.0, float("nan"), 2.0], [float("nan"), 1.0, 2.0], [2.0, 1.0, 0.0]])
    labels = torch.tensor([0, 0, 0])
    check(aten.multi_margin_loss, scores, labels, p, 1.0, None, 0)
    check(aten.multi_margin_loss_backward, torch.ones(3), scores, labels, p, 1.0, None, 0)
