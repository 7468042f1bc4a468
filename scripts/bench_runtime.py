#!/usr/bin/env python3
"""Measures the runtime against torch's CPU kernels and against hand-written jax.

    python scripts/bench_runtime.py                    # everything, about five minutes
    python scripts/bench_runtime.py --quick            # fewer repetitions, about a minute
    python scripts/bench_runtime.py --only record      # of: record, sync, step, recompile, import
    python scripts/bench_runtime.py --json result.json

The compared programs run alternately in one process, and a ratio is the median of the ratios of
neighbouring runs, so that a temporary load affects both. All use one core, unless --cores says
otherwise: with more, torch's OpenMP threads and XLA's thread pool compete, and the result depends
on chance.

Tables go to the standard output. The JSON file is stable, for programs: machine, goals, and for
every row its medians and ratio. The exit code is 0 even if a goal is missed.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import jax
import jax.numpy as jnp
import torch
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

import torch_xla_lite
from torch_xla_lite import _XLAC
from torch_xla_lite.examples.jax_models import make_step
from torch_xla_lite.examples.models import MODELS, ModelCase

OPS = 1000  # length of a recorded chain

Contender = Callable[[], float]  # runs once and returns the seconds that it took


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
      name: what was measured.
      unit: of the values.
      values: contender -> median.
      ratio: ours divided by the contender of the goal, or our value if the goal is absolute.
      goal: the largest acceptable ratio.
    """

    name: str
    unit: str
    values: dict[str, float]
    ratio: float
    goal: float


@dataclass
class Report:
    """All measurements, and the machine."""

    machine: dict[str, str]
    sections: dict[str, list[Row]] = field(default_factory=dict)


@dataclass(frozen=True)
class Effort:
    """The number of repetitions."""

    rounds: int
    steps: int  # training steps in each round


FULL = Effort(rounds=31, steps=10)
QUICK = Effort(rounds=5, steps=3)


# --- measuring ------------------------------------------------------------------------------------


def interleave(contenders: dict[str, Contender], rounds: int) -> dict[str, list[float]]:
    """Runs the contenders in turn, `rounds` times, in an order that rotates."""
    names = list(contenders)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds):
            for place in range(len(names)):
                name = names[(turn + place) % len(names)]
                seconds[name].append(contenders[name]())
    finally:
        gc.enable()
    return seconds


def compare(
    name: str,
    seconds: dict[str, list[float]],
    *,
    against: str,
    unit: str,
    scale: float,
    goal: float,
) -> Row:
    """A row that compares "ours" with the contender `against`, run by run."""
    ratios = [ours / other for ours, other in zip(seconds["ours"], seconds[against], strict=True)]
    medians = {key: statistics.median(values) * scale for key, values in seconds.items()}
    return Row(name, unit, medians, statistics.median(ratios), goal)


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


# --- recording ------------------------------------------------------------------------------------


def _add(y: torch.Tensor, c: torch.Tensor) -> None:
    for _ in range(OPS):
        y = y + c


def _mul(y: torch.Tensor, c: torch.Tensor) -> None:
    for _ in range(OPS):
        y = y * 1.01


def _relu(y: torch.Tensor, c: torch.Tensor) -> None:
    for _ in range(OPS):
        y = torch.relu(y)


def _sum(y: torch.Tensor, c: torch.Tensor) -> None:
    for _ in range(OPS):
        y = y.sum(1, keepdim=True)


def _mm(y: torch.Tensor, c: torch.Tensor) -> None:
    for _ in range(OPS):
        y = y.mm(c)


def _add_(y: torch.Tensor, c: torch.Tensor) -> None:
    y = y + c
    for _ in range(OPS):
        y.add_(c)


def _view(y: torch.Tensor, c: torch.Tensor) -> None:
    for _ in range(OPS // 2):
        y = y.view(16)
        y = y.view(4, 4)


RECORDED = (
    ("add", _add, 0.75),
    ("mul by a Python scalar", _mul, 0.9),
    ("relu", _relu, 0.9),
    ("sum", _sum, 0.9),
    ("mm", _mm, 0.9),
    ("in-place add", _add_, 1.3),
    ("view", _view, 1.2),
)


def measure_recording(effort: Effort) -> list[Row]:
    """Time per op of recording a chain of dependent ops that is never run."""
    rows = []
    for name, chain, goal in track(RECORDED, "record", transient=True):
        start, operand = torch.ones(4, 4), torch.eye(4)
        on_jax = start.jax(), operand.jax()
        torch_xla_lite.sync()

        def ours(chain: Callable[..., None] = chain, on_jax: tuple = on_jax) -> float:
            return timed(lambda: chain(*on_jax))

        def eager(chain: Callable[..., None] = chain, on_cpu: tuple = (start, operand)) -> float:
            return timed(lambda: chain(*on_cpu))

        ours(), eager()
        seconds = interleave({"ours": ours, "torch CPU": eager}, effort.rounds)
        rows.append(
            compare(name, seconds, against="torch CPU", unit="us/op", scale=1e6 / OPS, goal=goal)
        )
    return rows


# --- running what was recorded --------------------------------------------------------------------


def measure_sync(effort: Effort) -> list[Row]:
    """Overhead of running a cached graph over calling the executable; cost of reading a number."""
    x, c = torch.ones(4, 4).jax(), torch.full((4, 4), 0.5).jax()

    def ours() -> float:
        y = x
        for _ in range(OPS):
            y = y + c
        return timed(torch_xla_lite.sync)

    def hand_chain(y: jax.Array, c: jax.Array) -> jax.Array:
        for _ in range(OPS):
            y = y + c
        return y

    arrays = jnp.ones((4, 4)), jnp.full((4, 4), 0.5)
    compiled = jax.jit(hand_chain).lower(*arrays).compile()

    def call() -> float:
        return timed(lambda: compiled(*arrays).block_until_ready())

    for _ in range(3):
        ours(), call()
    seconds = interleave({"ours": ours, "jax call": call}, 4 * effort.rounds)
    beyond = [(a - b) / OPS for a, b in zip(seconds["ours"], seconds["jax call"], strict=True)]
    medians = {key: statistics.median(values) * 1e6 for key, values in seconds.items()}
    per_node = statistics.median(beyond) * 1e9
    rows = [Row(f"sync of {OPS} nodes beyond the call, ns/node", "us", medians, per_node, 50)]

    scalar, one = torch.tensor(1.5).jax(), torch.tensor(0.5).jax()

    def item() -> float:
        return timed(lambda: (scalar + one).item())

    for _ in range(3):
        item()
    seconds = interleave({"ours": item}, 20 * effort.rounds)
    trip = statistics.median(seconds["ours"]) * 1e6
    return [*rows, Row("record an add and .item(), us", "us", {"ours": trip}, trip, 12)]


# --- training steps -------------------------------------------------------------------------------


OPTIMIZERS: dict[str, tuple[float, Callable[..., torch.optim.Optimizer]]] = {
    "sgd": (1e-2, lambda params, lr: torch.optim.SGD(params, lr=lr, momentum=0.9)),
    "adam": (1e-3, lambda params, lr: torch.optim.Adam(params, lr=lr)),
}
STEP_GOAL = {"mlp": 1.8, "convnet": 1.2, "transformer": 1.2}


# When the loops of a row read the loss. Reading it in each step makes Python wait for XLA; reading
# it at the end lets Python record the next step meanwhile, on a second core.
READINGS = ("loss each step", "loss at the end")


class TorchTraining:
    """Training of a model, as in an ordinary PyTorch program."""

    def __init__(self, case: ModelCase, optimizer: str, device: str) -> None:
        torch.manual_seed(0)
        self.model = case.make().to(device)
        self.inputs, self.targets = (part.to(device) for part in case.batch())
        rate, make = OPTIMIZERS[optimizer]
        self.optimizer = make(self.model.parameters(), rate)

    def start_step(self) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.model(self.inputs), self.targets)
        loss.backward()
        self.optimizer.step()
        if loss.is_jax:
            torch_xla_lite.sync()
        return loss.detach()

    def step(self) -> float:
        return self.start_step().item()


class JaxTraining:
    """The same training, written by hand in jax, from the same parameters."""

    def __init__(self, case: ModelCase, optimizer: str) -> None:
        torch.manual_seed(0)
        rate = OPTIMIZERS[optimizer][0]
        self.jitted, self.state = make_step(case.name, case.make(), optimizer, learning_rate=rate)
        self.inputs, self.targets = (jnp.asarray(part.numpy()) for part in case.batch())

    def start_step(self) -> jax.Array:
        self.state, loss = self.jitted(self.state, self.inputs, self.targets)
        return loss

    def step(self) -> float:
        return float(self.start_step())


def measure_steps(effort: Effort) -> list[Row]:
    """Time of a training step."""
    cases = [(case, optimizer) for case in MODELS for optimizer in OPTIMIZERS]
    rows = []
    for case, optimizer in track(cases, "step", transient=True):
        contenders = {
            "ours": TorchTraining(case, optimizer, "jax"),
            "jax.jit": JaxTraining(case, optimizer),
            "torch CPU": TorchTraining(case, optimizer, "cpu"),
        }
        losses = [[contender.step() for _ in range(3)] for contender in contenders.values()]
        difference = max(max(step) - min(step) for step in zip(*losses, strict=True))
        if difference > 1e-3:
            raise AssertionError(f"{case.name} with {optimizer}: the contenders train differently")
        for reading in READINGS:
            loops = {key: _loop(it, reading, effort.steps) for key, it in contenders.items()}
            rows.append(
                compare(
                    f"{case.name}, {optimizer}, {reading}",
                    interleave(loops, effort.rounds),
                    against="jax.jit",
                    unit="ms",
                    scale=1e3 / effort.steps,
                    goal=STEP_GOAL[case.name],
                )
            )
    return rows


def _loop(contender: TorchTraining | JaxTraining, reading: str, steps: int) -> Contender:
    def each() -> None:
        for _ in range(steps):
            contender.step()

    def at_the_end() -> None:
        for _ in range(steps - 1):
            contender.start_step()
        contender.step()

    return lambda: timed(each if reading == READINGS[0] else at_the_end)


# --- recompilations -------------------------------------------------------------------------------


def measure_recompiles(effort: Effort) -> list[Row]:
    """Graphs compiled in ten steps that differ only in a number, after warming up."""
    rows = []
    x = torch.linspace(0.1, 0.9, 32).jax()

    def training(case: ModelCase, optimizer: str) -> Callable[[int], object]:
        run = TorchTraining(case, optimizer, "jax")
        schedule = torch.optim.lr_scheduler.ExponentialLR(run.optimizer, 0.97)

        def step(index: int) -> None:
            run.step()
            schedule.step()

        return step

    loops: dict[str, Callable[[int], object]] = {
        "x[i]": lambda index: x[index].item(),
        "x[i:i+3]": lambda index: x[index : index + 3].sum().item(),
        "x ** e": lambda index: (x ** (2.5 + index / 8)).sum().item(),
    }
    for case in MODELS:
        loops[f"{case.name}, adam, falling rate"] = training(case, "adam")
    for name, loop in track(loops.items(), "recompile", transient=True):
        for index in range(1, 4):
            loop(index)
        torch_xla_lite.debug.reset_metrics()
        for index in range(4, 14):
            loop(index)
        count = float(torch_xla_lite.debug.metrics()["compiles"])
        rows.append(Row(name, "graphs", {"ours": count}, count, 0))
    return rows


# --- import ---------------------------------------------------------------------------------------


def measure_import(effort: Effort) -> list[Row]:
    """Time to import the package after torch and jax."""
    script = (
        "import time, torch, jax; start = time.perf_counter(); import torch_xla_lite; "
        "print(time.perf_counter() - start)"
    )
    # With compiled Python code in the cache, as after an installation.
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def once() -> float:
        command = [sys.executable, "-c", script]
        process = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        return float(process.stdout)

    once()
    seconds = [once() for _ in track(range(effort.rounds), "import", transient=True)]
    median = statistics.median(seconds) * 1e3
    return [Row("import torch_xla_lite after torch and jax", "ms", {"ours": median}, median, 60)]


# --- report ---------------------------------------------------------------------------------------


SECTIONS: dict[str, tuple[str, Callable[[Effort], list[Row]]]] = {
    "record": (f"Recording an op ({OPS} dependent ops on 4x4, never run)", measure_recording),
    "sync": ("Running what was recorded (cached graph)", measure_sync),
    "step": ("Training step", measure_steps),
    "recompile": ("Graphs compiled in 10 steady steps", measure_recompiles),
    "import": ("Importing the package", measure_import),
}


def machine(cores: int) -> dict[str, str]:
    """The machine and the versions of the packages."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        model = names[0] if names else model
    return {
        "processor": model,
        "cores": f"{cores} used of {os.cpu_count()}",
        "load at start": f"{os.getloadavg()[0]:.1f}",
        "torch": f"{torch.__version__}, {torch.get_num_threads()} thread(s)",
        "jax": f"{jax.__version__} on {jax.devices()[0].platform}",
        "Python": platform.python_version(),
    }


def table(title: str, rows: list[Row]) -> Table:
    contenders = list(rows[0].values)
    for row in rows[1:]:
        contenders += [key for key in row.values if key not in contenders]
    result = Table("", *contenders, "ratio", "goal", title=title, title_justify="left")
    for column in result.columns[1:]:
        column.justify = "right"
    for row in rows:
        cells = [
            f"{row.values[key]:.3g} {row.unit}" if key in row.values else "" for key in contenders
        ]
        mark = "green" if row.ratio <= row.goal else "red"
        result.add_row(escape(row.name), *cells, f"[{mark}]{row.ratio:.3g}[/]", f"<= {row.goal:g}")
    return result


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="may be repeated")
    parser.add_argument("--cores", type=int, default=1, help="how many to use; default: 1")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result there")
    options = parser.parse_args(arguments)

    # Before XLA starts its threads: it starts one for each core that it may use.
    cores = sorted(os.sched_getaffinity(0))[: options.cores]
    os.sched_setaffinity(0, cores)
    torch.set_num_threads(len(cores))
    _XLAC.set_pending_limit(0)  # A chain whose recording is timed must not run.
    _XLAC.set_compile_when("first")  # Small graphs would be interpreted a thousand times.

    console = Console()
    report = Report(machine(len(cores)))
    console.print(", ".join(f"{key}: {value}" for key, value in report.machine.items()))
    for key in options.only or SECTIONS:
        title, measure = SECTIONS[key]
        report.sections[key] = measure(QUICK if options.quick else FULL)
        console.print(table(title, report.sections[key]))
    if options.json:
        options.json.write_text(json.dumps(asdict(report), indent=2) + "\n")
        console.print(f"Wrote {options.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
