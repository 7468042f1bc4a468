"""What the compiler makes of a graph: counts of operations, because times depend on the machine."""

import copy
import re

import jax
import jax.numpy as jnp
import numpy as np
import torch

import torch_xla_lite  # noqa: F401
from torch_xla_lite.compiler import compilation_cache, tracing
from torch_xla_lite.compiler.scalars import Scalars


def test_scalars_are_decoded_together_and_not_one_by_one():
    def numbers(packed):
        scalars = Scalars.unpack(packed)
        float32 = [scalars.take(1).number(np.dtype(np.float32)) for _ in range(50)]
        return float32 + [scalars.take(1).number(np.dtype(np.int64)) for _ in range(50)]

    with jax.enable_x64(True):
        values = np.r_[np.arange(50.0).view(np.int32), np.arange(50).view(np.int32)]
        packed = jnp.asarray(values.reshape(100, 2))
        operations = str(jax.make_jaxpr(numbers)(packed))
        assert operations.count("bitcast_convert_type") == 2
        assert [x.item() for x in numbers(packed)] == [*range(50), *range(50)]


def test_numbers_are_converted_together_and_not_one_by_one(monkeypatch):
    texts = []
    lower_graph = tracing.lower_graph

    def lower_and_keep(*arguments):
        lowered = lower_graph(*arguments)
        texts.append(lowered.parts[0].as_text())
        return lowered

    monkeypatch.setattr(tracing, "lower_graph", lower_and_keep)
    monkeypatch.setattr(compilation_cache, "load", lambda *_: None)
    x = torch.ones(3).to("jax")
    for _ in range(20):
        x = x * 1.5 + 0.25
    torch.testing.assert_close(x.cpu(), torch.full((3,), 1.5**20 * 1.5 - 0.5))
    assert texts[-1].count("stablehlo.multiply") == 20
    assert texts[-1].count("stablehlo.convert") == 1


def test_a_step_overwrites_its_weights_without_copies(monkeypatch):
    texts = []

    def keep(key, program):
        texts.extend(part.as_text() for part in program.executables)

    monkeypatch.setattr(compilation_cache, "load", lambda *_: None)
    monkeypatch.setattr(compilation_cache, "store", keep)
    torch.manual_seed(0)
    reference = torch.nn.Sequential(*(torch.nn.Linear(48, 48) for _ in range(4)))
    model = copy.deepcopy(reference).to("jax")
    x = torch.randn(5, 48)
    for net, images in ((reference, x), (model, x.to("jax"))):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
        for _ in range(3):
            optimizer.zero_grad()
            net(images).square().mean().backward()
            optimizer.step()
    for ours, expected in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours.cpu(), expected)
    step = next(text for text in reversed(texts) if "input_output_alias" in text)
    assert not re.findall(r"f32\[48,48\]\S* copy\(", step)
