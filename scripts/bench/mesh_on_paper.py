"""What each device of a mesh sends in a training step of a Llama of a billion parameters.

    python -m scripts.bench.mesh_on_paper                    # some 20 minutes on two cores
    python -m scripts.bench.mesh_on_paper --devices 64 --modes fsdp
    python -m scripts.bench.mesh_on_paper --platform h100    # or v5e: see paper_devices.py

The model (1.24 billion parameters: the sizes of Llama 3.2 1B) and its states are shapes without
data: the step is recorded and compiled as a program does it, for virtual devices of the CPU or for
GPUs in machines of eight, and never run. What it sends is read from the compiled text. Layers are
equal, so programs of one and of two layers tell what sixteen send.

The ideal is that of rings in which all devices send at once, for n devices of which `t` share each
matrix, parameters of P bytes, activations of A bytes after each layer, and L layers:

    dp      each gradient is summed once:                          2 P (n - 1) / n
    fsdp    parameters are gathered twice, gradients scattered:    3 P (n - 1) / n
    tp      four sums for each layer, and two for the vocabulary:  (4 L + 2) 2 A (t - 1) / t,
            and gradients among the n / t devices that have the same part

XLA for CPUs merges no sums of parts: in `tp` the gradients of q, k and v are summed one by one, and
those of gate and up.

It needs transformers (test/models/requirements.txt).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import jax
import torch

import torch_xla_lite as txl
from scripts.bench import harness, paper_devices
from torch_xla_lite import _XLAC
from torch_xla_lite.compiler import tracing
from torch_xla_lite.compiler.recorded_graph import RecordedGraph
from torch_xla_lite.lowering.base import registry
from torch_xla_lite.mesh import sharding
from torch_xla_lite.mesh.base import communication

LAYERS, LENGTH, WIDTH = 16, 2048, 2048
# How many devices share a matrix in tensor parallelism: as many as there are heads of keys.
SHARE = 8
RULES = [
    (r"(q_proj|k_proj|v_proj|up_proj|gate_proj)\.weight", ("model", None)),
    (r"(o_proj|down_proj)\.weight", (None, "model")),
    (r"(embed_tokens|lm_head)\.weight", ("model", None)),
]
MODES = ("dp", "fsdp", "tp")


def main() -> None:
    """Runs the command line."""
    parser = harness.arguments(__doc__)
    parser.add_argument("--devices", type=int, nargs="+", default=[8, 64, 512])
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--platform", default="cpu", choices=["cpu", *paper_devices.KINDS])
    parser.add_argument("--cell", nargs=3, help=argparse.SUPPRESS)  # mode, devices, layers
    options = parser.parse_args()
    if options.cell:
        mode, devices, layers = options.cell
        print(json.dumps(_sent(mode, int(devices), int(layers), options.platform)))
        return
    report = harness.Report(harness.machine())
    for devices in options.devices:
        rows = [_row(mode, devices, options.platform) for mode in options.modes]
        title = f"Megabytes that each of {devices} devices sends in a step, {options.platform}"
        report.add(title, rows)
    report.write(options.json)


def _row(mode: str, devices: int, platform: str) -> Any:
    one, two = (_in_a_process(mode, devices, layers, platform) for layers in (1, 2))
    kinds = one["sent"].keys() | two["sent"].keys()
    sent = {}
    for kind in sorted(kinds):
        first, second = one["sent"].get(kind, 0), two["sent"].get(kind, 0)
        sent[kind] = (first + (LAYERS - 1) * (second - first)) / 1e6
    size = one["parameters"] + (LAYERS - 1) * (two["parameters"] - one["parameters"])
    ideal = _ideal(mode, devices, size) / 1e6
    total = sum(sent.values())
    return harness.Row(mode, "MB", {**sent, "all": total, "ideal": ideal}, total / ideal, 4 / 3)


def _ideal(mode: str, devices: int, size: int) -> float:
    """Bytes that a device sends at least, for parameters of `size` bytes."""
    if mode != "tp":
        return (2 if mode == "dp" else 3) * size * (devices - 1) / devices
    activations = 4 * SHARE * LENGTH * WIDTH
    groups = devices // SHARE
    gradients = 2 * size / SHARE * (groups - 1) / groups
    return (4 * LAYERS + 2) * 2 * activations * (SHARE - 1) / SHARE + gradients


def _in_a_process(mode: str, devices: int, layers: int, platform: str) -> dict[str, Any]:
    """`_sent` in a process of its own, because a process has one number of devices."""
    command = [sys.executable, "-m", __spec__.name, "--cell", mode, str(devices), str(layers)]
    command += ["--platform", platform]
    environ = {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        "TORCH_XLA_LITE_SYNC_AFTER_STEP": "0",
        "TORCH_XLA_LITE_PENDING_LIMIT": "0",
    }
    done = subprocess.run(command, env=os.environ | environ, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _sent(mode: str, devices: int, layers: int, platform: str) -> dict[str, Any]:
    """The bytes that a device sends in a step, by kind, and those of the parameters."""
    chosen = jax.devices() if platform == "cpu" else paper_devices.devices(platform, devices)
    if mode == "tp":
        shape = (devices // SHARE, SHARE)
        txl.set_mesh(jax.make_mesh(shape, ("data", "model"), devices=chosen))
        model = without_data(_llama(layers), RULES, fsdp=None)
    else:
        txl.set_mesh(jax.make_mesh((devices,), ("data",), devices=chosen))
        model = without_data(_llama(layers), [], fsdp=None if mode == "dp" else "data")
    if mode == "fsdp":
        sharding.keep_batch(model, "data")
    tokens, labels = (shape_alone((devices, LENGTH), torch.int64, ("data",)) for _ in range(2))
    text = (
        lowered_step(model, lambda: model(input_ids=tokens, labels=labels).loss).compile().as_text()
    )
    parameters = sum(parameter.nbytes for parameter in model.parameters())
    return {"sent": communication.bytes_sent(text), "parameters": parameters}


def lowered_step(model: torch.nn.Module, loss: Callable[[], torch.Tensor]) -> jax.stages.Lowered:
    """A training step with AdamW for the devices of the mesh.

    Args:
      model: one `without_data`.
      loss: gives what the model is trained for.
    """
    optimizer = _optimizer(model)
    loss().backward()
    with mock.patch.object(_XLAC, "sync", lambda: None):  # There is nothing to run.
        optimizer.step()
    steps, roots = _XLAC.pending_graph()
    with jax.enable_x64(True):
        (program,) = tracing.lower_graph(RecordedGraph.of(steps, roots)).parts
    return program


def _llama(layers: int) -> torch.nn.Module:
    from scripts.bench.models import import_torchvision

    import_torchvision()  # transformers imports it where it is installed.
    import transformers
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    # By this name transformers does not look into the tokens for sequences that are packed.
    transformers.AttentionInterface.register("causal", sdpa_attention_forward)
    config = transformers.LlamaConfig(
        vocab_size=128_256,
        hidden_size=WIDTH,
        intermediate_size=4 * WIDTH,
        num_hidden_layers=layers,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=LENGTH,
        tie_word_embeddings=True,
        use_cache=False,
        attn_implementation="causal",
    )
    with torch.device("meta"):
        return transformers.LlamaForCausalLM(config)


def without_data(model: torch.nn.Module, rules: list, fsdp: str | None) -> torch.nn.Module:
    """Places a model of device "meta" as `shard_module` does, by shapes alone."""
    named = [*model.named_parameters(), *model.named_buffers()]
    placed = {}
    for name, tensor in named:
        spec = sharding.spec_in_module(name, tensor, rules, fsdp=fsdp)
        new = placed[tensor] = shape_alone(tensor.shape, tensor.dtype, spec)
        if isinstance(tensor, torch.nn.Parameter):
            new = placed[tensor] = torch.nn.Parameter(new)
            sharding.pin_gradient(new)
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                if tensor is not None:
                    tensors[name] = placed[tensor]
    return model


def _optimizer(model: torch.nn.Module) -> torch.optim.Optimizer:
    """AdamW after its first step."""
    optimizer = torch.optim.AdamW(model.parameters())
    for parameter in model.parameters():
        states = (_like(parameter, _XLAC.placement_of(parameter)) for _ in range(2))
        state = dict(zip(("exp_avg", "exp_avg_sq"), states, strict=True))
        optimizer.state[parameter] = {"step": torch.tensor(1.0), **state}
    return optimizer


def shape_alone(shape: Any, dtype: torch.dtype, spec: tuple) -> torch.Tensor:
    """A tensor on device jax without data."""
    return _like(
        torch.empty(shape, dtype=dtype, device="meta"), sharding.number_of_spec(spec, len(shape))
    )


def _like(tensor: torch.Tensor, placement: int | None) -> torch.Tensor:
    struct = jax.ShapeDtypeStruct(tuple(tensor.shape), registry.OF_TORCH[tensor.dtype])
    return _XLAC.from_jax(struct, placement)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
