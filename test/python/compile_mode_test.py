"""torch.compile, torch.export and function transforms on device jax."""

import io
from pathlib import Path

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacfwd, jvp, vmap
from torch.nn import functional

import torch_xla_lite
from test.python import tiers


@pytest.fixture
def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("options", [{}, {"fullgraph": True, "dynamic": True}])
def test_a_compiled_module_trains(model, options):
    model.to("jax")
    compiled = torch.compile(model, **options)
    x = torch.ones(5, 3, device="jax")
    torch.testing.assert_close(compiled(x).cpu(), model(x).cpu())
    compiled(x).sum().backward()
    assert model[0].weight.grad.is_jax
    assert compiled(torch.ones(2, 3, device="jax")).shape == (2, 2)


def test_a_compiled_function_may_create_its_tensors():
    assert torch.compile(lambda: torch.ones(2, device="jax") + 1)().tolist() == [2, 2]


def traced_files():
    """Those of the functions that torch.compile has traced."""
    return [traced.co_filename for traced in torch._dynamo.utils.get_compilation_metrics()]


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("mode", ["first", "repeated"])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_runs_between_two_graphs_is_not_traced(mode, backend):
    lstm = torch.nn.LSTM(4, 1).to("jax")

    def step(x):
        y = functional.layer_norm(x * 3, (4,))
        if y.sum() > -1:  # What is recorded is compiled and run, and this function goes on.
            y = y + 1
        return lstm(y)[0].quantile(0.5).item()

    x = torch.eye(4, device="jax")
    torch.compiler.reset()
    torch._dynamo.utils.clear_compilation_metrics()
    with tiers.mode(mode):
        assert torch.compile(step, backend=backend)(x) == pytest.approx(step(x))
    assert set(traced_files()) == {__file__}


def test_a_compiled_function_keeps_the_random_state():
    def step(x):
        with torch.random.fork_rng(devices=[0], device_type="jax"):
            torch.jax.manual_seed(3)
            return x + torch.rand_like(x)

    x = torch.zeros(4, device="jax")
    state = torch.jax.get_rng_state()
    torch._dynamo.utils.clear_compilation_metrics()
    assert torch.equal(torch.compile(step, backend="eager")(x), step(x))
    assert torch.equal(torch.jax.get_rng_state(), state)
    package = str(Path(torch_xla_lite.__file__).parent)
    assert not [file for file in traced_files() if file.startswith(package)]


def test_an_exported_program_runs_and_is_saved(model):
    model.to("jax")
    x = torch.ones(5, 3, device="jax")
    file = io.BytesIO()
    torch.export.save(torch.export.export(model, (x,)), file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    torch.testing.assert_close(loaded(x).cpu(), model(x).cpu())


# --- function transforms --------------------------------------------------------------------------


def f(x):
    return (x.sin() * x).cumsum(0) + x.prod()


@pytest.mark.few_daily(1)
@pytest.mark.parametrize(
    "transform",
    [
        lambda x: jvp(f, (x,), (torch.ones_like(x),)),
        lambda x: jacfwd(f)(x),
        lambda x: hessian(lambda x: f(x).sum())(x),
        lambda x: jvp(grad(lambda x: f(x).sum()), (x,), (x,)),
        lambda x: vmap(lambda t: jvp(f, (x,), (t,))[1])(torch.eye(3, device=x.device)),
    ],
)
def test_forward_mode_is_that_of_the_cpu(transform):
    x = torch.tensor([0.5, 1.0, 2.0])
    found = torch.utils._pytree.tree_map(torch.Tensor.cpu, transform(x.to("jax")))
    torch.testing.assert_close(found, transform(x))


@pytest.mark.parametrize("gradients", [True, False])  # Which are about backward() only.
def test_dual_numbers(gradients):
    with torch.set_grad_enabled(gradients), forward_ad.dual_level():
        x = torch.ones(2, 3, device="jax")[1]
        dual = forward_ad.make_dual(x, torch.full((3,), 2.0, device="jax"))
        found = [dual.square(), dual.view(3, 1), torch.ones_like(x).mul_(dual)]
        tangents = [forward_ad.unpack_dual(y).tangent.tolist() for y in found]
    assert tangents == [[4, 4, 4], [[2], [2], [2]], [2, 2, 2]]


def test_dual_numbers_in_a_linear_layer():
    def tangent(device):
        layer = torch.nn.Linear(3, 2)
        torch.nn.init.constant_(layer.weight, 0.5)
        with forward_ad.dual_level():
            ones = torch.ones(4, 3, device=device)
            return forward_ad.unpack_dual(layer.to(device)(forward_ad.make_dual(ones, ones)))[1]

    assert torch.equal(tangent("jax").cpu(), tangent("cpu"))


POINTWISE = {
    "threshold": lambda x: functional.threshold(x, 0.1, 0.2),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "mish": functional.mish,
    "softplus": functional.softplus,
    "elu": functional.elu,
    "leaky_relu": functional.leaky_relu,
    "hardtanh": functional.hardtanh,
    "hardswish": functional.hardswish,
    "hardshrink": functional.hardshrink,
    "softshrink": functional.softshrink,
    "logsigmoid": functional.logsigmoid,
    "prelu": lambda x: functional.prelu(x, torch.full((1,), 0.2, device=x.device)),
    "logit": lambda x: torch.logit(0.9 * x.sigmoid()),
}


@pytest.mark.few_daily(1)
@pytest.mark.filterwarnings("ignore:.*new graph")
@pytest.mark.parametrize("name", POINTWISE)
def test_second_derivatives_are_those_of_the_cpu(name):
    """torch.func calls the ops of gradients with tensors that broadcast."""

    def found(device):
        x = torch.tensor([0.4, -0.3, 1.2, 0.6], device=device)
        inner = torch.func.grad(lambda x: POINTWISE[name](x).sin().sum())
        return torch.stack([torch.func.jacfwd(inner)(x), torch.func.jacrev(inner)(x)]).cpu()

    torch.testing.assert_close(found("jax"), found("cpu"), rtol=1e-4, atol=1e-5)


def test_a_fake_tensor_on_jax_has_a_shape_and_no_value():
    with FakeTensorMode():
        x = torch.empty(2, 3, device="jax")
        assert (x.detach().t() + 1).shape == (3, 2)


def test_gradients_for_each_sample(model):
    x, y = torch.randn(5, 3), torch.arange(5) % 2

    def gradients(place):
        parameters = {name: p.detach().to(place) for name, p in model.named_parameters()}

        def loss(parameters, x, y):
            logits = functional_call(model, parameters, (x[None],))
            return torch.nn.functional.cross_entropy(logits, y[None])

        found = vmap(grad(loss), (None, 0, 0))(parameters, x.to(place), y.to(place))
        return {name: value.cpu() for name, value in found.items()}

    torch.testing.assert_close(gradients("jax"), gradients("cpu"))
