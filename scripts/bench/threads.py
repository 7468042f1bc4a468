"""Measures later steps with the threads that a process has by default, beside one thread.

    python -m scripts.bench.threads                      # some ten minutes on two cores
    python -m scripts.bench.threads --only mlp resnet18
    python -m scripts.bench.threads --json result.json

Each model is trained, then called without gradients, in a process of its own for each contender:
device jax with every graph compiled, torch's eager CPU kernels, and `torch.compile` with inductor.
A step ends with a read. "one" is a process on one core; "default" one on all, with as many threads
as torch and XLA take there. The figures are medians of the steps of --rounds processes, by the
clock: nothing else may run. The ratio is ours divided by the faster of the other two.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from scripts.bench import harness
from scripts.bench.compile import (
    convolutions,
    cross_entropy,
    encoder,
    gpt2,
    images,
    import_torchvision,
    next_token,
    perceptron,
    tokens,
)

if TYPE_CHECKING:
    import torch

CONTENDERS = ("ours", "eager", "inductor")
KINDS = ("training", "inference")
THREADS = ("one", "default")
SECONDS = 2.0  # of steps that are measured, and as many before
LEAST_STEPS = 10


def main() -> None:
    """Runs the command line."""
    parser = harness.arguments(__doc__)
    parser.add_argument("--only", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(*options.worker)))
        return
    report = harness.Report(harness.machine())
    for name in options.only:
        report.add(name, rows(name, options.rounds))
    report.write(options.json)


def rows(name: str, rounds: int) -> list[harness.Row]:
    """A row for training and inference, with one thread and with the default ones."""
    found = []
    for threads in THREADS:
        runs: dict[str, list[dict[str, float]]] = {contender: [] for contender in CONTENDERS}
        for _ in range(rounds):
            for contender in CONTENDERS:
                runs[contender].append(start(name, contender, threads))
        for kind in KINDS:
            times = {key: statistics.median(r[kind] for r in of) for key, of in runs.items()}
            ratio = times["ours"] / min(times["eager"], times["inductor"])
            found.append(harness.Row(f"{kind}, {threads}", "ms", times, ratio, 1.0))
    return found


def start(name: str, contender: str, threads: str) -> dict[str, float]:
    """The milliseconds of a step of each kind, in a process of its own."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache, "TORCHINDUCTOR_CACHE_DIR": cache}
        environment.pop("OMP_NUM_THREADS", None)
        command = [sys.executable, "-m", "scripts.bench.threads", "--worker", name, contender]
        if threads == "one":
            core = str(min(os.sched_getaffinity(0)))
            command = ["taskset", "--cpu-list", core, *command]
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
    return json.loads(done.stdout.splitlines()[-1])


def measure(name: str, contender: str) -> dict[str, float]:
    """Times both kinds of steps in this process."""
    import torch

    if contender == "ours":
        from torch_xla_lite import _XLAC

        _XLAC.set_compile_when("first")
    torch.manual_seed(0)
    make, inputs, loss_of = MODELS[name]
    device = "jax" if contender == "ours" else "cpu"
    model = make().to(device)
    batch = [tensor.to(device) for tensor in inputs()(0)]
    compiled = torch.compile(model) if contender == "inductor" else model
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def train() -> None:
        optimizer.zero_grad()
        loss = loss_of(compiled, *batch)
        loss.backward()
        optimizer.step()
        loss.item()

    @torch.no_grad
    def infer() -> None:
        loss_of(compiled, *batch).item()

    result = {"training": median(train)}
    model.eval()
    return {**result, "inference": median(infer)}


def median(step: Callable[[], None]) -> float:
    """The milliseconds of a step, after as many to warm up."""
    for times in ([], found := []):
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end or len(times) < LEAST_STEPS:
            times.append(harness.timed(step))
    return statistics.median(found) * 1e3


def resnet18() -> torch.nn.Module:
    return import_torchvision().models.resnet18(num_classes=10)


# A model, its inputs (a function of the step's number) and its loss.
MODELS: dict[str, tuple[Callable, Callable, Callable]] = {
    "mlp": (perceptron, lambda: images(64, 784), cross_entropy),
    "convnet": (convolutions, lambda: images(16, 3, 32, 32), cross_entropy),
    "encoder": (encoder, lambda: images(32, 10, 64), cross_entropy),
    "gpt2": (gpt2, tokens, next_token),
    "resnet18": (resnet18, lambda: images(8, 3, 64, 64), cross_entropy),
}

if __name__ == "__main__":
    main()
