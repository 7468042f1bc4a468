"""LSTM, GRU and RNN layers: one op for all time steps, with the gradients of the CPU."""

import copy
import itertools
import re

import pytest
import torch
from torch.nn.utils import rnn

import torch_xla_lite
from bazel.pytest_plugin import mostly_nightly
from test.python import tiers
from torch_xla_lite import debug

LAYERS = {
    "lstm": (torch.nn.LSTM, {}),
    "lstm-proj": (torch.nn.LSTM, {"proj_size": 3}),
    "gru": (torch.nn.GRU, {}),
    "rnn-tanh": (torch.nn.RNN, {}),
    "rnn-relu": (torch.nn.RNN, {"nonlinearity": "relu"}),
}
LENGTHS = [2, 6, 3]
OPTIONS = ({}, {"num_layers": 2, "bidirectional": True, "bias": False})
pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections", "ignore:.*new graph")


def layer(name: str, **options) -> torch.nn.RNNBase:
    make, own = LAYERS[name]
    torch.manual_seed(0)
    return make(5, 7, **own, **options)


def first_state(module: torch.nn.RNNBase, batch: int):
    rows = module.num_layers * (1 + module.bidirectional)
    h = torch.randn(rows, batch, module.proj_size or module.hidden_size)
    if not isinstance(module, torch.nn.LSTM):
        return h
    return h, torch.randn(rows, batch, module.hidden_size)


def on(device, state):
    return tuple(x.to(device) for x in state) if isinstance(state, tuple) else state.to(device)


def results(module: torch.nn.RNNBase, x: torch.Tensor, lengths, device: str):
    """Output, last state, and the gradients of input, first state and parameters."""
    module = copy.deepcopy(module).to(device)
    torch.manual_seed(1)
    first = on(device, first_state(module, x.shape[1]))
    leaves = [x.to(device).requires_grad_()]
    leaves += [s.requires_grad_() for s in (first if isinstance(first, tuple) else (first,))]
    inputs = leaves[0]
    if lengths is not None:
        inputs = rnn.pack_padded_sequence(inputs, torch.tensor(lengths), enforce_sorted=False)
    output, last = module(inputs, first)
    if lengths is not None:
        output, _ = rnn.pad_packed_sequence(output)
    last = last if isinstance(last, tuple) else (last,)
    loss = output.square().sum() + sum((0.5 * state).sin().sum() for state in last)
    loss.backward()
    gradients = [leaf.grad for leaf in (*leaves, *module.parameters())]
    return [result.detach().cpu() for result in (output, *last, *gradients)]


@pytest.fixture(params=[False, True], ids=["compiled", "interpreted"])
def interpreted(request):
    with tiers.mode("repeated" if request.param else "first"):
        yield request.param


# By day each layer in its simplest form, and with all that can be added to it.
@pytest.mark.few_daily(2)
@pytest.mark.parametrize(
    "form",
    mostly_nightly(
        [*itertools.product(OPTIONS, (None, LENGTHS))], [(OPTIONS[0], None), (OPTIONS[1], LENGTHS)]
    ),
    ids=["padded", "packed", "two-layers-padded", "two-layers-packed"],
)
@pytest.mark.parametrize("name", LAYERS)
def test_numbers_and_gradients_are_those_of_the_cpu(name, form, interpreted):
    options, lengths = form
    module = layer(name, **options)
    x = torch.randn(6, 3, 5)
    found = results(module, x, lengths, "jax")
    metrics = debug.metrics()
    assert metrics["fallbacks"] == {}
    assert (metrics["compiles"] + metrics["loads"] == 0) == interpreted
    torch.testing.assert_close(found, results(module, x, lengths, "cpu"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_the_graph_does_not_grow_with_the_length(name):
    def ops(length: int) -> list[str]:
        module = layer(name).to("jax")
        output, _ = module(torch.randn(length, 2, 5, device="jax"))
        output.sum().backward()
        return re.findall(r"= (\S+)\(", str(debug.graph()))

    found = ops(40)
    assert found == ops(4)
    assert found.count("torch_xla_lite::recurrence") == 1
    assert found.count("torch_xla_lite::recurrence_backward") == 1


@pytest.mark.parametrize("interpreted", [True], indirect=True)
def test_a_step_of_an_interpreted_lstm_is_few_calls(interpreted):
    module = layer("lstm").to("jax")

    def calls(length: int) -> int:
        output, _ = module(torch.randn(length, 2, 5, device="jax"))
        output.sum().backward()
        with torch.profiler.profile() as profile:
            torch_xla_lite.sync()
        return sum(event.count for event in profile.key_averages())

    assert calls(40) - calls(4) <= 36 * 20


def test_other_lengths_of_the_same_shapes_compile_nothing():
    module = layer("lstm", bidirectional=True).to("jax")

    def output(lengths):
        packed = rnn.pack_padded_sequence(
            torch.ones(6, 3, 5, device="jax"), torch.tensor(lengths), enforce_sorted=False
        )
        return module(packed)[0].data.cpu()

    output(LENGTHS)
    debug.reset_metrics()
    output([6, 4, 1])
    assert debug.metrics()["compiles"] == 0


@pytest.mark.nightly
@pytest.mark.parametrize("name", mostly_nightly(LAYERS, ("lstm", "gru")))
def test_a_gradient_has_a_gradient(name):
    def penalty(device):
        module = layer(name, bidirectional=True).to(device)
        x = torch.linspace(-1, 1, 20).view(2, 2, 5).to(device).requires_grad_()
        output, _ = module(x)
        (grad,) = torch.autograd.grad(output.square().sum(), x, create_graph=True)
        grad.square().sum().backward()
        return [p.grad.cpu() for p in (x, *module.parameters())]

    torch.testing.assert_close(penalty("jax"), penalty("cpu"), rtol=1e-3, atol=1e-5)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["lstm", "gru", "rnn-tanh"])
def test_dtypes(name, dtype, interpreted):
    module = layer(name).to(dtype)
    x = torch.randn(6, 3, 5, dtype=dtype)
    found, _ = module.to("jax")(x.to("jax"))
    expected, _ = module.to("cpu", torch.float64)(x.double())
    assert found.dtype == dtype
    tolerance = {torch.float64: 1e-12, torch.float16: 5e-3, torch.bfloat16: 4e-2}[dtype]
    torch.testing.assert_close(found.cpu().double(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("name", mostly_nightly(LAYERS, ("lstm", "rnn-tanh")))
def test_autocast(name):
    module = layer(name, num_layers=2).to("jax")
    x = torch.randn(6, 3, 5, device="jax")
    expected, _ = module(x)
    with torch.autocast("jax", torch.bfloat16):
        found, _ = module(x)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.cpu().float(), expected.cpu(), rtol=5e-2, atol=5e-2)
    found.float().sum().backward()
    assert all(p.grad.dtype == torch.float32 for p in module.parameters())


def test_dropout_is_between_layers_and_only_while_training():
    module = layer("lstm", num_layers=2, dropout=0.5).to("jax")
    x = torch.ones(6, 3, 5, device="jax")
    assert not torch.equal(module(x)[0].cpu(), module(x)[0].cpu())
    module.eval()
    assert torch.equal(module(x)[0].cpu(), module(x)[0].cpu())


def test_without_gradients():
    module = layer("gru").to("jax")
    x = torch.randn(6, 3, 5, device="jax")
    expected = module(x)[0].cpu()
    with torch.inference_mode():
        assert torch.equal(module(x)[0].cpu(), expected)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "transform",
    [torch.func.grad, torch.func.jacfwd, torch.func.hessian],
    ids=["grad", "jacfwd", "hessian"],
)
def test_transformed_functions(transform):
    def found(device):
        module = layer("gru").to(device)
        x = torch.linspace(-1, 1, 20, device=device).view(2, 2, 5)
        return transform(lambda scale: module(scale * x)[0].square().sum())(
            torch.ones((), device=device)
        )

    torch.testing.assert_close(found("jax").cpu(), found("cpu"), rtol=1e-4, atol=1e-5)


def test_errors_are_those_of_torch():
    module = layer("lstm").to("jax")
    with pytest.raises(RuntimeError, match="sequence length to be larger than 0"):
        module(torch.ones(0, 2, 5, device="jax"))
    with pytest.raises(RuntimeError, match="Expected hidden size"):
        wrong = torch.ones(1, 2, 6, device="jax")
        arguments = (list(module.parameters()), True, 1, 0.0, False, False, False)
        torch.lstm(torch.ones(3, 2, 5, device="jax"), (wrong, wrong), *arguments)
