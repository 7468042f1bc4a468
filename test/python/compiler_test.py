"""What the compiler makes of a graph: counts of operations, because times depend on the machine."""

import copy
import functools
import re

import jax
import jax.numpy as jnp
import torch
from jax import lax

import torch_xla_lite
from torch_xla_lite.compiler import compilation_cache, tracing


def test_numbers_are_converted_together_and_not_one_by_one(monkeypatch):
    texts, lower_graph = [], tracing.lower_graph

    def lower_and_keep(*arguments):
        lowered = lower_graph(*arguments)
        texts.append(lowered.parts[0].as_text())
        return lowered

    monkeypatch.setattr(tracing, "lower_graph", lower_and_keep)
    monkeypatch.setattr(compilation_cache, "load", lambda *_: None)
    x, n = torch.ones(3).to("jax"), torch.ones(3, dtype=torch.int64).to("jax")
    for _ in range(20):
        x, n = x * 1.5 + 0.25, n * 3 + 2
    torch.testing.assert_close(x.cpu(), torch.full((3,), 1.5**20 * 1.5 - 0.5))
    assert n.tolist() == [2 * 3**20 - 1] * 3
    assert texts[0].count("stablehlo.multiply") == 40
    assert texts[0].count("stablehlo.bitcast_convert") <= 3  # Of 80 numbers, by dtype.


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


def test_a_loop_reads_what_the_graph_overwrites_later():
    def recurrence(x: jax.Array) -> jax.Array:
        return lax.scan(lambda state, row: (state * 0.5 + row, state), jnp.zeros(3), x)[1]

    model, values = torch.nn.GRU(3, 4), torch.randn(30, 3)
    of_jax = functools.partial(torch_xla_lite.call_jax, recurrence)
    expected = of_jax(values), model(values)[0]
    for fn, wanted in zip((of_jax, lambda x: model.to("jax")(x)[0]), expected, strict=True):
        x = values.jax()
        result = fn(x)
        x.zero_()
        torch.testing.assert_close(result.cpu(), wanted.cpu())
