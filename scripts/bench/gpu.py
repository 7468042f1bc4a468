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
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CONTENDERS = ("ours", "eager", "compiled")
ROUNDS, STEPS = 5, 20

Model = tuple[nn.Module, Callable[[str], tuple[Tensor, ...]], bool]


class Attention(nn.Module):
    """Causal, with heads of 64."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, width // 64, 64).transpose(1, 2)
            for part in self.qkv(x).split(width, 2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """A layer of GPT-2."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm_1(x))
        return x + self.mlp(self.norm_2(x))


class Gpt(nn.Module):
    """GPT-2's smallest; the loss of the next token."""

    def __init__(self, width: int = 768, layers: int = 12, tokens: int = 50_304) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(tokens, width), nn.Embedding(1024, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, tokens, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        places = self.places(torch.arange(x.shape[1], device=x.device))
        scores = self.head(self.norm(self.blocks(self.tokens(x) + places)))
        return F.cross_entropy(scores.flatten(0, 1), y.flatten())


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
    padding = kernel // 2
    return [
        nn.Conv2d(given, width, kernel, stride, padding, bias=False),
        nn.BatchNorm2d(width),
    ]


class Resnet(nn.Module):
    """ResNet-50; the loss of the class."""

    def __init__(self) -> None:
        super().__init__()
        layers = [*_convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        given = 64
        for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
            for i in range(count):
                layers.append(Bottleneck(given, width, 2 if i == 0 and width > 64 else 1))
                given = 4 * width
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(given, 1000)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(self.head(self.layers(x)), y)


class Perceptron(nn.Module):
    """Forty layers that are too small for any device."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        layers = [part for _ in range(40) for part in (nn.Linear(width, width), nn.ReLU())]
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.mse_loss(self.layers(x), y)


def models() -> dict[str, Model]:
    """A model, its data for a device, and whether autocast is on."""
    return {
        "perceptron of 40 layers, batch 64": (
            Perceptron(),
            lambda device: tuple(torch.randn(64, 128).to(device) for _ in range(2)),
            False,
        ),
        "GPT-2, 16 x 512 tokens": (
            Gpt(),
            lambda device: tuple(torch.randint(50_304, (16, 512)).to(device) for _ in range(2)),
            True,
        ),
        "ResNet-50, 128 images": (
            Resnet(),
            lambda device: (
                torch.randn(128, 3, 224, 224).to(device),
                torch.randint(1000, (128,)).to(device),
            ),
            True,
        ),
    }


def train(contender: str) -> None:
    """Trains each model, and prints a line of JSON for it."""
    if contender == "ours":
        import torch_xla_lite  # noqa: F401
    for name, model in models().items():
        first, median = _trained(*model, contender)
        print(json.dumps({"name": name, "ms": 1e3 * median, "first": first}), flush=True)


def _trained(
    model: nn.Module, data: Callable[[str], tuple[Tensor, ...]], mixed: bool, contender: str
) -> tuple[float, float]:
    """Seconds of the first three steps, with all preparation, and of a later one."""
    device = "jax" if contender == "ours" else "cuda"
    wait = torch.jax.synchronize if device == "jax" else torch.cuda.synchronize
    torch.manual_seed(0)
    begin = time.perf_counter()
    model = model.to(device)
    x, y = data(device)
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
    options = parser.parse_args()
    if options.contender:
        train(options.contender)
        return
    report = harness.Report(harness.machine(torch_of_the_peers=_version(options.peer)))
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for contender in CONTENDERS:
        for row in _results(contender, options):
            found.setdefault(row["name"], {})[contender] = row
    for what, title in (("ms", "A step, in ms"), ("first", "The first three steps, in s")):
        rows = [
            harness.Row(
                name,
                what if what == "ms" else "s",
                {contender: row[what] for contender, row in of_model.items()},
                _ratio(of_model, what),
                None,
            )
            for name, of_model in found.items()
        ]
        report.add(f"{title}; the ratio is ours / eager", rows)
    report.write(options.json)


def _ratio(of_model: dict[str, dict[str, Any]], what: str) -> float | None:
    if not {"ours", "eager"} <= of_model.keys():
        return None
    return of_model["ours"][what] / of_model["eager"][what]


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
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            printed, _ = process.communicate(timeout=options.seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            printed, _ = process.communicate()
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


if __name__ == "__main__":
    main()
