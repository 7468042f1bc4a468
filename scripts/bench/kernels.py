"""Compares the kernels of torch_xla_lite/csrc/kernels with jax's lowering of the same functions.

    python -m scripts.bench.kernels                    # on the CPU, one core, about a minute
    python -m scripts.bench.kernels --quick            # fewer repetitions

On a machine with a GPU it first compares the results of all CUDA kernels with those of the CPU
kernels, for each dtype, and then times them on the GPU. This needs jax's CUDA plugin and the
library:

    pip install 'jax[cuda13]==0.10.2'
    bazel build //torch_xla_lite:cuda_outputs
    python -m scripts.bench.kernels --cuda bazel-bin/torch_xla_lite/lib/libtorch_xla_lite_cuda.so

The compared functions run alternately in one process; a ratio is the median of the ratios of
neighbouring runs. On one CPU core processor time is measured, which other processes disturb less;
otherwise wall-clock time. Every row is the value and the gradient.

Exit code 1 if a CUDA kernel and its CPU version differ by more than rounding, else 0.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch

from scripts.bench import harness
from torch_xla_lite.lowering.base import kernels

Function = Callable[..., Any]


class Case(NamedTuple):
    """One row of the table.

    Attributes:
      name: the function and its size.
      ours, jax: functions that give value and gradient, with their operands.
      torch: the same with torch's CPU kernels.
    """

    name: str
    ours: tuple[Function, tuple[Any, ...]]
    jax: tuple[Function, tuple[Any, ...]]
    torch: Callable[[], object]


# --- softmax_cross_entropy ------------------------------------------------------------------------


def our_cross_entropy(logits: jax.Array, labels: jax.Array) -> tuple[jax.Array, jax.Array]:
    loss, normalizer = kernels.softmax_cross_entropy(logits, labels, ignore_index=-100)
    grad = jnp.full(loss.shape, 1 / max(1, loss.size), loss.dtype)
    return loss.mean(), kernels.softmax_cross_entropy_backward(
        grad, logits, labels, normalizer, ignore_index=-100
    )


@jax.value_and_grad
def jax_cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    wide = logits.astype(jnp.promote_types(logits.dtype, jnp.float32))
    chosen = jnp.take_along_axis(jax.nn.log_softmax(wide), labels[:, None], 1)
    return -chosen.mean()


def cross_entropy_case(batch: int, classes: int, dtype: str) -> Case:
    generator = np.random.default_rng(0)
    logits = jnp.asarray(generator.standard_normal((batch, classes)) * 3).astype(dtype)
    labels = jnp.asarray(generator.integers(0, classes, batch), jnp.int32)
    x = torch.tensor(np.asarray(logits, np.float32), dtype=getattr(torch, dtype))
    x.requires_grad_()
    y = torch.tensor(np.asarray(labels)).long()
    return Case(
        f"softmax_cross_entropy, {batch} x {classes} {dtype}",
        (our_cross_entropy, (logits, labels)),
        (jax_cross_entropy, (logits, labels)),
        lambda: torch.autograd.grad(torch.nn.functional.cross_entropy(x, y), x),
    )


def cases() -> Iterator[Case]:
    for batch, classes, dtype in (
        (4096, 10, "float32"),
        (256, 1000, "float32"),
        (256, 1000, "bfloat16"),
        (256, 32_000, "float32"),
        (256, 32_000, "bfloat16"),
    ):
        yield cross_entropy_case(batch, classes, dtype)


# --- CUDA and CPU ---------------------------------------------------------------------------------


def comparisons() -> Iterator[tuple[str, Function, tuple[Any, ...]]]:
    """Inputs for which both devices must agree: odd sizes, ignored rows."""
    generator = np.random.default_rng(0)
    for dtype in ("float32", "float64", "bfloat16", "float16"):
        for batch, classes in (
            (70_000, 3),
            (33, 1024),
            (5, 1025),
            (7, 50_001),
            (0, 4),
            (9, 50_000),
        ):
            logits = jnp.asarray(generator.standard_normal((batch, classes)) * 5).astype(dtype)
            labels = generator.integers(0, classes, batch)
            labels[::4] = -100
            operands = (logits, jnp.asarray(labels))
            yield f"softmax_cross_entropy {batch} x {classes} {dtype}", our_cross_entropy, operands


def cuda_differs() -> bool:
    """Runs each kernel on the CPU and on the GPU; reports those whose results differ."""
    tolerance = {"float64": 1e-12, "float32": 2e-6, "bfloat16": 8e-3, "float16": 1e-3}
    wrong = 0
    with jax.enable_x64(True):
        for name, function, operands in comparisons():
            results = []
            for platform in ("cpu", "cuda"):
                placed = jax.device_put(operands, jax.devices(platform)[0])
                results.append(jax.tree.leaves(jax.jit(function)(*placed)))
            for cpu, gpu in zip(*results, strict=True):
                limit = tolerance[str(operands[0].dtype)]
                a, b = np.asarray(cpu, np.float64), np.asarray(gpu, np.float64)
                if not np.allclose(a, b, rtol=limit, atol=limit, equal_nan=True):
                    wrong += 1
                    print(f"differs: {name}")
    print(f"CUDA kernels that differ from their CPU versions: {wrong}")
    return wrong > 0


# --- the table ------------------------------------------------------------------------------------


def measure(case: Case, rounds: int, on_gpu: bool, clock: Callable[[], float]) -> harness.Row:
    """Times the contenders, each compiled."""
    contenders: dict[str, harness.Contender] = {}
    for name, (function, operands) in (("ours", case.ours), ("jax", case.jax)):
        compiled = jax.jit(function).lower(*operands).compile()
        contenders[name] = lambda run=compiled, given=operands: harness.timed(
            lambda: jax.block_until_ready(run(*given)), clock
        )
    if not on_gpu:
        contenders["torch's CPU"] = lambda: harness.timed(case.torch, clock)
    harness.interleave(contenders, 1)
    times = harness.interleave(contenders, rounds)
    return harness.compare(case.name, times, "ms", against="jax", scale=1e3)


def main() -> int:
    """Runs the command line."""
    parser = harness.arguments(__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--cores", type=int, default=1, help="how many to use; default: 1")
    parser.add_argument("--cuda", type=Path, metavar="FILE", help="library with the CUDA kernels")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[: options.cores]
    os.sched_setaffinity(0, cores)  # Before XLA starts a thread for each core that it may use.
    torch.set_num_threads(len(cores))

    report = harness.Report(harness.machine(torch=torch.__version__, jax=jax.__version__))
    on_gpu = jax.default_backend() == "gpu"
    if on_gpu and options.cuda:
        kernels._CUDA = options.cuda
    if on_gpu and cuda_differs():
        return 1
    one_core = len(os.sched_getaffinity(0)) == 1
    clock = time.process_time if one_core and not on_gpu else time.perf_counter
    rounds = 5 if options.quick else 21
    rows = [measure(case, rounds, on_gpu, clock) for case in cases()]
    report.add("value and gradient; the ratio is ours / jax", rows)
    report.write(options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
