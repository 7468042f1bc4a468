"""Runs what tells most about an accelerator, and prints one JSON for a report.

    python -m torch_xla_lite.examples.accelerator_report > report.json
    python -m torch_xla_lite.examples.accelerator_report digits kernels      # some parts

    digits    the accuracy of examples/digits.py
    gpt       a small GPT in float32 and bfloat16: its losses beside those of torch on the CPU
    mesh      the same, divided among all devices
    kernels   this project's: where they differ from the CPU, and time / that of XLA; not on a TPU
    cases     what is known to depend on the platform, beside torch on the CPU

A part that fails has its error in the JSON, and the others go on. Exit code 0; 1 if a part failed.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Collection
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch import nn

import torch_xla_lite
from torch_xla_lite import debug
from torch_xla_lite.lowering.base import kernels

from . import digits

VOCABULARY, LENGTH, STEPS = 512, 64, 12


class GPT(nn.Module):
    """Scores of the next token: `[batch, length]` to `[batch, length, VOCABULARY]`."""

    def __init__(self, layers: int = 2, width: int = 128) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.places = nn.Parameter(torch.zeros(LENGTH, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCABULARY)
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
        self.register_buffer("mask", mask)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.tokens(tokens) + self.places, mask=self.mask))


def train(
    device: str, dtype: torch.dtype, batch: int, place: Callable[[nn.Module], object] | None = None
) -> dict[str, Any]:
    """Trains a `GPT`, and tells its losses, the median time of a step and what was compiled."""
    torch.manual_seed(0)
    model = GPT().to(device, dtype)
    if place is not None:
        place(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    debug.reset_metrics()
    losses, seconds = [], []
    for _ in range(STEPS):
        tokens = torch.randint(VOCABULARY, (batch, LENGTH + 1)).to(device)
        start = time.perf_counter()
        optimizer.zero_grad()
        scores = model(tokens[:, :-1]).flatten(0, 1).float()
        loss = nn.functional.cross_entropy(scores, tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
    found: dict[str, Any] = {"losses": losses, "step_ms": statistics.median(seconds) * 1e3}
    if device == "jax":
        metrics = debug.metrics()
        found |= {"first_step_s": seconds[0]}
        found |= {name: metrics[name] for name in ("compiles", "fallbacks")}
    return found


def of_digits() -> dict[str, Any]:
    result = digits.train("jax", epochs=4)
    names = ("accuracy", "step_ms", "compiles", "fallbacks")
    return {name: getattr(result, name) for name in names}


def of_gpt() -> dict[str, Any]:
    dtypes = (torch.float32, torch.bfloat16)
    return {
        str(dtype): {device: train(device, dtype, 8) for device in ("jax", "cpu")}
        for dtype in dtypes
    }


def of_mesh() -> dict[str, Any]:
    count = len(jax.devices())
    torch_xla_lite.set_mesh(jax.make_mesh((count,), ("data",)), batch="data")
    try:
        found = train("jax", torch.float32, 8 * count, torch_xla_lite.fully_shard)
        return {"devices": count, **found, "sent": [*debug.collectives()][-1:]}
    finally:
        torch_xla_lite.set_mesh(None)


def _by_kernels(logits: jax.Array, labels: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The losses of rows, and their gradient."""
    loss, normalizer = kernels.softmax_cross_entropy(logits, labels, ignore_index=-100)
    one = jnp.ones_like(loss)
    gradient = kernels.softmax_cross_entropy_backward(
        one, logits, labels, normalizer, ignore_index=-100
    )
    return loss, gradient


def _by_xla(logits: jax.Array, labels: jax.Array) -> tuple[jax.Array, jax.Array]:
    def losses(x: jax.Array) -> jax.Array:
        logs = jax.nn.log_softmax(x.astype(jnp.promote_types(x.dtype, np.float32)))
        return -jnp.take_along_axis(logs, labels[:, None], 1)[:, 0]

    loss, gradient_of = jax.vjp(losses, logits)
    return loss, *gradient_of(jnp.ones_like(loss))


def _scores(rows: int, classes: int, dtype: str) -> tuple[jax.Array, jax.Array]:
    generator = np.random.default_rng(0)
    logits = jnp.asarray(generator.standard_normal((rows, classes)) * 5).astype(dtype)
    return logits, jnp.asarray(generator.integers(0, classes, rows))


# dtype -> how much a kernel may differ on two devices.
_ROUNDING = {"float32": 2e-6, "float64": 1e-12, "bfloat16": 8e-3, "float16": 1e-3}


def _differs(classes: int, dtype: str) -> bool:
    operands, limit = _scores(33, classes, dtype), _ROUNDING[dtype]
    places = (jax.devices("cpu")[0], jax.devices()[0])
    ours, cpu = (jax.jit(_by_kernels)(*jax.device_put(operands, place)) for place in places)
    wide = [[np.asarray(x, np.float64) for x in results] for results in (ours, cpu)]
    return not all(np.allclose(a, b, limit, limit) for a, b in zip(*wide, strict=True))


def _seconds(function: Callable, operands: tuple[jax.Array, jax.Array]) -> float:
    """The median of a call."""
    compiled, seconds = jax.jit(function).lower(*operands).compile(), []
    for _ in range(21):
        start = time.perf_counter()
        jax.block_until_ready(compiled(*operands))
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def of_kernels() -> dict[str, Any]:
    if jax.default_backend() == "tpu":
        return {}
    with jax.enable_x64(True):
        sizes = [(classes, dtype) for dtype in _ROUNDING for classes in (3, 1025, 50_001)]
        failed = [
            f"{classes} classes, {dtype}" for classes, dtype in sizes if _differs(classes, dtype)
        ]
        found: dict[str, Any] = {"failed": failed} if failed else {}
        times = found["time"] = {}
        for rows, classes, dtype in _TIMED:
            operands = _scores(rows, classes, dtype)
            ratio = _seconds(_by_kernels, operands) / _seconds(_by_xla, operands)
            times[f"{classes:,} classes, {dtype}"] = ratio
    return found


_TIMED = [
    (4096, 10, "float32"),
    (256, 1000, "float32"),
    (256, 32_000, "float32"),
    (256, 32_000, "bfloat16"),
]


def _product(precision: str) -> Callable[[torch.device], torch.Tensor]:
    def product(device: torch.device) -> torch.Tensor:
        torch.manual_seed(0)
        x = torch.randn(256, 256).to(device)
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision(precision)
        try:
            return (x @ x).cpu()
        finally:
            torch.set_float32_matmul_precision(before)

    return product


def _of(values: list, function: Callable, dtype: torch.dtype = torch.float32) -> Callable:
    return lambda device: function(torch.tensor(values, dtype=dtype).to(device))


def _matrix(function: Callable, dtype: torch.dtype = torch.float32) -> Callable:
    def of_matrix(device: torch.device) -> torch.Tensor:
        torch.manual_seed(0)
        return function(torch.randn(8, 8, dtype=dtype).to(device))

    return of_matrix


def _from_vectors(x: torch.Tensor) -> torch.Tensor:
    left, values, right = torch.linalg.svd(x)
    return left @ values.diag() @ right


_LARGE = [float("nan"), float("inf"), -float("inf"), 3e9, -3e9, 1e19]
CASES: dict[str, Callable[[torch.device], torch.Tensor]] = {
    "float32 product, highest": _product("highest"),
    "float32 product, high": _product("high"),
    "float32 product, medium": _product("medium"),
    "float64 product": _matrix(lambda x: x @ x, torch.float64),
    "int64 product": _of([2**40 + 1, -3], lambda x: x * 3, torch.int64),
    "mean of 41 ones": _of([1.0] * 41, torch.mean),
    "floats that fit no int32": _of(_LARGE, lambda x: x.int()),
    "floats that fit no int64": _of(_LARGE, lambda x: x.long()),
    "subnormal numbers": _of([1e-40, -1e-40], lambda x: x * 2),
    "lgamma": _of([0.1, 1.5, 7.3, 30.0], torch.lgamma),
    "exp2": _of([0.1, 1.5, 7.3, 30.0], torch.exp2),
    "polygamma": _of([0.1, 1.5, 7.3, 30.0], lambda x: torch.polygamma(1, x)),
    "float16 to an infinite power": _of([-2.0, 2.0], lambda x: x**70_000, torch.float16),
    "complex64 times 1j": _matrix(lambda x: torch.complex(x, x) * 1j),
    "complex128": _matrix(lambda x: torch.complex(x, x).abs(), torch.float64),
    "a matrix from its singular vectors": _matrix(_from_vectors),
    "eigenvalues": _matrix(lambda x: torch.linalg.eigvals(x).abs().sort().values),
    "the inverse of a matrix of NaN": _matrix(lambda x: torch.linalg.inv(x * float("nan"))),
    "an index out of range": _of([1.0, 2.0], lambda x: x[torch.tensor([5], device=x.device)]),
}


def _value(case: Callable, device: str) -> torch.Tensor | str:
    try:
        return case(torch.device(device)).cpu()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def _compared(case: Callable) -> str | list:
    """ "equal", the largest difference as a part of the largest number, or both results."""
    ours, theirs = _value(case, "jax"), _value(case, "cpu")
    if isinstance(ours, str) or isinstance(theirs, str):
        return "equal" if ours == theirs else [str(ours), str(theirs)]
    if torch.equal(ours.nan_to_num(), theirs.nan_to_num()):
        return "equal"
    if ours.is_floating_point() and ours.isfinite().all() and theirs.isfinite().all():
        return f"{((ours - theirs).abs().max() / theirs.abs().max()).item():.1e}"
    return [str(ours.tolist()), str(theirs.tolist())]


def of_cases() -> dict[str, Any]:
    return {name: _compared(case) for name, case in CASES.items()}


PARTS = {
    "digits": of_digits,
    "gpt": of_gpt,
    "mesh": of_mesh,
    "kernels": of_kernels,
    "cases": of_cases,
}


def _outcome(part: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        found = part()
    except Exception:
        found = {"error": traceback.format_exc(limit=-3)}
    return {**found, "seconds": time.perf_counter() - start}


def main(names: Collection[str] = ()) -> int:
    versions = {"torch_xla_lite": torch_xla_lite.__version__, "torch": torch.__version__}
    report: dict[str, Any] = {
        "versions": versions | {"jax": jax.__version__, "Python": platform.python_version()},
        "devices": [f"{device.platform} {device.device_kind}" for device in jax.devices()],
    }
    for name in names or PARTS:
        print(name, file=sys.stderr, flush=True)
        report[name] = _outcome(PARTS[name])
    print(json.dumps(report, indent=1))
    return int(any(report[name].keys() & {"error", "failed"} for name in names or PARTS))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
