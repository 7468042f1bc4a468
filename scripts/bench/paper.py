"""A training step, ours and the same by hand in jax, compiled for devices on paper.

    python -m scripts.bench.paper                            # of a small GPT
    python -m scripts.bench.paper gpt2 resnet50 vit-b
    python -m scripts.bench.paper llama --devices 8 64 --modes dp fsdp tp

Nothing runs: parameters and states are shapes without data. XLA tells what the program accesses and
computes, and its memory; what it sends is read from its text, and "kernels" counts the operations
of its outermost level. Programs of one and of two layers of a Llama (1.24 billion parameters) tell
what sixteen need; their times are summed. A ratio is ours divided by that of jax.

Llama and the models of torchvision need what test/models/requirements.txt names.
"""

from __future__ import annotations

import gc
import itertools
import re
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jaxlib import _jax

import torch_xla_lite as txl
from scripts.bench import harness, paper_devices
from scripts.bench.paper_models import MODELS, Model, as_by_hand, loss_of, named_arrays
from torch_xla_lite import _XLAC
from torch_xla_lite.compiler import tracing
from torch_xla_lite.compiler.recorded_graph import RecordedGraph
from torch_xla_lite.lowering.base import mesh, registry
from torch_xla_lite.mesh import sharding
from torch_xla_lite.mesh.base import communication

_ENTRY = re.compile(r"^ENTRY .*?^}", re.MULTILINE | re.DOTALL)
_KERNEL = re.compile(r" (?:fusion|custom-call|dot|convolution|sort|scatter|while|call)\(")
# The largest ratios of ours to jax's; of all else it is 1.05.
_GOALS = {"CPU s to compile": 1.3, "CPU s to trace": None}
# How many devices share a matrix in tensor parallelism: as many as Llama has heads of keys.
_SHARE = 8
_RULES = [
    (r"(q_proj|k_proj|v_proj|up_proj|gate_proj)\.weight", ("model", None)),
    (r"(o_proj|down_proj)\.weight", (None, "model")),
    (r"embed_tokens\.weight", ("model", None)),
]
# Optimizer -> its keywords, and the names of its states.
_OPTIMIZERS: dict[str, tuple[dict[str, float], tuple[str, ...]]] = {
    "AdamW": ({"lr": 1e-3, "weight_decay": 1e-2}, ("exp_avg", "exp_avg_sq")),
    "SGD": ({"lr": 1e-3, "momentum": 0.9}, ("momentum_buffer",)),
}


def main() -> None:
    """Runs the command line."""
    parser = harness.arguments(__doc__)
    parser.add_argument("models", nargs="*", default=["gpt-small"], help=", ".join(MODELS))
    parser.add_argument("--kinds", nargs="+", default=["h100", "v5e"], choices=paper_devices.KINDS)
    parser.add_argument("--dtypes", nargs="+", default=["bfloat16", "float32"])
    parser.add_argument("--devices", type=int, nargs="+", default=[1])
    parser.add_argument("--modes", nargs="+", default=["dp"], choices=["dp", "fsdp", "tp"])
    options = parser.parse_args()
    report = harness.Report(harness.machine())
    cells = (options.models, options.kinds, options.dtypes, options.devices, options.modes)
    for name, kind, dtype, count, mode in itertools.product(*cells):
        devices = np.array(paper_devices.devices(kind, count))
        on_mesh = f", {count} devices, {mode}" if count > 1 else ""
        rows = _rows(MODELS[name], devices, getattr(torch, dtype), mode)
        report.add(f"{name}, {kind}, {dtype}{on_mesh}", rows)
        report.write(options.json)


def _rows(model: Model, devices: np.ndarray, dtype: torch.dtype, mode: str) -> list[harness.Row]:
    axes = {"data": -1, "model": _SHARE} if mode == "tp" else {"data": -1}
    mesh = jax.sharding.Mesh(devices.reshape([*axes.values()]), [*axes])
    txl.set_mesh(mesh)
    # Starts the compiler.
    place = jax.sharding.SingleDeviceSharding(devices.flat[0])
    jax.jit(jnp.sin).lower(jax.ShapeDtypeStruct((8,), np.float32, sharding=place)).compile()
    division = (_RULES if mode == "tp" else [], "data" if mode == "fsdp" else None)

    def told(step: Callable) -> dict[str, float]:
        if not model.layers:
            return figures(lambda: step(model, mesh, dtype, division))
        one, two = (figures(lambda: step(model, mesh, dtype, division, n)) for n in (1, 2))  # noqa: B023
        more = {name: (model.layers - 1) * (two[name] - one[name]) for name in one}
        return {x: one[x] + (two[x] if x.startswith("CPU s") else more[x]) for x in one}

    ours, by_hand = told(our_step), told(step_by_hand)
    rows = []
    for name in ours:
        if ours[name] or by_hand[name]:
            ratio = ours[name] / by_hand[name] if by_hand[name] else None
            values = {"ours": ours[name], "jax": by_hand[name]}
            rows.append(harness.Row(name, "", values, ratio, _GOALS.get(name, 1.05)))
    return rows


def figures(step: Callable[[], jax.stages.Lowered]) -> dict[str, float]:
    """What the compiler tells of a function that traces a step and lowers it; CPU seconds, because
    they depend less on what else the machine does."""
    step()  # What is imported and read once does not count.
    gc.collect()
    start = time.process_time()
    lowered = step()
    traced = time.process_time()
    compiled = lowered.compile()
    done = time.process_time()
    memory, text = compiled.memory_analysis(), compiled.as_text()
    (entry,) = _ENTRY.findall(text)
    (module,) = compiled.runtime_executable().hlo_modules()
    # The compiler for GPUs tells no costs.
    client = jax.devices("cpu")[0].client
    costs = compiled.cost_analysis() or _jax.hlo_module_cost_analysis(client, module)
    beside = memory.temp_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes
    return {
        "GB accessed": costs["bytes accessed"] / 1e9,
        "GFLOP": costs["flops"] / 1e9,
        "MB at most": (memory.argument_size_in_bytes + beside) / 1e6,
        # With the code. Of some programs libtpu tells no temporary memory, but this.
        "MB at the peak": memory.peak_memory_in_bytes / 1e6,
        "MB sent": sum(communication.bytes_sent(text).values()) / 1e6,
        "kernels": len(_KERNEL.findall(entry)),
        "loops, counted once": text.count(" while("),
        "CPU s to compile": done - traced,
        "CPU s to trace": traced - start,
    }


def _on_meta(model: Model, mesh: jax.sharding.Mesh, dtype: torch.dtype, *layers: int) -> Any:
    """The model and a batch, without data."""
    with torch.device("meta"):
        batch = model.batch(model.rows * mesh.size)
        batch = [x.to(dtype) if x.is_floating_point() else x for x in batch]
        return model.make(*layers).to(dtype), batch


def our_step(
    model: Model, mesh: jax.sharding.Mesh, dtype: torch.dtype, division: tuple, *layers: int
) -> jax.stages.Lowered:
    """A training step on the mesh that is set; `division` are the rules and the axis of FSDP."""
    module, batch = _on_meta(model, mesh, dtype, *layers)
    without_data(module, *division)
    batch = [shape_alone(x.shape, x.dtype, ("data",)) for x in batch]
    return lowered_step(module, lambda: loss_of(module, *batch), model.optimizer)


def lowered_step(
    module: torch.nn.Module, loss: Callable[[], torch.Tensor], optimizer: str = "AdamW"
) -> jax.stages.Lowered:
    """A later step of a module `without_data`, which is trained for what `loss` gives."""
    _XLAC.set_pending_limit(0)
    keywords, names = _OPTIMIZERS[optimizer]
    optimize = getattr(torch.optim, optimizer)(module.parameters(), **keywords)
    for parameter in module.parameters():
        states = {name: _like(parameter, _XLAC.placement_of(parameter)) for name in names}
        optimize.state[parameter] = {"step": torch.tensor(1.0), **states}
    loss().backward()
    with mock.patch.object(_XLAC, "sync", lambda: None):  # There is nothing to run.
        optimize.step()
    graph = RecordedGraph.of(*_XLAC.pending_graph())
    with jax.enable_x64(True), mesh.on_mesh(graph.mesh):
        (program,) = tracing.lower_graph(graph).parts
    return program


def without_data(module: torch.nn.Module, rules: list, fsdp: str | None) -> None:
    """Places a module of device "meta" as `shard_module` does, by shapes alone."""
    placed = {}
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        spec = sharding.spec_in_module(name, tensor, rules, fsdp=fsdp)
        new = placed[tensor] = shape_alone(tensor.shape, tensor.dtype, spec)
        if isinstance(tensor, torch.nn.Parameter):
            new = placed[tensor] = torch.nn.Parameter(new)
            sharding.pin_gradient(new)
    for part in module.modules():
        for tensors in (part._parameters, part._buffers):
            tensors.update({x: placed[y] for x, y in tensors.items() if y is not None})
    if fsdp:
        sharding.keep_batch(module, fsdp)


def shape_alone(shape: Any, dtype: torch.dtype, spec: tuple) -> torch.Tensor:
    """A tensor on device jax without data."""
    tensor = torch.empty(shape, dtype=dtype, device="meta")
    return _like(tensor, sharding.number_of_spec(spec, len(shape)))


def _like(tensor: torch.Tensor, placement: int | None) -> torch.Tensor:
    struct = jax.ShapeDtypeStruct(tuple(tensor.shape), registry.OF_TORCH[tensor.dtype])
    return _XLAC.from_jax(struct, placement)  # type: ignore[arg-type]


def step_by_hand(
    model: Model, mesh: jax.sharding.Mesh, dtype: torch.dtype, division: tuple, *layers: int
) -> jax.stages.Lowered:
    """The same as one writes it in jax."""
    module, batch = _on_meta(model, mesh, dtype, *layers)

    def struct(x: torch.Tensor, spec: tuple) -> jax.ShapeDtypeStruct:
        place = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))
        dtype = np.int32 if x.dtype == torch.int64 else registry.OF_TORCH[x.dtype]
        return jax.ShapeDtypeStruct(tuple(as_by_hand(x).shape), dtype, sharding=place)

    rules, fsdp = division
    weights, buffers = (
        {name: struct(x, sharding.spec_in_module(name, x, rules, fsdp=fsdp)) for name, x in named}
        for named in named_arrays(module)
    )
    states = [weights for _ in _OPTIMIZERS[model.optimizer][1]]
    update = {"AdamW": _adamw, "SGD": _sgd}[model.optimizer]

    def step(weights: Any, states: Any, buffers: Any, count: jax.Array, *batch: jax.Array) -> Any:
        loss = jax.value_and_grad(lambda w: model.by_hand(w | buffers, *batch), has_aux=True)
        (value, buffers_after), gradients = loss(weights)
        return *update(weights, gradients, count + 1, *states), buffers_after, count + 1, value

    arrays, count = (weights, states, buffers), jax.ShapeDtypeStruct((), np.float32)
    places = jax.tree.map(lambda x: x.sharding, arrays)
    jitted = jax.jit(step, donate_argnums=(0, 1, 2), out_shardings=(*places, None, None))
    # As ours: float32 is float32.
    precision = "highest" if dtype == torch.float32 else None
    with jax.set_mesh(mesh), jax.default_matmul_precision(precision):
        return jitted.lower(*arrays, count, *(struct(x, ("data",)) for x in batch))


def _adamw(weights: Any, gradients: Any, count: jax.Array, first: Any, second: Any) -> Any:
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)

    def new(w: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
        size = jnp.sqrt(v / (1 - 0.999**count)) + 1e-8
        return (w * (1 - 1e-5) - 1e-3 * (m / (1 - 0.9**count)) / size).astype(w.dtype)

    return jax.tree.map(new, weights, first, second), [first, second]


def _sgd(weights: Any, gradients: Any, count: jax.Array, momentum: Any) -> Any:
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
    return jax.tree.map(lambda w, m: w - 1e-3 * m, weights, momentum), [momentum]


if __name__ == "__main__":
    main()
