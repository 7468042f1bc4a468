"""Quantization-aware training on device jax, which has no quantized tensors."""

import copy
import io
import re

import pytest
import torch
import torch.ao.nn.quantized as quantized
import torch.ao.nn.quantized.dynamic
import torch.ao.quantization as quantization

import torch_xla_lite
from torch_xla_lite import debug

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.ao.quantization is deprecated"),
    pytest.mark.filterwarnings("ignore:.*reduce_range"),
    pytest.mark.filterwarnings("ignore:must run observer"),
    pytest.mark.filterwarnings("ignore:.*other quantized tensor creation functions"),
]

BATCHES = torch.randn(3, 2, 3, 4, generator=torch.Generator().manual_seed(0))
OF_CHANNELS = {
    "observer": quantization.MovingAveragePerChannelMinMaxObserver,
    "quant_min": -128,
    "quant_max": 127,
    "dtype": torch.qint8,
    "qscheme": torch.per_channel_symmetric,
}
OBSERVERS = [
    quantization.MinMaxObserver,
    quantization.MovingAverageMinMaxObserver,
    quantization.PerChannelMinMaxObserver,
    quantization.MovingAveragePerChannelMinMaxObserver,
    pytest.param(quantization.HistogramObserver, marks=pytest.mark.nightly),
]
FAKE_QUANTIZERS = {
    "fused": lambda: quantization.FusedMovingAvgObsFakeQuantize(),
    "fused, of channels": lambda: quantization.FusedMovingAvgObsFakeQuantize(**OF_CHANNELS),
    "not fused": lambda: quantization.FakeQuantize(),
    "not fused, of channels": lambda: quantization.FakeQuantize(**OF_CHANNELS),
    "of fixed range": lambda: quantization.default_fixed_qparams_range_0to1_fake_quant(),
}


def on_both(make, run):
    """What `run` gives for a module on each device: on the CPU, and on jax."""
    module = make()
    return run(copy.deepcopy(module), BATCHES), run(copy.deepcopy(module).jax(), BATCHES.jax())


def assert_same(on_cpu, on_jax):
    on_jax = [x.cpu() for x in torch.utils._pytree.tree_leaves(on_jax)]
    torch.testing.assert_close(on_jax, torch.utils._pytree.tree_leaves(on_cpu), rtol=1e-4, atol=0)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("observer", OBSERVERS)
def test_an_observer_chooses_the_parameters_of_the_cpu(observer):
    def run(module, batches):
        for batch in batches:
            module(batch)
        return module.calculate_qparams()

    assert_same(*on_both(observer, run))


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("name", FAKE_QUANTIZERS)
def test_fake_quantization_is_that_of_the_cpu(name):
    def run(module, batches):
        batches = batches.requires_grad_()
        results = [module(batch) for batch in batches]
        results += torch.autograd.grad(torch.stack(results).square().sum(), batches)
        module.apply(quantization.disable_observer)
        results.append(module(batches[0] * 2))
        module.apply(quantization.disable_fake_quant)
        return [*results, module(batches[0] * 2), *module.state_dict().values()]

    on_cpu, on_jax = on_both(FAKE_QUANTIZERS[name], lambda *a: [x.detach() for x in run(*a)])
    assert_same(on_cpu, on_jax)


def test_statistics_of_channels_stay_empty_until_they_are_observed():
    module = FAKE_QUANTIZERS["fused, of channels"]().jax()
    for switch in (quantization.disable_observer, quantization.disable_fake_quant):
        module.apply(switch)
    module(BATCHES[0].jax())
    assert module.activation_post_process.min_val.shape == (0,)
    module.apply(quantization.enable_observer)
    module(BATCHES[0].jax())
    assert module.activation_post_process.min_val.shape == (2,)


def prepared(engine):
    module = torch.nn.Sequential(
        quantization.QuantStub(),
        torch.nn.Conv2d(2, 4, 2),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(24, 5),
        quantization.DeQuantStub(),
    ).train()
    module.qconfig = quantization.get_default_qat_qconfig(engine)
    module = quantization.fuse_modules_qat(module, [["1", "2", "3"]])
    return quantization.prepare_qat(module)


@pytest.mark.nightly
@pytest.mark.parametrize("engine", ["x86", pytest.param("qnnpack", marks=pytest.mark.nightly)])
def test_the_default_recipe_trains_and_converts_as_on_the_cpu(engine, monkeypatch):
    monkeypatch.setattr(torch.backends.quantized, "engine", engine)

    def run(module, batches):
        optimizer = torch.optim.SGD(module.parameters(), 0.1)
        losses = []
        for batch in batches:
            optimizer.zero_grad()
            losses.append(module(batch[None]).square().mean())
            losses[-1].backward()
            optimizer.step()
        converted = quantization.convert(module.cpu().eval())
        return [*(loss.detach() for loss in losses), converted(BATCHES[:1])]

    assert_same(*on_both(lambda: prepared(engine), run))


def test_steps_of_training_share_a_graph():
    module = prepared("x86").jax()
    for step in range(6):
        if step == 3:
            debug.reset_metrics()
        module(BATCHES[:1].jax()).square().mean().backward()
        torch_xla_lite.sync()
    metrics = debug.metrics()
    assert (metrics["compiles"], metrics["executions"]) == (0, 3)


def _loaded(value: object, device: torch.device) -> object:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, map_location=device, weights_only=False)


def _loaded_script(module: torch.nn.Module, device: torch.device) -> torch.nn.Module:
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(module), file)
    file.seek(0)
    return torch.jit.load(file, map_location=device)


X = torch.randn(2, 3)
SCALES, POINTS = torch.full((2,), 0.1), torch.zeros(2, dtype=torch.int64)
QUANTIZED = {
    "quantize_per_tensor": lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
    "dynamic": lambda x: torch.quantize_per_tensor_dynamic(x, torch.quint8, False),
    "by tensors": lambda x: torch.quantize_per_tensor(
        x, SCALES[0].to(x), POINTS[0].to(x.device), torch.qint8
    ),
    "a list": lambda x: torch.quantize_per_tensor(
        [x], SCALES.to(x), POINTS.to(x.device), torch.qint8
    ),
    "quantize_per_channel": lambda x: torch.quantize_per_channel(
        x, SCALES.to(x), POINTS.to(x.device), 0, torch.qint32
    ),
    "of integers": lambda x: torch._make_per_tensor_quantized_tensor(x.char(), 0.1, 0),
    "a conversion": lambda x: x.to(torch.qint8),
    "a copy of another tensor": lambda x: QUANTIZED["quantize_per_tensor"](X).to(x.device),
    "a file": lambda x: _loaded(QUANTIZED["quantize_per_tensor"](X), x.device),
    "a file of channels": lambda x: _loaded(QUANTIZED["quantize_per_channel"](X), x.device),
    "a state": lambda x: _loaded(quantized.Linear(3, 2).state_dict(), x.device),
    "a script": lambda x: _loaded_script(quantized.Linear(3, 2), x.device),
    "empty": lambda x: torch.empty(2, dtype=torch.qint8, device=x.device),
    "zeros": lambda x: torch.zeros(2, dtype=torch.quint8, device=x.device),
    "zeros_like": lambda x: torch.zeros_like(x, dtype=torch.quint8),
    "with parameters": lambda x: torch._empty_affine_quantized(
        [2], scale=0.1, zero_point=0, dtype=torch.qint8, device=x.device
    ),
}


@pytest.mark.parametrize("name", QUANTIZED)
def test_quantized_tensors_are_refused_at_the_call(name):
    with pytest.raises(NotImplementedError, match="device jax has no quantized tensors"):
        QUANTIZED[name](X.jax())


MODULES = {
    "dynamic": lambda: quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(3, 2))),
    "linear": lambda: quantized.Linear(3, 2),
    "of a function": quantized.ReLU6,
    "recurrent": lambda: quantized.dynamic.LSTM(3, 2),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_quantized_module_needs_tensors_on_the_cpu(name):
    module = MODULES[name]()
    with pytest.raises(NotImplementedError) as caught:
        module(X[None].jax())
    wrong, what_now = str(caught.value).splitlines()
    assert re.match(r"device jax has no quantized tensors \(in (aten::)?quantized", wrong)
    assert what_now.endswith("module.cpu()(x.cpu())")
