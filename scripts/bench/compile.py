"""Measures the cost of first runs: new graphs, new shapes, a second process.

    python -m scripts.bench.compile                       # everything, about half an hour
    python -m scripts.bench.compile --only chain-1000 mlp
    python -m scripts.bench.compile --json result.json

Each program runs in a process of its own for each contender, one after the other, --rounds times:

    ours      device jax, with an empty compilation cache
    again     device jax, in a second process: with the cache that "ours" left
    eager     torch's CPU kernels
    inductor  torch.compile on the CPU, with an empty cache
    jit       hand-written jax.jit, for some programs

A step ends with a read. Times begin after the imports, the construction of the model, and the
first upload, which makes jax start its backend (10 ms); torch and XLA have one thread each for
kernels, while XLA compiles with all cores (--cores limits them). A run that takes longer than
--limit seconds is given up and has no figures. Tables go to the standard output; the JSON file is
stable, for programs.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from scripts.bench import harness

CONTENDERS = ("ours", "again", "eager", "inductor", "jit")
STEPS = 15

Step = Callable[[int], float]  # Runs the step of a number, and reads a value.


def main() -> None:
    """Runs the command line."""
    parser = harness.arguments(__doc__)
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--limit", type=float, default=180)
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(*options.worker)))
        return
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[: options.cores]))
    report = harness.Report(harness.machine())
    for program in options.only:
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in options.contenders}
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as cache:
                for contender in options.contenders:
                    if (run := start(program, contender, cache, options.limit)) is not None:
                        runs[contender].append(run)
        rows = [harness.Row(name, "s", median(of_one)) for name, of_one in runs.items()]
        report.add(f"{program}: steps", rows)
    report.write(options.json)


def start(program: str, contender: str, cache: str, limit: float) -> dict[str, float] | None:
    """The figures of one process, or None if there is no such program or it takes too long."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "XDG_CACHE_HOME": cache,
        "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor",
    }
    command = [sys.executable, "-m", "scripts.bench.compile", "--worker", program, contender]
    try:
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return None
    done.check_returncode()
    return json.loads(done.stdout.splitlines()[-1])


def measure(program: str, contender: str) -> dict[str, float] | None:
    """Times the steps of a program in this process."""
    make = PROGRAMS[program]
    if contender == "jit":
        if (jit := JIT.get(program)) is None:
            return None
        step = jit()
    else:
        import torch

        torch.manual_seed(0)
        if contender in ("ours", "again"):
            import torch_xla_lite  # noqa: F401

        device = "jax" if contender in ("ours", "again") else "cpu"
        compiled = torch.compile if contender == "inductor" else lambda function: function
        torch.ones(1).to(device)
        step = make(device, compiled)
    wall, cpu = [time.perf_counter()], [time.process_time()]
    for number in range(STEPS):
        step(number)
        wall.append(time.perf_counter())
        cpu.append(time.process_time())
    return {
        "first": wall[1] - wall[0],
        "first cpu": cpu[1] - cpu[0],
        "three": wall[3] - wall[0],
        "three cpu": cpu[3] - cpu[0],
        "ten": wall[10] - wall[0],
        "ten cpu": cpu[10] - cpu[0],
        "later": statistics.median(b - a for a, b in itertools.pairwise(wall[10:])),
        "later cpu": statistics.median(b - a for a, b in itertools.pairwise(cpu[10:])),
    }


def median(runs: list[dict[str, float]]) -> dict[str, float]:
    """The median of each figure; empty if there is no run."""
    return {key: statistics.median(run[key] for run in runs) for key in (runs and runs[0])}


# --- the programs ---------------------------------------------------------------------------------
# Each takes a device, and what compiles a function for it: torch.compile, or nothing.


def chain(length: int) -> Callable:
    """Ops with Python numbers, each on the result of the one before."""

    def make(device: str, compiled: Callable) -> Step:
        import torch

        def run(y: torch.Tensor) -> torch.Tensor:
            for _ in range(length // 2):
                y = y * 1.0001 + 0.1
            return y.sum()

        run = compiled(run)
        x = torch.ones(64, device=device)
        return lambda number: run(x).item()

    return make


def chain_jit(length: int) -> Callable[[], Step]:
    def make() -> Step:
        import jax
        import jax.numpy as jnp

        @jax.jit
        def run(y: jax.Array) -> jax.Array:
            for _ in range(length // 2):
                y = y * 1.0001 + 0.1
            return y.sum()

        x = jnp.ones(64)
        return lambda number: run(x).item()

    return make


def training(model, inputs, loss_of, device, compiled, optimizer="Adam") -> Step:
    """Steps of training a model; `inputs(number)` gives a batch."""
    import torch

    model = compiled(model.to(device))
    optimizer = getattr(torch.optim, optimizer)(model.parameters(), lr=1e-3)

    def step(number: int, read: bool = True) -> float:
        optimizer.zero_grad()
        loss = loss_of(model, *(tensor.to(device) for tensor in inputs(number)))
        loss.backward()
        optimizer.step()
        return loss.item() if read else 0.0

    return step


def cross_entropy(model, x, labels):
    import torch

    return torch.nn.functional.cross_entropy(model(x), labels)


def perceptron():
    from torch import nn

    layers = [nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)]
    return nn.Sequential(*layers)


def images(batch: int, *shape: int) -> Callable:
    import torch

    x, labels = torch.randn(batch, *shape), torch.randint(0, 10, (batch,))
    return lambda number: (x, labels)


def mlp(device: str, compiled: Callable) -> Step:
    return training(perceptron(), images(64, 784), cross_entropy, device, compiled)


def mlp_jit() -> Step:
    import jax.numpy as jnp

    from torch_xla_lite.examples.jax_models import make_step
    from torch_xla_lite.examples.models import make_mlp

    run, state = make_step("mlp", make_mlp(), "adam", learning_rate=1e-3)
    x, labels = (jnp.asarray(tensor.numpy()) for tensor in images(64, 784)(0))

    def step(number: int) -> float:
        nonlocal state
        state, loss = run(state, x, labels)
        return loss.item()

    return step


def hundred_steps(device: str, compiled: Callable) -> Step:
    """A hundred steps of training, and one read."""
    step = training(perceptron(), images(64, 784), cross_entropy, device, compiled)
    return lambda number: [step(i, read=i == 99) for i in range(100)][-1]


def new_shapes(make_model: Callable, *shape: int) -> Callable:
    """Each batch has another size."""

    def make(device: str, compiled: Callable) -> Step:
        import torch

        def inputs(number: int) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.randn(10 + number, *shape), torch.randint(0, 10, (10 + number,))

        return training(make_model(), inputs, cross_entropy, device, compiled, "SGD")

    return make


def convolutions():
    from torch import nn

    layers = []
    for channels in (3, *[16] * 5):
        layers += [nn.Conv2d(channels, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))


def encoder():
    """With dropout, for 10 tokens."""
    from torch import nn

    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    layers = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    return nn.Sequential(layers, nn.Flatten(), nn.Linear(640, 10))


def vision(name: str) -> Callable:
    def make(device: str, compiled: Callable) -> Step:
        model = getattr(import_torchvision().models, name)(num_classes=10)
        return training(model, images(8, 3, 64, 64), cross_entropy, device, compiled)

    return make


@functools.cache
def import_torchvision():
    """torchvision, whose wheel has no libraries for this torch: its ops are declared first."""
    import torch

    for op in ("nms", "qnms"):
        torch.library.define(f"torchvision::{op}", "(Tensor a, Tensor b, float c) -> Tensor")
    import torchvision

    return torchvision


def gpt2():
    """Four layers of width 256, without its tokenizer."""
    import_torchvision()  # transformers imports it where it is installed.
    import transformers

    config = transformers.GPT2Config(n_layer=4, n_embd=256, n_head=4, vocab_size=1000)
    return transformers.GPT2LMHeadModel(config)


def tokens() -> Callable:
    import torch

    ids = torch.randint(0, 1000, (4, 64))
    return lambda number: (ids,)


def next_token(model, ids):
    return model(ids, labels=ids).loss


def language(device: str, compiled: Callable) -> Step:
    return training(gpt2(), tokens(), next_token, device, compiled)


def lstm(device: str, compiled: Callable) -> Step:
    """An LSTM over a hundred steps of time."""
    import torch

    class Classifier(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.recurrent = torch.nn.LSTM(32, 64, batch_first=True)
            self.head = torch.nn.Linear(64, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.recurrent(x)[0][:, -1])

    return training(Classifier(), images(16, 100, 32), cross_entropy, device, compiled)


def detection(device: str, compiled: Callable) -> Step:
    """Selects a number of boxes that depends on the data, and trains on them."""
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 5))

    def loss_of(model, x):
        predicted = model(x)
        kept = (predicted[:, 4] > 0).nonzero().squeeze(1)
        boxes = predicted[kept]
        classes = (boxes[:, 0] * 3).round().long().unique()
        return boxes[:, :4].square().mean() + 0.1 * classes.numel()

    return training(model, lambda number: (torch.randn(200, 16),), loss_of, device, compiled, "SGD")


def translator(device: str, compiled: Callable) -> Step:
    """Twenty training steps of a decoder. Each has its own length, and its own choice, word by
    word, between the right word and the predicted one."""
    import torch
    from torch import nn

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(50, 32)
            self.cell = nn.GRUCell(32, 32)
            self.head = nn.Linear(32, 50)

        def forward(self, text: torch.Tensor, choices: list[bool]) -> torch.Tensor:
            state, word, loss = self.words(text[:, 0]), text[:, 0], 0.0
            for i, is_right in enumerate(choices, start=1):
                state = self.cell(self.words(word), state)
                scores = self.head(state)
                loss = loss + nn.functional.cross_entropy(scores, text[:, i])
                word = text[:, i] if is_right else scores.argmax(1).detach()
            return loss

    draw = random.Random(0)

    def inputs(number: int) -> tuple[torch.Tensor]:
        return (torch.randint(0, 50, (8, draw.randint(5, 10))),)

    def loss_of(model: nn.Module, text: torch.Tensor) -> torch.Tensor:
        return model(text, [draw.random() < 0.5 for _ in range(text.shape[1] - 1)])

    step = training(Decoder(), inputs, loss_of, device, compiled)
    return lambda number: [step(i, read=i == 19) for i in range(20)][-1]


def normed(device: str, compiled: Callable) -> Step:
    """Sixteen layers that normalise a sum, as the first transformers did."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.norm = nn.Linear(32, 32), nn.LayerNorm(32)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.norm(x + self.linear(x))

    model = nn.Sequential(*(Layer() for _ in range(16)))
    x = torch.randn(32, 32)
    return training(
        model,
        lambda number: (x,),
        lambda model, x: model(x).square().mean(),
        device,
        compiled,
        "SGD",
    )


def normed_jit() -> Step:
    import jax
    import jax.numpy as jnp

    def norm(x: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt(variance + 1e-5) * scale + shift

    def loss_of(layers: list[tuple[jax.Array, ...]], x: jax.Array) -> jax.Array:
        for weight, bias, scale, shift in layers:
            x = norm(x + x @ weight + bias, scale, shift)
        return (x * x).mean()

    @jax.jit
    def run(layers: list[tuple[jax.Array, ...]], x: jax.Array) -> tuple[Any, jax.Array]:
        loss, gradients = jax.value_and_grad(loss_of)(layers, x)
        return jax.tree.map(lambda old, step: old - 1e-3 * step, layers, gradients), loss

    keys = jax.random.split(jax.random.key(0), 17)
    zeros, ones = jnp.zeros(32), jnp.ones(32)
    weights = [jax.random.normal(key, (32, 32)) * 0.1 for key in keys[1:]]
    layers = [(weight, zeros, ones, zeros) for weight in weights]
    x = jax.random.normal(keys[0], (32, 32))

    def step(number: int) -> float:
        nonlocal layers
        layers, loss = run(layers, x)
        return loss.item()

    return step


PROGRAMS: dict[str, Callable[[str, Callable], Step]] = {
    "chain-100": chain(100),
    "chain-1000": chain(1000),
    "chain-3000": chain(3000),
    "mlp": mlp,
    "resnet18": vision("resnet18"),
    "efficientnet_b0": vision("efficientnet_b0"),
    "gpt2": language,
    "lstm": lstm,
    "normed": normed,
    "new-shapes": new_shapes(perceptron, 784),
    "new-shapes-convolutions": new_shapes(convolutions, 3, 20, 20),
    "new-shapes-encoder": new_shapes(encoder, 10, 64),
    "hundred-steps": hundred_steps,
    "detection": detection,
    "translator": translator,
}
JIT: dict[str, Callable[[], Step]] = {
    "chain-100": chain_jit(100),
    "chain-1000": chain_jit(1000),
    "chain-3000": chain_jit(3000),
    "mlp": mlp_jit,
    "normed": normed_jit,
}

if __name__ == "__main__":
    main()
