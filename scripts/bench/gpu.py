"""Training steps on a GPU: this package beside torch with CUDA, eager and compiled.

    python -m scripts.bench.gpu                                         # needs a GPU
    python -m scripts.bench.gpu --peer OTHER_ENVIRONMENT/bin/python     # torch with CUDA from there

Each contender trains in a process of its own, the models in the same order; a figure is the median
of rounds of steps that are awaited once. Models and data are made here: a GPT of 124 million
parameters and a ResNet-50 (bfloat16 by autocast), and a perceptron of many small layers (float32),
whose steps are bound by the host.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from scripts.bench import models

CONTENDERS = ("ours", "eager", "compiled")
ROUNDS, STEPS = 5, 20


class Loss(nn.Module):
    """A model, and what it is trained for."""

    def __init__(self, model: nn.Module, loss: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.loss(self.model(x), y)


class Bottleneck(nn.Module):
    """A block of ResNet-50."""

    def __init__(self, given: int, width: int, stride: int) -> None:
        super().__init__()
        self.main = nn.Sequential(
            *_convolution(given, width, 1, 1),
            nn.ReLU(),
            *_convolution(width, width, 3, stride),
            nn.ReLU(),
            *_convolution(width, 4 * width, 1, 1),
        )
        is_same = stride == 1 and given == 4 * width
        self.skip = nn.Sequential(*(() if is_same else _convolution(given, 4 * width, 1, stride)))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.main(x) + self.skip(x))


def _convolution(given: int, width: int, kernel: int, stride: int) -> list[nn.Module]:
    convolution = nn.Conv2d(given, width, kernel, stride, kernel // 2, bias=False)
    return [convolution, nn.BatchNorm2d(width)]


def resnet() -> nn.Module:
    """ResNet-50."""
    layers = [*_convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    given = 64
    for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for i in range(count):
            layers.append(Bottleneck(given, width, 2 if i == 0 and width > 64 else 1))
            given = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(given, 1000))


def _perceptron() -> nn.Module:
    """Forty layers that are too small for any device."""
    return nn.Sequential(*(x for _ in range(40) for x in (nn.Linear(128, 128), nn.ReLU())))


def gpt(*sizes: int) -> nn.Module:
    """GPT-2, whose last matrix is the table of tokens, by the arguments of `models.Gpt`."""
    model = models.Gpt(*sizes)
    model.head.weight = model.tokens.weight
    nn.init.normal_(model.tokens.weight, std=0.02)
    return model


def _next_token(scores: Tensor, tokens: Tensor) -> Tensor:
    return F.cross_entropy(scores.flatten(0, 1), tokens.flatten())


def cases() -> Iterator[tuple[str, nn.Module, tuple[Tensor, Tensor], bool]]:
    """A name, a model, its data, and whether autocast is on."""
    vectors = torch.randn(64, 128), torch.randn(64, 128)
    yield "perceptron of 40 layers, batch 64", Loss(_perceptron(), F.mse_loss), vectors, False
    tokens = torch.randint(50_304, (16, 512)), torch.randint(50_304, (16, 512))
    yield "GPT-2, 16 x 512 tokens", Loss(gpt(12, 768, 12, 50_304, 512), _next_token), tokens, True
    images = torch.randn(128, 3, 224, 224), torch.randint(1000, (128,))
    yield "ResNet-50, 128 images", Loss(resnet(), F.cross_entropy), images, True


def train(contender: str, count: int) -> None:
    """Trains some models, and prints a line of JSON for each."""
    if contender == "ours":
        import torch_xla_lite  # noqa: F401
    for name, *case in itertools.islice(cases(), count):
        first, median = _trained(*case, contender)
        print(json.dumps({"name": name, "ms": 1e3 * median, "first": first}), flush=True)


def _trained(
    model: nn.Module, data: tuple[Tensor, Tensor], mixed: bool, contender: str
) -> tuple[float, float]:
    """Seconds of the first three steps, with all preparation, and of a later one."""
    device = "jax" if contender == "ours" else "cuda"
    wait = torch.jax.synchronize if device == "jax" else torch.cuda.synchronize
    torch.manual_seed(0)
    begin = time.perf_counter()
    model = model.to(device)
    x, y = (tensor.to(device) for tensor in data)
    if device == "cuda" and x.dim() == 4:  # Its users choose this form; XLA chooses itself.
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    forward = torch.compile(model) if contender == "compiled" else model

    def steps(count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            optimizer.zero_grad()
            with torch.autocast(device, torch.bfloat16, enabled=mixed):
                loss = forward(x, y)
            loss.backward()
            optimizer.step()
        wait()
        return time.perf_counter() - begin

    steps(3)
    first = time.perf_counter() - begin
    return first, statistics.median(steps(STEPS) / STEPS for _ in range(ROUNDS))


def main() -> None:
    """Runs the command line."""
    from scripts.bench import harness

    parser = harness.arguments(__doc__)
    parser.add_argument("--peer", help="Python of the torch with CUDA (default: this one)")
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=int, default=600, help="at most, for each contender")
    parser.add_argument("--models", type=int, default=3, help="how many; the first runs anywhere")
    options = parser.parse_args()
    if options.contender:
        train(options.contender, options.models)
        return
    report = harness.Report(harness.machine(torch_of_the_peers=_version(options.peer)))
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for contender in CONTENDERS:
        for row in _results(contender, options):
            found.setdefault(row["name"], {})[contender] = row
    for what, unit, title in (("ms", "ms", "A step"), ("first", "s", "The first three steps")):
        rows = []
        for name, of_model in found.items():
            times = {contender: row[what] for contender, row in of_model.items()}
            ratio = times["ours"] / times["eager"] if {"ours", "eager"} <= times.keys() else None
            rows.append(harness.Row(name, unit, times, ratio))
        report.add(f"{title}, in {unit}; the ratio is ours / eager", rows)
    report.write(options.json)


def _python(contender: str, peer: str | None) -> tuple[str, dict[str, str]]:
    """The interpreter of a contender, and its variables: the peers' torch is found by its own."""
    if contender == "ours" or peer is None:
        return sys.executable, dict(os.environ)
    hidden = ("PYTHONPATH", "LD_PRELOAD", "VIRTUAL_ENV")
    return peer, {name: value for name, value in os.environ.items() if name not in hidden}


def _version(peer: str | None) -> str:
    python, environ = _python("eager", peer)
    code = "import torch; print(torch.__version__)"
    return subprocess.check_output([python, "-c", code], env=environ, text=True).strip()


def _results(contender: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """What a contender printed until its time was over."""
    python, environ = _python(contender, options.peer)
    command = [python, "-m", "scripts.bench.gpu", "--contender", contender]
    command += ["--models", str(options.models)]
    try:
        done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, timeout=options.seconds)
        printed = done.stdout
    except subprocess.TimeoutExpired as late:
        printed = late.stdout or b""
    return [json.loads(line) for line in printed.decode().splitlines() if line.startswith("{")]


if __name__ == "__main__":
    main()
