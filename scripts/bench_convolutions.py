#!/usr/bin/env python3
"""Compares the forms of convolutions on the CPU, and training steps of vision models.

    python scripts/bench_convolutions.py                     # all models, more than half an hour
    python scripts/bench_convolutions.py --models resnet18 r3d_18
    python scripts/bench_convolutions.py --only steps        # only whole training steps
    python scripts/bench_convolutions.py --only slow         # only rows above the goal

Each convolution of the models runs with its two gradients in these forms, alternately. "ours" is
the one that lowering/convolution_forms.py chooses, which is named:

    xla       the convolution of XLA, and its linear transposes
    patches   a product of matrices (one group)
    aten      ATen's kernel, called by the program of XLA
    eager     ATen's kernel, called by torch

Processor time of one core with one thread, medians in ms; a form that is 20 times as slow as the
fastest runs once. Steps are forward, backward and SGD with images of 64 pixels, float32, and a read
of the loss. torchvision comes from test/models/requirements.txt.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from bench_compile import import_torchvision

MODELS = {
    "resnet18": 8,
    "resnet50": 8,
    "efficientnet_b0": 8,
    "mobilenet_v3_small": 8,
    "mobilenet_v3_large": 8,
    "densenet121": 8,
    "convnext_tiny": 8,
    "vgg16": 8,
    "googlenet": 8,
    "shufflenet_v2_x1_0": 8,
    "mnasnet1_0": 8,
    "regnet_y_400mf": 8,
    "resnext50_32x4d": 8,
    "r3d_18": 2,
    "mc3_18": 2,
    "r2plus1d_18": 2,
}  # The number of images or clips in a batch.
GOAL = 1.3  # times eager


class Convolution(NamedTuple):
    """Its operands and parameters."""

    x: tuple[int, ...]
    weight: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...] = (1, 1)
    groups: int = 1

    def __str__(self) -> str:
        sizes = "x".join(map(str, self.x)), "x".join(map(str, self.weight))
        more = f" dilation {self.dilation[0]}" if max(self.dilation) > 1 else ""
        more += f" groups {self.groups}" if self.groups > 1 else ""
        return f"{sizes[0]} * {sizes[1]} stride {max(self.stride)}{more}"


# Convolutions that no model of the list has.
OTHERS = [
    Convolution((8, 128, 8, 8), (128, 4, 3, 3), (1, 1), (1, 1), groups=32),
    Convolution((8, 64, 16, 16), (64, 64, 3, 3), (1, 1), (2, 2), (2, 2)),
    Convolution((8, 64, 500), (64, 64, 9), (2,), (4,), (1,)),
]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--only", choices=["steps", "slow"])
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.core})
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    import torch_xla_lite  # noqa: F401

    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"one core, one thread; load {os.getloadavg()[0]:.1f}\n")
    results: dict[str, dict] = {"convolutions": {}, "steps": {}}
    if options.only != "steps":
        print("| convolution | | eager ms | ours / eager | form | others / eager |")
        print("|---|---|---:|---:|---|---|")
        for conv in dict.fromkeys([*OTHERS, *(c for m in options.models for c in collect(m))]):
            for direction, (form, times) in measure(conv).items():
                results["convolutions"][f"{conv} {direction}"] = times
                if options.only != "slow" or times[form] > GOAL * times["eager"]:
                    print(row(conv, direction, form, times), flush=True)
        print()
    print("| training step | ours, ms | eager, ms | ratio |\n|---|---:|---:|---:|")
    for name in options.models:
        times = results["steps"][name] = measure_step(name)
        ours, eager = times["ours"], times["eager"]
        print(f"| {name} | {ours:.1f} | {eager:.1f} | {ours / eager:.2f} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


def row(conv: Convolution, direction: str, form: str, times: dict[str, float]) -> str:
    eager = times["eager"]
    others = [f"{n} {t / eager:.2f}" for n, t in times.items() if n not in (form, "eager")]
    ratio = times[form] / eager
    return f"| {conv} | {direction} | {eager:.3f} | {ratio:.2f} | {form} | {', '.join(others)} |"


# --- one convolution ---


def measure(conv: Convolution) -> dict[str, tuple[str, dict[str, float]]]:
    """For each direction the chosen form, and the times of all forms in ms."""
    import jax
    import torch

    from torch_xla_lite.lowering import convolution as lowerings
    from torch_xla_lite.lowering import registry
    from torch_xla_lite.lowering.convolution_forms import Form

    x, weight = torch.randn(conv.x), torch.randn(conv.weight)
    parameters = [*map(list, (conv.stride, conv.padding, conv.dilation)), False]
    parameters += [[0] * len(conv.stride), conv.groups]
    y = torch.ops.aten.convolution(x, weight, None, *parameters)
    grad = torch.randn_like(y)
    calls = {"forward": ("convolution", [x, weight], [None, *parameters], [y])}
    for output, direction in enumerate(("input", "weight")):
        mask = [i == output for i in range(3)]
        outs = [(x, weight)[output] if wanted else None for wanted in mask]
        arguments = [None, *parameters, mask]
        calls[direction] = ("convolution_backward", [grad, x, weight], arguments, outs)
    shapes = conv.weight, conv.stride, y.numel() // y.shape[1], conv.groups
    chosen = lowerings.choose(jax.numpy.dtype("float32"), *shapes)
    forms = [form for form in Form if form is not Form.PATCHES or conv.groups == 1]
    found = {}
    for direction, (op, tensors, others, outs) in calls.items():
        structs = [None if t is None else jax.ShapeDtypeStruct(t.shape, "float32") for t in outs]
        (output,) = (i for i, t in enumerate(outs) if t is not None)

        def eager(op=op, arguments=(*tensors, *others), output=output):
            result = getattr(torch.ops.aten, op)(*arguments)
            return result if op == "convolution" else result[output]

        def ours(*arrays, op=op, others=others, structs=structs, output=output):
            return registry.call(f"aten::{op}", [*arrays, *others], structs)[output]

        arrays = [jax.device_put(tensor.numpy()) for tensor in tensors]
        contenders: dict[str, Callable[[], object]] = {"eager": eager}
        for form in forms:
            with mock.patch.object(lowerings, "choose", lambda *_, form=form: form):
                contenders[form.name.lower()] = compile_and_check(ours, arrays, eager())
        found[direction] = chosen.name.lower(), medians(contenders)
    return found


def compile_and_check(function: Callable, operands: list, wanted) -> Callable[[], object]:
    """What runs the function as a program of XLA."""
    import jax
    import torch

    with jax.enable_x64(True):
        # A new function each time: jax remembers what it has traced.
        run = jax.jit(lambda *arrays: function(*arrays)).lower(*operands).compile()
    error = (torch.tensor(run(*operands).__array__()) - wanted).abs().max() / wanted.abs().max()
    if error > 1e-4:
        raise RuntimeError(f"a form is wrong by {error:.1e}")
    return lambda: run(*operands).block_until_ready()


def medians(contenders: dict[str, Callable[[], object]], seconds: float = 0.2) -> dict[str, float]:
    """The processor time of each in ms."""

    def timed(run: Callable[[], object], times: int = 1) -> float:
        start = time.process_time()
        for _ in range(times):
            run()
        return (time.process_time() - start) / times * 1000

    first = {name: min(timed(run), timed(run)) for name, run in contenders.items()}
    limit = 20 * min(first.values())
    fast = {name: run for name, run in contenders.items() if first[name] <= limit}
    rounds = int(min(30, max(5, seconds * 1000 / sum(first[name] for name in fast))))
    found = {name: [time] for name, time in first.items() if name not in fast}
    names = list(fast)
    for turn in range(rounds):
        # What runs after another one finds other data in the caches, so the order rotates.
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            times = max(1, round(1 / max(first[name], 0.01)))
            found.setdefault(name, []).append(timed(fast[name], times))
    return {name: statistics.median(found[name]) for name in contenders}


# --- models ---


def make(name: str):
    """A model of torchvision, and a batch for it."""
    import torch

    vision = import_torchvision()
    batch = MODELS[name]
    if hasattr(vision.models.video, name):
        model = getattr(vision.models.video, name)(num_classes=10)
        return model, torch.randn(batch, 3, 8, 64, 64)
    options = {"aux_logits": False, "init_weights": True} if name == "googlenet" else {}
    model = getattr(vision.models, name)(num_classes=10, **options)
    return model, torch.randn(batch, 3, 64, 64)


def collect(name: str) -> Iterator[Convolution]:
    """The convolutions that a model calls."""
    import torch

    model, batch = make(name)
    found = []

    def note(module, inputs, _):
        found.append(
            Convolution(
                tuple(inputs[0].shape),
                tuple(module.weight.shape),
                module.stride,
                module.padding,
                module.dilation,
                module.groups,
            )
        )

    for module in model.modules():
        if isinstance(module, torch.nn.modules.conv._ConvNd):
            module.register_forward_hook(note)
    with torch.no_grad():
        model.eval()(batch)
    yield from dict.fromkeys(found)


def measure_step(name: str) -> dict[str, float]:
    """The time of a training step in ms, on the devices "jax" and "cpu" alternately."""
    import copy

    import torch

    model, batch = make(name)
    labels = torch.randint(0, 10, (len(batch),))
    steps = {}
    for label, device in (("ours", "jax"), ("eager", "cpu")):
        own = copy.deepcopy(model).to(device)
        optimizer = torch.optim.SGD(own.parameters(), lr=1e-3)
        x, y = batch.to(device), labels.to(device)

        def step(own=own, optimizer=optimizer, x=x, y=y) -> float:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(own(x), y)
            loss.backward()
            optimizer.step()
            return loss.item()

        for _ in range(3):
            step()
        steps[label] = step
    return medians(steps, seconds=6)


if __name__ == "__main__":
    sys.exit(main())
