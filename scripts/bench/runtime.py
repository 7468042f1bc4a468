"""Measures the runtime against torch's CPU kernels and against hand-written jax.

    python -m scripts.bench.runtime                    # everything, about five minutes
    python -m scripts.bench.runtime --quick            # fewer repetitions, about a minute
    python -m scripts.bench.runtime --only record      # of: record, sync, step, import
    python -m scripts.bench.runtime --json result.json

The compared programs run alternately in one process, and a ratio is the median of the ratios of
neighbouring runs, so that a temporary load affects both. All use one core, unless --cores says
otherwise: with more, torch's OpenMP threads and XLA's thread pool compete, and the result depends
on chance.

Tables go to the standard output. The JSON file is stable, for programs: machine, goals, and for
every row its medians and ratio. The exit code is 0 even if a goal is missed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import torch

import torch_xla_lite
from scripts.bench import harness
from scripts.bench.harness import Contender, Row, compare, interleave, timed
from torch_xla_lite import _XLAC
from torch_xla_lite.examples.jax_models import make_step
from torch_xla_lite.examples.models import MODELS, ModelCase

OPS = 1000  # length of a recorded chain


@dataclass(frozen=True)
class Effort:
    """The number of repetitions."""

    rounds: int
    steps: int  # training steps in each round


FULL = Effort(rounds=31, steps=10)
QUICK = Effort(rounds=5, steps=3)


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
    for name, chain, goal in RECORDED:
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
            compare(name, seconds, "us/op", against="torch CPU", scale=1e6 / OPS, goal=goal)
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
    for case, optimizer in cases:
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
                    "ms",
                    against="jax.jit",
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
    seconds = [once() for _ in range(effort.rounds)]
    median = statistics.median(seconds) * 1e3
    return [Row("import torch_xla_lite after torch and jax", "ms", {"ours": median}, median, 60)]


# --- report ---------------------------------------------------------------------------------------


SECTIONS: dict[str, tuple[str, Callable[[Effort], list[Row]]]] = {
    "record": (f"Recording an op ({OPS} dependent ops on 4x4, never run)", measure_recording),
    "sync": ("Running what was recorded (cached graph)", measure_sync),
    "step": ("Training step", measure_steps),
    "import": ("Importing the package", measure_import),
}


def use_cores(count: int) -> None:
    """Limits this process, before XLA starts its threads: one for each core that it may use."""
    cores = sorted(os.sched_getaffinity(0))[:count]
    os.sched_setaffinity(0, cores)
    torch.set_num_threads(len(cores))


def machine() -> dict[str, str | int | float]:
    """The machine and the versions of the packages."""
    return harness.machine(
        torch=f"{torch.__version__}, {torch.get_num_threads()} thread(s)",
        jax=f"{jax.__version__} on {jax.devices()[0].platform}",
    )


def main() -> None:
    """Runs the command line."""
    parser = harness.arguments(__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="may be repeated")
    parser.add_argument("--cores", type=int, default=1, help="how many to use; default: 1")
    options = parser.parse_args()
    use_cores(options.cores)
    _XLAC.set_pending_limit(0)  # A chain whose recording is timed must not run.
    _XLAC.set_compile_when("first")  # Small graphs would be interpreted a thousand times.

    report = harness.Report(machine())
    for key in options.only or SECTIONS:
        title, measure = SECTIONS[key]
        report.add(title, measure(QUICK if options.quick else FULL))
    report.write(options.json)


if __name__ == "__main__":
    main()
