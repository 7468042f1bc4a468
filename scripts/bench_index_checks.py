#!/usr/bin/env python3
"""Measures the cost of index checks: runs programs with and without them, alternately.

    python scripts/bench_index_checks.py

Prints the processor time of one run on one core, the median of --rounds runs, and the ratio.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable

if __name__ == "__main__":
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.environ["TORCH_XLA_LITE_COMPILATION_CACHE"] = "0"  # Its keys are those of one setting.

import torch
import torch.nn.functional as F
from bench_runtime import interleave

import torch_xla_lite
from torch_xla_lite import _XLAC, index_errors

Program = Callable[[], torch.Tensor]


def programs() -> dict[str, Program]:
    table = torch.randn(10_000, 64, device="jax")
    tokens = torch.randint(0, 10_000, (32, 32), device="jax")
    wide = torch.randn(1000, 1000, device="jax")
    places = torch.randint(0, 1000, (1000, 1000), device="jax")
    labels = torch.randint(0, 10, (64,), device="jax")
    logits = torch.randn(64, 10, device="jax")
    model = torch.nn.Sequential(
        torch.nn.Embedding(10_000, 64),
        torch.nn.Flatten(),
        torch.nn.Linear(2048, 256),
        torch.nn.ReLU(),
        torch.nn.Linear(256, 10),
    ).to("jax")
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def train() -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens), labels[:32])
        loss.backward()
        optimizer.step()
        return loss.detach()

    return {
        "table[tokens], 1,024 rows of 64": lambda: table[tokens],
        "gather of 1,000,000 elements": lambda: wide.gather(1, places),
        "scatter_add of 1,000,000 elements": lambda: wide.scatter_add(1, places, wide),
        "cross_entropy, 64 x 10": lambda: F.cross_entropy(logits, labels),
        "training step: embedding, two linear layers, SGD": train,
    }


def timed(program: Program, checks: bool, repeat: int) -> Callable[[], float]:
    """The seconds of one call, with graphs that were compiled with or without checks."""

    def run() -> float:
        os.environ[index_errors.VARIABLE] = "" if checks else "0"
        _XLAC.clear_cache()
        program().cpu()
        start = time.process_time()
        for _ in range(repeat):
            program().cpu()
        return (time.process_time() - start) / repeat

    return run


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print("| program | without, ms | with, ms | ratio |\n|---|---:|---:|---:|")
    for name, program in programs().items():
        torch_xla_lite.sync()
        contenders = {
            "without": timed(program, False, 20),
            "with": timed(program, True, 20),
        }
        times = interleave(contenders, rounds)
        ratio = statistics.median(
            a / b for a, b in zip(times["with"], times["without"], strict=True)
        )
        without, with_ = (1000 * statistics.median(times[key]) for key in ("without", "with"))
        print(f"| {name} | {without:.3f} | {with_:.3f} | {ratio:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
