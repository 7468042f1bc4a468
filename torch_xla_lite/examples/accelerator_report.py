"""Runs what tells most about an accelerator, and prints one JSON for a report.

    python -m torch_xla_lite.examples.accelerator_report > report.json

    digits    the accuracy of examples/digits.py
    gpt       a small GPT in float32 and bfloat16: its losses beside those of torch on the CPU
    mesh      the same, divided among all devices
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
from collections.abc import Callable
from typing import Any

import jax
import torch
from torch import nn

import torch_xla_lite
from torch_xla_lite import debug

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


PARTS = {"digits": of_digits, "gpt": of_gpt, "mesh": of_mesh, "cases": of_cases}


def _outcome(part: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        found = part()
    except Exception:
        found = {"error": traceback.format_exc(limit=-3)}
    return {**found, "seconds": time.perf_counter() - start}


def main() -> int:
    versions = {"torch_xla_lite": torch_xla_lite.__version__, "torch": torch.__version__}
    report: dict[str, Any] = {
        "versions": versions | {"jax": jax.__version__, "Python": platform.python_version()},
        "devices": [f"{device.platform} {device.device_kind}" for device in jax.devices()],
    }
    for name, part in PARTS.items():
        print(name, file=sys.stderr, flush=True)
        report[name] = _outcome(part)
    print(json.dumps(report, indent=1))
    return int(any("error" in report[name] for name in PARTS))


if __name__ == "__main__":
    sys.exit(main())
