"""Measures what torch and jax cost each other: recorded calls, whole steps, deep models, export.

    pip install --no-deps -r test/models/requirements.txt    # optax, torchvision
    python -m scripts.bench.interop                  # everything, about five minutes
    python -m scripts.bench.interop --only record step

    record   recording the calls of a model, which are never run: µs of the thread's processor time
    step     training steps with Adam: ms of processor time
    layers   the first step of 32 equal layers, compiled without a cache: CPU seconds
    export   ResNet-18 with any batch size; loading it where torch cannot be imported: CPU seconds

The contenders run in turn. "lazy" records op by op; "backend" is torch.compile(model,
backend="torch_xla_lite"); "pure" is pure(model); "to_jax" is a step of to_jax and optax under
jax.jit, and "jax" the same model written in jax.
"""

from __future__ import annotations

import os

# Read when the package is imported.
os.environ["TORCH_XLA_LITE_COMPILATION_CACHE"] = "0"

import functools
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import torch
from torch import nn

import torch_xla_lite as txl
from scripts.bench import harness
from torch_xla_lite import _XLAC
from torch_xla_lite.export import export
from torch_xla_lite.stacked_layers import StackedLayers

# Of what is recorded in a measurement; of steps.
CALLS, STEPS = 50, 20


def main() -> None:
    """Runs the command line."""
    parser = harness.arguments(__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:1]))
    torch.set_num_threads(1)
    report = harness.Report(harness.machine())
    # Each graph is compiled when it is met, as jax does.
    _XLAC.set_compile_when("first")
    for part in options.only:
        title, measure = PARTS[part]
        report.add(title, measure(options.rounds))
    report.write(options.json)


def compared(
    name: str,
    seconds: Mapping[str, Sequence[float]],
    unit: str,
    scale: float,
    goals: Mapping[tuple[str, str], float | None],
) -> list[harness.Row]:
    """A row for each pair (contender, the one that it is compared with), with its goal."""
    rows = []
    for (one, other), goal in goals.items():
        pair = {"ours": seconds[one], other: seconds[other]}
        row = harness.compare(
            f"{name}, {one}", pair, unit, against=other, scale=scale, goal=goal, note=f"/ {other}"
        )
        values = {one: row.values["ours"], other: row.values[other]}
        rows.append(harness.Row(row.name, unit, values, row.ratio, goal, row.note))
    return rows


# --- models ---------------------------------------------------------------------------------------

WIDTHS = (256, 256, 256, 10)


def perceptron() -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Linear(a, b) for a, b in itertools.pairwise(WIDTHS)]
    return nn.Sequential(*(part for layer in layers for part in (layer, nn.ReLU())))


def layer() -> nn.Module:
    return nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)


def encoder(depth: int = 4) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*(layer() for _ in range(depth)))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "MLP": (perceptron, (64, WIDTHS[0])),
    "four encoder layers": (encoder, (8, 16, 64)),
}
WRAPPERS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "lazy": lambda model: model,
    "backend": lambda model: torch.compile(model, backend="torch_xla_lite"),
    "pure": txl.pure,
}


# --- recording ------------------------------------------------------------------------------------


def record(rounds: int) -> list[harness.Row]:
    """Calls that are recorded, and not run."""
    rows = []
    for name, (make, shape) in MODELS.items():
        x = torch.ones(shape, device="jax")
        models = {key: wrap(make().to("jax")) for key, wrap in WRAPPERS.items()}
        for mode, run in (("inference", _infer), ("training", _differentiate)):
            contenders = {key: functools.partial(run, model, x) for key, model in models.items()}
            for contender in contenders.values():
                contender()
            seconds = harness.interleave(contenders, rounds)
            goals = (0.35, 0.25) if mode == "inference" and name != "MLP" else (None, None)
            pairs = {("backend", "lazy"): goals[0], ("pure", "lazy"): goals[1]}
            rows += compared(f"{name}, {mode}", seconds, "µs", 1e6 / CALLS, pairs)
    x = torch.ones(4, 4, device="jax")
    seconds = [_recorded(lambda: txl.call_jax(jnp.sin, x)) for _ in range(3 * rounds)]
    microseconds = statistics.median(seconds) * 1e6 / CALLS
    rows.append(
        harness.Row("call_jax, no gradient", "µs", {"ours": microseconds}, microseconds, 10)
    )
    return rows


def _recorded(work: Callable[[], object]) -> float:
    """Seconds of some calls of a function, whose results are dropped."""

    def repeat() -> None:
        for _ in range(CALLS):
            work()

    seconds = harness.timed(repeat, time.thread_time)
    txl.sync()
    return seconds


def _infer(model: nn.Module, x: torch.Tensor) -> float:
    with torch.no_grad():
        return _recorded(lambda: model(x))


def _differentiate(model: nn.Module, x: torch.Tensor) -> float:
    def work() -> None:
        model.zero_grad()
        model(x).square().mean().backward()

    return _recorded(work)


# --- steps ----------------------------------------------------------------------------------------


def step(rounds: int) -> list[harness.Row]:
    """Training steps, run."""
    rows = []
    for name, (make, shape) in MODELS.items():
        contenders = {
            key: _torch_steps(wrap(make().to("jax")), shape) for key, wrap in WRAPPERS.items()
        }
        contenders["to_jax"] = _jax_steps(*_function_of(make()), shape)
        pairs: dict[tuple[str, str], float | None] = {
            ("backend", "lazy"): 1.0 if name == "MLP" else None,
            ("pure", "lazy"): None,
            ("to_jax", "lazy"): None,
        }
        if name == "MLP":
            contenders["jax"] = _jax_steps(_perceptron_in_jax, _parameters_in_jax(), shape)
            pairs["to_jax", "jax"] = 1.05
        for run in contenders.values():
            run()
        seconds = harness.interleave(contenders, rounds)
        rows += compared(name, seconds, "ms", 1e3 / STEPS, pairs)
    return rows


def _torch_steps(model: nn.Module, shape: tuple[int, ...]) -> Callable[[], float]:
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    x = torch.ones(shape, device="jax")

    def work() -> None:
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        torch.jax.synchronize()

    return lambda: harness.timed(work, time.process_time)


def _function_of(model: nn.Module) -> tuple[Callable[..., jax.Array], Any]:
    fn, state = txl.to_jax(model)
    return lambda params, x: fn(params, state["buffers"], x)[0], state["params"]


def _jax_steps(
    fn: Callable[[Any, jax.Array], jax.Array], params: Any, shape: tuple[int, ...]
) -> Callable[[], float]:
    import optax

    transformation = optax.adam(1e-3)
    x = jnp.ones(shape)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def update(params: Any, state: Any, x: jax.Array) -> tuple[Any, Any]:
        gradients = jax.grad(lambda params: (fn(params, x) ** 2).mean())(params)
        updates, state = transformation.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    # A copy, because the arrays are given away.
    values = [jax.tree.map(jnp.copy, params), transformation.init(params)]

    def work() -> None:
        for _ in range(STEPS):
            values[:] = update(*values, x)
        jax.block_until_ready(values)

    return lambda: harness.timed(work, time.process_time)


def _parameters_in_jax() -> list[dict[str, jax.Array]]:
    keys = jax.random.split(jax.random.key(0), len(WIDTHS) - 1)
    return [
        {"w": jax.random.normal(key, (b, a)) / a**0.5, "b": jnp.zeros(b)}
        for key, (a, b) in zip(keys, itertools.pairwise(WIDTHS), strict=True)
    ]


def _perceptron_in_jax(parameters: Any, x: jax.Array) -> jax.Array:
    for layer in parameters:
        x = jax.nn.relu(x @ layer["w"].T + layer["b"])
    return x


# --- deep models ----------------------------------------------------------------------------------


def layers(rounds: int) -> list[harness.Row]:
    """First steps, with their compilation."""
    depths = (4, 32)
    contenders = {
        f"{kind}, {depth}": functools.partial(_first_step, kind, depth)
        for kind in ("loop", "stacked")
        for depth in depths
    }
    seconds = harness.interleave(contenders, min(rounds, 3))
    pairs: dict[tuple[str, str], float | None] = {
        ("stacked, 32", "loop, 32"): None,
        ("stacked, 32", "stacked, 4"): 1.3,
    }
    return compared("first step of encoder layers", seconds, "s", 1, pairs)


def _first_step(kind: str, depth: int) -> float:
    _XLAC.clear_cache()
    jax.clear_caches()
    model = encoder(depth)
    model = StackedLayers(list(model)).to("jax") if kind == "stacked" else model.to("jax")
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    x = torch.ones(2, 16, 64, device="jax")

    def work() -> None:
        model(x).square().mean().backward()
        optimizer.step()
        torch.jax.synchronize()

    return harness.timed(work, time.process_time)


# --- export ---------------------------------------------------------------------------------------

SERVE = """
import sys, time
sys.modules["torch"] = None
import jax, jax.export, numpy
from pathlib import Path
from safetensors.numpy import load_file
start = time.process_time()
folder = Path(sys.argv[1])
program = jax.export.deserialize(bytearray((folder / "program.bin").read_bytes()))
weights = jax.device_put(load_file(folder / "weights.safetensors"))
jax.jit(program.call)(weights, numpy.ones((2, 3, 64, 64), numpy.float32)).block_until_ready()
print(time.process_time() - start)
"""


def exported(rounds: int) -> list[harness.Row]:
    """ResNet-18, from torch.export to the first result of another process."""
    from scripts.bench.compile import import_torchvision

    model = import_torchvision().models.resnet18().eval()
    example = torch.randn(2, 3, 64, 64)
    sizes = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(model, (example,), dynamic_shapes=sizes)
    seconds: dict[str, list[float]] = {"export": [], "load, first result": []}
    for _ in range(min(rounds, 3)):
        start = time.process_time()
        result = export(program)
        seconds["export"].append(time.process_time() - start)
        with tempfile.TemporaryDirectory() as folder:
            result.save(folder)
            command = [sys.executable, "-P", "-c", SERVE, folder]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds["load, first result"].append(float(done.stdout))
    goals = {"export": 5, "load, first result": 2}
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return [
        harness.Row(f"ResNet-18, {name}", "s", {"ours": value}, value, goals[name])
        for name, value in medians.items()
    ]


PARTS: dict[str, tuple[str, Callable[[int], list[harness.Row]]]] = {
    "record": ("Recording", record),
    "step": ("Training steps", step),
    "layers": ("Deep models", layers),
    "export": ("Export", exported),
}


if __name__ == "__main__":
    main()
