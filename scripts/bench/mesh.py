"""Measures programs on a mesh beside one device, and beside the same program written in jax.

    python -m scripts.bench.mesh              # about a minute

The mesh is of eight virtual devices of the CPU, which share its cores: what a step costs the host
is seen, and nothing of the speed of real devices. The model is a perceptron with so narrow layers
that recording and dispatch are most of a step.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax

jax.config.update("jax_num_cpu_devices", 8)

import jax.numpy as jnp  # noqa: E402
import torch  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec  # noqa: E402

import torch_xla_lite as txl  # noqa: E402
from scripts.bench import harness  # noqa: E402
from torch_xla_lite import _XLAC  # noqa: E402

WIDTH, LAYERS, BATCH, STEPS = 64, 8, 64, 20


def main() -> None:
    """Runs the command line."""
    parser = harness.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    report = harness.Report(harness.machine(devices=8))
    # Each graph is compiled when it is met, as jax does.
    _XLAC.set_compile_when("first")
    steps, compilation, memory = [], [], []
    for mode in ("dp", "fsdp"):
        contenders = {"ours": _ours(mode), "jax": _jax(mode), "one device": _ours(None)}
        for run in contenders.values():
            run()
        seconds = harness.interleave(contenders, options.rounds)
        scale = 1000 / STEPS
        row = harness.compare(f"{mode}, step", seconds, "ms", against="jax", scale=scale, goal=1.3)
        steps.append(row)
        row = harness.compare(f"{mode}, step", seconds, "ms", against="one device", scale=scale)
        steps.append(harness.Row(row.name, row.unit, {}, row.ratio, None, "against one device"))
        first = harness.interleave(
            {
                "ours": lambda mode=mode: _first(_ours, mode),
                "jax": lambda mode=mode: _first(_jax, mode),
            },
            rounds=3,
        )
        compilation.append(harness.compare(mode, first, "s", against="jax", goal=1.3))
        memory.append(_memory(mode))
    report.add("Steps of a perceptron with AdamW", steps)
    report.add("First steps, compilation included", compilation)
    report.add("Bytes of parameters, gradients and states of a device", memory)
    report.write(options.json)


def _mesh() -> jax.sharding.Mesh:
    # As torch_xla_lite has them, which makes no use of explicit axes.
    return jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def _model(mode: str | None) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    txl.set_mesh(None)
    torch.manual_seed(0)
    layers = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]
    model = torch.nn.Sequential(*(part for layer in layers for part in (layer, torch.nn.ReLU())))
    if mode is None:
        model.to("jax")
    else:
        txl.set_mesh(_mesh())
        txl.shard_module(model, fsdp="data" if mode == "fsdp" else None)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def _ours(mode: str | None, steps: int = STEPS) -> Callable[[], float]:
    model, optimizer = _model(mode)
    x = torch.ones(BATCH, WIDTH)
    x = x.to("jax") if mode is None else txl.shard(x, "data")

    def run() -> float:
        def work() -> None:
            for _ in range(steps):
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
            torch.jax.synchronize()

        return harness.timed(work)

    return run


def _jax(mode: str, steps: int = STEPS) -> Callable[[], float]:
    """The same model and update, as a user of jax writes it."""
    mesh = _mesh()
    spec = PartitionSpec("data") if mode == "fsdp" else PartitionSpec()
    draw = jax.random.split(jax.random.key(0), LAYERS)
    parameters: Any = [
        {"w": jax.random.normal(key, (WIDTH, WIDTH)) / 8, "b": jnp.zeros(WIDTH)} for key in draw
    ]
    place = NamedSharding(mesh, spec)
    parameters = jax.device_put(parameters, place)
    state = [jax.tree.map(jnp.zeros_like, parameters) for _ in range(2)]
    x = jax.device_put(jnp.ones((BATCH, WIDTH)), NamedSharding(mesh, PartitionSpec("data")))

    def loss(parameters: Any, x: jax.Array) -> jax.Array:
        for layer in parameters:
            x = jax.nn.relu(x @ layer["w"].T + layer["b"])
        return (x * x).mean()

    def step(parameters: Any, first: Any, second: Any, count: jax.Array, x: jax.Array) -> tuple:
        gradients = jax.grad(loss)(parameters, x)
        count = count + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)

        def updated(p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
            m, v = m / (1 - 0.9**count), v / (1 - 0.999**count)
            return p * (1 - 1e-3 * 0.01) - 1e-3 * m / (jnp.sqrt(v) + 1e-8)

        return jax.tree.map(updated, parameters, first, second), first, second, count

    places = (place, place, place, NamedSharding(mesh, PartitionSpec()))
    jitted = jax.jit(step, donate_argnums=(0, 1, 2), out_shardings=places)
    values = [parameters, *state, jnp.zeros(())]

    def run() -> float:
        def work() -> None:
            for _ in range(steps):
                values[:] = jitted(*values, x)
            jax.block_until_ready(values)

        return harness.timed(work)

    return run


def _first(make: Callable[..., Callable[[], float]], mode: str) -> float:
    """Seconds of one step that is compiled."""
    _XLAC.clear_cache()
    jax.clear_caches()
    run = make(mode, 1)
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _memory(mode: str) -> harness.Row:
    model, optimizer = _model(mode)
    model(txl.shard(torch.ones(BATCH, WIDTH), "data")).square().mean().backward()
    optimizer.step()
    txl.sync()

    def size(parameter: torch.Tensor) -> int:
        states = optimizer.state[parameter]
        tensors = [parameter, parameter.grad, states["exp_avg"], states["exp_avg_sq"]]
        shards = [_XLAC.to_jax(tensor.detach()).addressable_shards[0] for tensor in tensors]
        return sum(shard.data.nbytes for shard in shards)

    whole = sum(4 * parameter.nbytes for parameter in model.parameters())
    ours = sum(map(size, model.parameters()))
    goal = 1 / 8 if mode == "fsdp" else 1
    return harness.Row(mode, "bytes", {"ours": ours, "whole": whole}, ours / whole, goal)


if __name__ == "__main__":
    main()
