"""Measures steps of models, in several forms, with one thread and with the default ones.

    python -m scripts.bench.steps                                # everything, about an hour
    python -m scripts.bench.steps --only gpt2 --forms compiled eager inductor
    python -m scripts.bench.steps --only mlp --forms ours jax --threads one --json result.json

    ours      device jax as it is for users, with an empty cache of compiled programs
    again     the same in a second process, with the cache that "ours" left
    compiled  device jax, where each graph is compiled when it is met
    backend   the same with torch.compile(model, backend="torch_xla_lite")
    pure      the same with pure(model)
    eager     torch's CPU kernels
    inductor  torch.compile
    jax       jax.jit of a step that is written in jax, for three models, in training

Each form of a program has a process of its own, and these run in turn. "one" is a process on one
core, "default" one on all of them with as many threads as torch and XLA take. A step ends with a
read. "first" is the CPU time of the first training step, without imports and the making of the
model. The others are later steps by the clock, after as many to warm up: nothing else may run. A
ratio is that of "ours", or of "compiled" where "ours" is not measured, to the faster of eager and
inductor. A run that takes longer than --limit seconds has no figures.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scripts.bench import harness

FORMS = ("ours", "again", "compiled", "backend", "pure", "eager", "inductor", "jax")
_COMPILED = ("compiled", "backend", "pure")
THREADS = ("one", "default")
# Kind -> its unit, how many of that are a second, and the goal for the ratio.
KINDS = {"first": ("CPU s", 1, 2.0), "training": ("ms", 1e3, 1.0), "inference": ("ms", 1e3, 1.0)}
SECONDS = 2.0  # of steps that are measured, and as many before
LEAST_STEPS = 10

Run = dict[str, float]


def main() -> None:
    """Runs the command line."""
    if sys.argv[1:2] == ["--worker"]:
        print(json.dumps(measure(*sys.argv[2:])))
        return
    options = _parser().parse_args()
    report = harness.Report(harness.machine())
    for name in options.only:
        rows = []
        for threads in options.threads:
            runs: dict[str, list[Run]] = {form: [] for form in options.forms}
            for _ in range(options.rounds):
                with tempfile.TemporaryDirectory() as cache:
                    for form, done in runs.items():
                        done += start(name, form, threads, cache, options.limit)
            rows += [row(kind, threads, runs) for kind in KINDS]
        report.add(name, rows)
    report.write(options.json)


def _parser() -> argparse.ArgumentParser:
    from scripts.bench.models import PROGRAMS

    parser = harness.arguments(__doc__)
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS)
    parser.add_argument("--threads", nargs="+", choices=THREADS, default=THREADS)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--limit", type=float, default=180)
    return parser


def row(kind: str, threads: str, runs: Mapping[str, Sequence[Run]]) -> harness.Row:
    """The medians of the runs of each form."""
    unit, scale, goal = KINDS[kind]
    times = {
        form: scale * statistics.median(run[kind] for run in done)
        for form, done in runs.items()
        if done and kind in done[0]
    }
    ours = times.get("ours", times.get("compiled"))
    others = [times[form] for form in ("eager", "inductor") if form in times]
    ratio = ours / min(others) if ours and others else None
    return harness.Row(f"{kind}, {threads}", unit, times, ratio, goal if ratio else None)


def start(name: str, form: str, threads: str, cache: str, limit: float) -> list[Run]:
    """The seconds of each kind of step, from a process; empty if it takes too long."""
    environment = {
        **os.environ,
        "TORCH_XLA_LITE_COMPILE": "first" if form in _COMPILED else "repeated",
        "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor",
        # What another form has compiled would be loaded.
        "XDG_CACHE_HOME": f"{cache}/{'ours' if form == 'again' else form}",
    }
    environment.pop("OMP_NUM_THREADS", None)
    command = [sys.executable, "-m", "scripts.bench.steps", "--worker", name, form]
    if threads == "one":
        core = str(min(os.sched_getaffinity(0)))
        command = ["taskset", "--cpu-list", core, *command]
    try:
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, timeout=limit, check=True
        )
    except subprocess.TimeoutExpired:
        return []
    run = json.loads(done.stdout.splitlines()[-1])
    return [run] if run else []


def measure(name: str, form: str) -> Run:
    """Times the steps of a program in this process."""
    import torch

    torch.manual_seed(0)
    steps = _steps_in_jax(name) if form == "jax" else _steps(name, form)
    result: Run = {}
    for kind, step in steps.items():
        if kind == "training":
            result["first"] = harness.timed(lambda step=step: step(0), time.process_time)
        result[kind] = later(step)
    return result


def _steps(name: str, form: str) -> dict[str, Callable[[int], float]]:
    import torch

    from scripts.bench.models import PROGRAMS

    wraps: dict[str, Callable[[Any], Any]] = {"inductor": torch.compile}
    device = "cpu" if form in ("eager", "inductor") else "jax"
    if device == "jax":
        import torch_xla_lite

        wraps["backend"] = lambda model: torch.compile(model, backend="torch_xla_lite")
        wraps["pure"] = torch_xla_lite.pure
        torch.ones(1).to(device)  # The first upload starts jax's backend.
    program = PROGRAMS[name](device, wraps.get(form, lambda model: model))
    return {"training": program.train, "inference": program.infer}


def _steps_in_jax(name: str) -> dict[str, Callable[[int], float]]:
    import jax.numpy as jnp

    from scripts.bench.models import example_case
    from torch_xla_lite.examples.jax_models import FORWARDS, make_step

    if name not in FORWARDS:
        return {}
    case = example_case(name)
    run, state = make_step(name, case.make(), "adam", learning_rate=1e-3)
    inputs, targets = (jnp.asarray(part.numpy()) for part in case.batch())

    def step(number: int) -> float:
        nonlocal state
        state, loss = run(state, inputs, targets)
        return float(loss)

    return {"training": step}


def later(step: Callable[[int], float]) -> float:
    """The median seconds of a step, after as many to warm up."""
    number = 0
    for times in ([], measured := []):
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end or len(times) < LEAST_STEPS:
            number += 1
            times.append(harness.timed(functools.partial(step, number)))
    return statistics.median(measured)


if __name__ == "__main__":
    main()
