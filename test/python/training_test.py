"""Ten training steps on jax agree with torch's CPU kernels; nothing falls back or recompiles."""

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector

import torch_xla_lite
from bazel.pytest_plugin import mostly_nightly
from torch_xla_lite.examples.models import MODELS

STEPS = 10

OPTIMIZERS = {
    "sgd": lambda p, **o: torch.optim.SGD(p, lr=1e-2, **o),
    "momentum": lambda p, **o: torch.optim.SGD(p, lr=1e-2, momentum=0.9, weight_decay=1e-4, **o),
    "adam": lambda p, **o: torch.optim.Adam(p, lr=3e-4, **o),
    "adamw": lambda p, **o: torch.optim.AdamW(p, lr=3e-4, **o),
}

# Each model, optimizer and form is in one cell of each day; the other cells are nightly.
DAILY = {
    ("mlp", "sgd", False),
    ("mlp", "adamw", True),
    ("convnet", "momentum", True),
    ("transformer", "adam", False),
}
CELLS = [
    pytest.param(
        case,
        optimizer,
        foreach,
        id=f"{case.name}-{optimizer}-{'foreach' if foreach else 'loop'}",
        marks=() if (case.name, optimizer, foreach) in DAILY else pytest.mark.nightly,
    )
    for case in MODELS
    for optimizer in OPTIMIZERS
    for foreach in (False, True)
]


def train(
    case,
    make_optimizer,
    device,
    foreach,
    *,
    dropout=0.0,
    dtype=torch.float32,
    on_step=lambda step: None,
):
    """Losses of STEPS steps and the model after them."""
    torch.manual_seed(0)
    model = case.make(dropout).to(device, dtype)
    inputs, targets = (part.to(device) for part in case.batch())
    inputs = inputs.to(dtype) if inputs.is_floating_point() else inputs
    optimizer = make_optimizer(model.parameters(), foreach=foreach)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        on_step(step)
    return losses, model


# In float64, because training is not continuous: where two elements of a pooling window are equal
# but for a rounding error of float32, the gradient of one processor goes to another element than
# that of the next one, and Adam divides a gradient that is all rounding error by its size.
@pytest.mark.few_daily(1)
@pytest.mark.parametrize(("case", "optimizer", "foreach"), CELLS)
def test_training_agrees_with_the_cpu(case, optimizer, foreach):
    optimizer = OPTIMIZERS[optimizer]
    compiled_after_second = []

    def note_compiles(step):
        if step >= 1:
            compiled_after_second.append(torch_xla_lite.debug.metrics()["compiles"])

    torch_xla_lite.debug.reset_metrics()
    options = {"foreach": foreach, "dtype": torch.float64}
    losses, model = train(case, optimizer, "jax", **options, on_step=note_compiles)
    metrics = torch_xla_lite.debug.metrics()
    expected_losses, expected_model = train(case, optimizer, "cpu", **options)

    assert metrics["fallbacks"] == {}
    assert set(compiled_after_second) == {compiled_after_second[0]}
    assert losses == pytest.approx(expected_losses, abs=1e-12)
    expected = expected_model.state_dict()
    for name, value in model.state_dict().items():
        torch.testing.assert_close(
            value.cpu(), expected[name], rtol=0, atol=1e-11, msg=lambda text, n=name: f"{n}: {text}"
        )


@pytest.mark.nightly
@pytest.mark.parametrize("case", mostly_nightly(MODELS, MODELS[:1]), ids=lambda case: case.name)
def test_training_in_float32_goes_where_it_goes_on_the_cpu(case):
    """Of the way that all parameters take together, what single ones do by rounding is little."""
    losses, model = train(case, OPTIMIZERS["momentum"], "jax", True)
    expected_losses, expected_model = train(case, OPTIMIZERS["momentum"], "cpu", True)
    torch.manual_seed(0)
    start = parameters_to_vector(case.make().parameters())
    end = parameters_to_vector(expected_model.parameters())
    found = parameters_to_vector(model.parameters()).cpu()
    assert losses == pytest.approx(expected_losses, abs=1e-4)
    assert (found - end).norm() <= 1e-2 * (end - start).norm()


@pytest.mark.parametrize("case", mostly_nightly(MODELS, MODELS[:1]), ids=lambda case: case.name)
def test_training_with_dropout_neither_falls_back_nor_recompiles(case):
    compiles = []
    torch_xla_lite.debug.reset_metrics()
    losses, _ = train(
        case,
        OPTIMIZERS["adam"],
        "jax",
        None,
        dropout=0.1,
        on_step=lambda step: compiles.append(torch_xla_lite.debug.metrics()["compiles"]),
    )
    assert torch_xla_lite.debug.metrics()["fallbacks"] == {}
    assert compiles[1] == compiles[-1]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("case", MODELS, ids=lambda case: case.name)
def test_evaluation_agrees_with_the_cpu(case):
    torch.manual_seed(0)
    model = case.make(0.5).eval()
    inputs, _ = case.batch()
    torch_xla_lite.debug.reset_metrics()
    with torch.no_grad():
        expected = model(inputs)
        result = model.to("jax")(inputs.to("jax")).cpu()
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)
    assert torch_xla_lite.debug.metrics()["fallbacks"] == {}


def test_checkpointing_gives_the_same_gradients():
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 4).to("jax")
    x = torch.randn(2, 4).to("jax").requires_grad_()
    layer(x).tanh().sum().backward()
    expected, x.grad = x.grad.cpu(), None
    torch.utils.checkpoint.checkpoint(
        lambda y: layer(y).tanh(), x, use_reentrant=False
    ).sum().backward()
    torch.testing.assert_close(x.grad.cpu(), expected)
