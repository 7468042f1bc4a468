"""A training step of a GPT, ours and the same by hand in jax, compiled for devices on paper.

    python -m scripts.bench.paper                       # a small one, for an H100 and a TPU v5e
    python -m scripts.bench.paper --layers 12 --width 768 --vocabulary 50257 --batch 16 --length 512

Nothing runs: parameters and states are shapes without data. XLA's compilers tell what the step
accesses and computes, and the memory beside its arguments; "kernels" counts the operations of the
program's outermost level. A ratio is ours divided by that of jax.
"""

from __future__ import annotations

import argparse
import gc
import re
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch import nn

import torch_xla_lite as txl
from scripts.bench import harness, mesh_on_paper, models, paper_devices

_ENTRY = re.compile(r"^ENTRY .*?^}", re.MULTILINE | re.DOTALL)
_KERNEL = re.compile(r" (?:fusion|custom-call|dot|convolution|sort|scatter|while|call)\(")
# Name -> the largest ratio of ours to jax's.
_GOALS = {
    "GB accessed": 1.05,
    "GFLOP": 1.05,
    "MB beside arguments": 1.05,
    "kernels": 1.05,
    "CPU s to compile": 1.3,
    "CPU s to trace": None,
}


def main() -> None:
    """Runs the command line."""
    parser = harness.arguments(__doc__)
    sizes = {"layers": 2, "width": 128, "heads": 4, "vocabulary": 1000, "batch": 4, "length": 128}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--kinds", nargs="+", default=["h100", "v5e"], choices=paper_devices.KINDS)
    parser.add_argument("--dtypes", nargs="+", default=["bfloat16", "float32"])
    options = parser.parse_args()
    report = harness.Report(harness.machine(**{name: getattr(options, name) for name in sizes}))
    for kind in options.kinds:
        for dtype in options.dtypes:
            report.add(f"{kind}, {dtype}", _rows(options, kind, dtype))
    report.write(options.json)


def _rows(options: argparse.Namespace, kind: str, dtype: str) -> list[harness.Row]:
    mesh = jax.sharding.Mesh(np.array(paper_devices.devices(kind)), ("data",))
    place = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    txl.set_mesh(mesh)
    # Starts the compiler.
    jax.jit(jnp.sin, in_shardings=place).lower(jax.ShapeDtypeStruct((8,), np.float32)).compile()
    ours = _figures(lambda: _our_step(options, getattr(torch, dtype)))
    by_hand = _figures(lambda: _step_by_hand(options, jnp.dtype(dtype), mesh))
    rows = []
    for name, goal in _GOALS.items():
        values = {"ours": ours.get(name, 0.0), "jax": by_hand.get(name, 0.0)}
        if values["ours"] or values["jax"]:
            ratio = values["ours"] / values["jax"] if values["jax"] else None
            rows.append(harness.Row(name, "", values, ratio, goal))
    return rows


def _figures(step: Any) -> dict[str, float]:
    """What the compiler tells of a function that traces a step and lowers it; CPU seconds, because
    they depend less on what else the machine does."""
    step()  # What is imported and read once does not count.
    gc.collect()
    start = time.process_time()
    lowered = step()
    traced = time.process_time()
    compiled = lowered.compile()
    done = time.process_time()
    costs, memory = compiled.cost_analysis() or {}, compiled.memory_analysis()
    (entry,) = _ENTRY.findall(compiled.as_text())
    return {
        "GB accessed": costs.get("bytes accessed", 0.0) / 1e9,
        "GFLOP": costs.get("flops", 0.0) / 1e9,
        "MB beside arguments": memory.temp_size_in_bytes / 1e6,
        "kernels": len(_KERNEL.findall(entry)),
        "CPU s to compile": done - traced,
        "CPU s to trace": traced - start,
    }


def _gpt(options: argparse.Namespace) -> nn.Module:
    return models.Gpt(
        options.layers, options.width, options.heads, options.vocabulary, options.length
    )


def _our_step(options: argparse.Namespace, dtype: torch.dtype) -> jax.stages.Lowered:
    with torch.device("meta"):
        model = mesh_on_paper.without_data(_gpt(options).to(dtype), [], fsdp=None)
    shape = (options.batch, options.length)
    x, y = (mesh_on_paper.shape_alone(shape, torch.int64, ("data",)) for _ in range(2))

    def loss() -> torch.Tensor:
        return nn.functional.cross_entropy(model(x).flatten(0, 1).float(), y.flatten())

    return mesh_on_paper.lowered_step(model, loss)


def _step_by_hand(
    options: argparse.Namespace, dtype: np.dtype, mesh: jax.sharding.Mesh
) -> jax.stages.Lowered:
    place = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    with torch.device("meta"):
        shapes = {name: tuple(x.shape) for name, x in _gpt(options).named_parameters()}
    weights = {name: jax.ShapeDtypeStruct(shape, dtype) for name, shape in shapes.items()}
    tokens = jax.ShapeDtypeStruct((options.batch, options.length), np.int32)
    # As ours: float32 is float32.
    precision = "highest" if dtype == np.float32 else None

    def norm(p: dict, name: str, x: jax.Array) -> jax.Array:
        wide = x.astype(np.float32)
        centred = wide - wide.mean(-1, keepdims=True)
        scaled = centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return scaled.astype(dtype) * p[f"{name}.weight"] + p[f"{name}.bias"]

    def linear(p: dict, name: str, x: jax.Array) -> jax.Array:
        return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]

    def block(p: dict, at: str, x: jax.Array) -> jax.Array:
        parts = jnp.split(linear(p, f"{at}.qkv", norm(p, f"{at}.norm1", x)), 3, -1)
        q, k, v = (y.reshape(*y.shape[:2], options.heads, -1) for y in parts)
        y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(p, f"{at}.out", y.reshape(x.shape))
        wide = jax.nn.gelu(linear(p, f"{at}.up", norm(p, f"{at}.norm2", x)))
        return x + linear(p, f"{at}.down", wide)

    def loss(p: dict, tokens: jax.Array, labels: jax.Array) -> jax.Array:
        x = p["tokens.weight"][tokens] + p["places"]
        for i in range(options.layers):
            x = block(p, f"blocks.{i}", x)
        scores = norm(p, "norm", x) @ p["head.weight"].T
        logs = jax.nn.log_softmax(scores.astype(np.float32))
        return -jnp.take_along_axis(logs, labels[..., None], -1).mean()

    def step(p: dict, first: dict, second: dict, count: jax.Array, x: jax.Array, y: jax.Array):
        value, gradients = jax.value_and_grad(loss)(p, x, y)
        count = count + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)

        def new(w: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
            size = jnp.sqrt(v / (1 - 0.999**count)) + 1e-8
            return (w * (1 - 1e-5) - 1e-3 * (m / (1 - 0.9**count)) / size).astype(dtype)

        return value, jax.tree.map(new, p, first, second), first, second, count

    count = jax.ShapeDtypeStruct((), np.float32)
    with jax.default_matmul_precision(precision):
        jitted = jax.jit(step, donate_argnums=(0, 1, 2), in_shardings=place, out_shardings=place)
        return jitted.lower(weights, weights, weights, count, tokens, tokens)


if __name__ == "__main__":
    main()
