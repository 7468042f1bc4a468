"""Fits the model of costs that decides when a graph is compiled (compiler/costs.json).

    python -m scripts.bench.costs measure samples.json    # about fifteen minutes
    python -m scripts.bench.costs fit samples.json        # writes compiler/costs.json

Each program runs with one thread and an empty cache. Its graphs, each a whole step, are
interpreted, compiled and executed, and a sample is the size of a graph, op by op, with the CPU
seconds of each. The fit is a least-squares one of relative errors with non-negative costs. What a
kind of op costs more or less than others needs evidence: each kind has a part of its own, which is
held small.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.optimize
import torch
from torch import nn

from scripts.bench import models as programs
from torch_xla_lite import _XLAC
from torch_xla_lite.compiler import costs as package_costs
from torch_xla_lite.lowering.base import registry

# (op, calls, elements of operands, elements of results, multiplications) of a call.
Size = tuple[str, float, float, float, float]
Sample = dict[str, Any]

# The weight of the penalty on a kind's own cost: larger values keep it closer to zero.
STIFFNESS = 0.05

# Microseconds of loading a program, and the part of what compiling it costs: of graphs of 22 to 668
# ops, 25 to 420 ms.
LOAD = (5000.0, 0.07)

# A kind is measured with arrays of these sizes, in graphs of these numbers of calls.
SIZES = (8, 300)
LENGTHS = (4, 24)


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["measure", "fit", "worker"])
    parser.add_argument("file", help="the samples; of the worker, the program")
    options = parser.parse_args()
    if options.command == "worker":
        print(json.dumps(samples_of(options.file)))
    elif options.command == "measure":
        measure(options.file)
    else:
        with open(options.file) as file:
            costs = fit(json.load(file))
        rows = [f'  "{kind}": {row}' for kind, row in sorted(costs["kinds"].items())]
        kinds = ",\n".join(rows)
        package_costs.FILE.write_text(
            f'{{\n "graph": {costs["graph"]},\n "kinds": {{\n{kinds}\n }}\n}}\n'
        )


# --- measuring ------------------------------------------------------------------------------------


def measure(path: str) -> None:
    """Writes the samples of all programs, each from a process of its own."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "TORCH_XLA_LITE_COMPILATION_CACHE": "0",
        "TORCH_XLA_LITE_SYNC_AFTER_STEP": "0",
        "TORCH_XLA_LITE_PENDING_LIMIT": "0",
    }
    samples: list[Sample] = []
    for name in [*MODELS, *KINDS]:
        command = [sys.executable, "-m", "scripts.bench.costs", "worker", name]
        done = subprocess.check_output(command, env=environment, text=True)
        new = json.loads(done.splitlines()[-1])
        samples += new
        for sample in new:
            print(name, *(f"{sample[key]:.6f}" for key in ("interpreted", "compiled", "executed")))
        with open(path, "w") as file:
            json.dump(samples, file)


def samples_of(name: str) -> list[Sample]:
    """A sample of each graph of a program."""
    if name in MODELS:
        step = programs.PROGRAMS[name]("jax", lambda model: model).train
        return [sample_of(name, lambda: with_pending_read(lambda: step(0)))]
    kind = KINDS[name]
    samples = []
    for size, length in itertools.product(SIZES, LENGTHS):
        torch.manual_seed(0)
        run = kind(torch.rand(size, size, device="jax") + 0.5)
        _XLAC.sync()
        label = f"{name} {size} {length}"
        samples.append(sample_of(label, lambda run=run, n=length: [run() for _ in range(n)]))
    return samples


def with_pending_read(step: Callable[[], Any]) -> Any:
    """Runs a step, whose read at the end leaves the graph pending."""
    item = torch.Tensor.item
    torch.Tensor.item = lambda self: self if self.is_jax else item(self)
    try:
        return step()
    finally:
        torch.Tensor.item = item


def sample_of(name: str, step: Callable[[], Any]) -> Sample:
    """Runs a step interpreted, and compiled, with what it returns alive."""

    def seconds(runs: int) -> list[float]:
        times = []
        for _ in range(runs):
            alive = step()
            start = time.process_time()
            _XLAC.sync()
            _XLAC.synchronize()
            times.append(time.process_time() - start)
            del alive
        return times

    never = {"graph": [1e30, 0, 0, 0, 1e30, 0], "kinds": {"other": [1] * 9, "write": [1] * 9}}
    package_costs.use(never)
    _XLAC.set_compile_when("repeated")
    alive = step()
    graph = _XLAC.pending_sizes()
    steps, roots, *_ = _XLAC.pending_graph()
    arguments = sum(not isinstance(step[0], str) for step in steps) + len(roots)
    _XLAC.sync()
    del alive
    interpreted = min(seconds(9)[1:])
    _XLAC.set_compile_when("first")
    # What donates its leaves is another graph when they are there for the first time.
    compiled, *executed = seconds(16)
    return {
        "name": name,
        "sizes": graph,
        "arguments": arguments,
        "interpreted": interpreted,
        "compiled": compiled - min(executed),
        "executed": min(executed),
    }


MODELS = list(programs.PROGRAMS)


def _layer(make: Callable[[Any], Any], shape: Sequence[int] | None = None) -> Callable:
    """The training of a layer, made for the size of a matrix; its inputs have another shape."""

    def kind(x: Any) -> Callable[[], Any]:
        layer = make(x.shape[0]).to("jax")
        inputs = x if shape is None else torch.rand(*shape, device="jax")
        count = itertools.count()

        def run() -> list[Any]:
            loss = layer(inputs + next(count))
            loss = (loss[0] if isinstance(loss, tuple) else loss).square().mean()
            return list(torch.autograd.grad(loss, list(layer.parameters())) or [loss])

        return run

    return kind


def _function(function: Callable[[Any], Any]) -> Callable:
    """A function, called with one matrix after the other: of equal calls XLA makes one."""

    def kind(x: Any) -> Callable[[], Any]:
        count = itertools.count()
        return lambda: function(x + next(count) / 100)

    return kind


def _writes(write: Callable[[Any, int], None]) -> Callable:
    def kind(x: Any) -> Callable[[], Any]:
        count = itertools.count()
        base = x.clone()

        def run() -> Any:
            write(base, next(count) % x.shape[0])
            return base

        return run

    return kind


def _rows(rows: int) -> Callable:
    """Products of a few rows and matrices that no cache has."""

    def kind(x: Any) -> Callable[[], Any]:
        size = 4 * x.shape[0]
        inputs = torch.rand(rows, size, device="jax")
        layers = itertools.cycle([nn.Linear(size, size).to("jax") for _ in range(max(LENGTHS))])
        return lambda: next(layers)(inputs)

    return kind


def _optimizer(name: str, **options: Any) -> Callable:
    def kind(x: Any) -> Callable[[], Any]:
        parameters = [nn.Parameter(x.clone()) for _ in range(6)]
        for parameter in parameters:
            parameter.grad = torch.rand_like(parameter)
        optimizer = getattr(torch.optim, name)(parameters, lr=1e-3, **options)
        return optimizer.step

    return kind


class _Labels(nn.Module):
    """A layer that makes words of numbers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 4).long() % 8


KINDS: dict[str, Callable] = {
    "arithmetic": _function(lambda x: (x * 1.5 + x) / (x - 9)),
    "comparisons": _function(lambda x: torch.where(x > 1, x, -x).clamp(0.1, 0.9)),
    "integers": _function(lambda x: (x * 9).to(torch.int64) // 2 % 7 & 3),
    "exponentials": _function(lambda x: x.exp().log1p().tanh().sigmoid()),
    "roots": _function(lambda x: x.sqrt().rsqrt().abs().pow(1.3)),
    "trigonometry": _function(lambda x: x.sin().atan().erf().cos()),
    "activations": _function(lambda x: nn.functional.gelu(nn.functional.silu(x.relu()))),
    "sums": _function(lambda x: x.sum(1) + x.mean(0) + x.amax(0)),
    "totals": _function(lambda x: x.sum() + x.max() + x.square().mean()),
    "variances": _function(lambda x: x.var(0) + x.norm(dim=1) + x.logsumexp(1)),
    "softmax": _function(lambda x: x.softmax(1) + x.log_softmax(0)),
    "scans": _function(lambda x: x.cumsum(0) + x.cumprod(1)),
    "sorts": _function(lambda x: [*x.sort(1), *x.topk(3), x.argmax(1), x.argsort(0)]),
    "products": _function(lambda x: (x @ x).t() @ x),
    "one row": _rows(1),
    "eight rows": _rows(8),
    "batched products": _function(
        lambda x: torch.bmm(x.expand(4, *x.shape).contiguous(), x.expand(4, *x.shape))
    ),
    "einsum": _function(lambda x: torch.einsum("ij,kj->ik", x, x).trace()),
    "views": _function(lambda x: x.t()[1:].reshape(-1)[::2].unsqueeze(0).expand(3, -1) + 1),
    "joins": _function(lambda x: torch.cat([x, torch.stack([x[0], x[1]])]).flip(0).roll(1)),
    "pads": _function(lambda x: nn.functional.pad(x, (1, 1, 2, 2)).tril().repeat(2, 1)),
    "gathers": _function(
        lambda x: x[torch.arange(5, device="jax")] + x.gather(0, (x[:5] > 1).long())
    ),
    "scatters": _function(
        lambda x: (
            torch.zeros_like(x)
            .scatter_add(0, (x > 1).long(), x)
            .index_add(0, torch.arange(4, device="jax"), x[:4])
        )
    ),
    "masks": _function(lambda x: x.masked_fill(x > 1, 0.0).lerp(x, 0.3)),
    "factories": _function(
        lambda x: [torch.arange(9, device="jax"), torch.eye(9, device="jax"), x.new_ones(9)]
    ),
    "random": _function(lambda x: torch.rand_like(x) + torch.randn_like(x)),
    "dropout": _function(lambda x: nn.functional.dropout(x)),
    "triangular": _function(
        lambda x: torch.linalg.cholesky(x @ x.t() + 99 * torch.eye(len(x), device="jax"))
    ),
    "solutions": _function(lambda x: torch.linalg.solve(x + 9, x)),
    "fourier": _function(lambda x: torch.fft.fft(x).real + torch.fft.irfft(x)[:, :1]),
    "complex": _function(lambda x: (torch.complex(x, x) * torch.complex(x, -x)).abs()),
    "losses": _function(
        lambda x: (
            nn.functional.cross_entropy(x, x.argmax(1))
            + nn.functional.mse_loss(x, x + 1)
            + nn.functional.binary_cross_entropy_with_logits(x, x)
        )
    ),
    "distances": _function(lambda x: torch.cdist(x, x)),
    "interpolation": _function(lambda x: nn.functional.interpolate(x[None, None], scale_factor=2)),
    "rows": _writes(lambda x, i: x.__setitem__(i, x[0] * 2)),
    "elements": _writes(lambda x, i: x.__setitem__((i, i), 1.5)),
    "linear": _layer(lambda n: nn.Linear(n, n)),
    "layer norm": _layer(lambda n: nn.LayerNorm(n)),
    "batch norm": _layer(lambda n: nn.BatchNorm1d(n)),
    "convolution": _layer(lambda n: nn.Conv2d(8, 8, 3, padding=1), (4, 8, 20, 20)),
    "deep convolution": _layer(lambda n: nn.Conv2d(64, 64, 3), (2, 64, 16, 16)),
    "strided convolution": _layer(lambda n: nn.Conv2d(3, 16, 3, 2), (4, 3, 64, 64)),
    "images": _layer(lambda n: nn.Sequential(nn.BatchNorm2d(16), nn.ReLU()), (4, 16, 32, 32)),
    "bags": _layer(lambda n: nn.Sequential(_Labels(), nn.EmbeddingBag(n, 16), nn.Linear(16, 4))),
    "pools": _layer(
        lambda n: nn.Sequential(
            nn.Conv2d(3, 4, 1), nn.MaxPool2d(2), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1)
        ),
        (4, 3, 32, 32),
    ),
    "lstm": _layer(lambda n: nn.LSTM(16, 16), (12, 4, 16)),
    "gru cell": _layer(lambda n: nn.GRUCell(n, n)),
    "attention": _layer(lambda n: nn.TransformerEncoderLayer(32, 4, 64, dropout=0), (10, 4, 32)),
    "embedding": _layer(lambda n: nn.Sequential(_Labels(), nn.Embedding(n, 16), nn.Linear(16, 4))),
    "large embedding": _layer(lambda n: nn.Sequential(_Labels(), nn.Embedding(20_000, n))),
    "sgd": _optimizer("SGD", momentum=0.9),
    "adam": _optimizer("Adam"),
    "fused adam": _optimizer("AdamW", fused=True),
}


# --- fitting --------------------------------------------------------------------------------------


def fit(samples: list[Sample]) -> dict[str, Any]:
    """The costs, in microseconds, of the form of costs.json."""
    # Programs that torch's own kernels run alone are left out.
    samples = [sample for sample in samples if sample["sizes"] and sample["compiled"] > 0.005]
    kinds = sorted({kind_of(size[0]) for sample in samples for size in sample["sizes"]} - {"other"})
    # A program counts for as much as some kinds.
    weights = [12 if sample["name"] in MODELS else 1 for sample in samples]
    samples = [x for x, weight in zip(samples, weights, strict=True) for _ in range(weight)]
    # The numbers of each kind: calls, elements of operands and of results, multiplications.
    totals = [[sums(sample, kind) for kind in kinds] for sample in samples]
    run = np.array(totals).reshape(len(samples), -1)
    calls = np.array([[kind[0] for kind in sample] for sample in totals])
    arguments = np.array([[1.0, sample["arguments"]] for sample in samples])
    target = {
        key: np.array([sample[key] for sample in samples]) * 1e6
        for key in ("interpreted", "compiled", "executed")
    }
    interpreted, _ = solve(run, 4, np.zeros((len(samples), 0)), target["interpreted"])
    compiled, of_graph = solve(calls, 1, arguments, target["compiled"])
    executed, of_execution = solve(run, 4, arguments, target["executed"])
    costs = {kind: [*interpreted[i], *executed[i], *compiled[i]] for i, kind in enumerate(kinds)}
    costs["other"] = list(np.median(list(costs.values()), axis=0))
    return {
        "graph": rounded([*of_graph, *of_execution, *LOAD]),
        "kinds": {kind: rounded(numbers) for kind, numbers in costs.items()},
    }


def kind_of(op: str) -> str:
    """The kind of an op, as torch_xla_lite/compiler/costs.py has it."""
    return registry.DECLARED.get(op, "write" if op == "write" else "other")


def sums(sample: Sample, kind: str) -> list[float]:
    """The size of all calls of a kind."""
    of_kind = [
        package_costs.counted(op, size) for op, *size in sample["sizes"] if kind_of(op) == kind
    ]
    return [sum(column) for column in zip(*of_kind, strict=True)] or [0.0] * 4


def solve(
    features: np.ndarray, width: int, shared: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Costs [kind, feature], and those of the shared features.

    Each kind's cost is one that all kinds have, and one of its own. A sample's error is as large
    for half of its costs as for twice as much.
    """
    num_samples, columns = features.shape
    common = features.reshape(num_samples, -1, width).sum(1)
    matrix = np.hstack([features, common, shared])
    # The unit of each feature makes its part of the samples' costs about one.
    scale = np.maximum((matrix / target[:, None]).max(0), 1e-30)
    stiff = np.diag([STIFFNESS] * columns + [0.0] * (matrix.shape[1] - columns))
    guess = target
    for _ in range(30):
        weights = 1 / np.sqrt(target * np.maximum(guess, target / 100))
        rows = np.vstack([matrix * weights[:, None] / scale, stiff])
        wanted = np.concatenate([target * weights, np.zeros(len(stiff))])
        found = scipy.optimize.nnls(rows, wanted, maxiter=100_000)[0] / scale
        guess = matrix @ found
    errors = np.abs(np.log2(np.maximum(guess / target, 1e-3)))
    print("median and worst factor:", 2 ** np.median(errors), 2 ** errors.max())
    own = found[:columns].reshape(-1, width) + found[columns : columns + width]
    return own, found[columns + width :]


def rounded(numbers: Sequence[float]) -> list[float]:
    return [float(f"{number:.3g}") for number in numbers]


if __name__ == "__main__":
    main()
