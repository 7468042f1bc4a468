#!/usr/bin/env python3
"""Compares device jax with torch's CPU on PyTorch's own database of ops and sample inputs.

    python scripts/op_coverage.py                             # forward, float32
    python scripts/op_coverage.py --mode backward --json backward.json
    python scripts/op_coverage.py --dtype uint8 --op interpolate --verbose
    python scripts/op_coverage.py --mode all --dtype all --json all.json     # hours

Each op runs on its sample inputs on both devices. An op may be:

    agrees    all samples give the same results (as the CPU in float32, or in float64), and those
              that the CPU refuses are refused
    differs   a result has another value, shape or dtype
    raises    the CPU computes a sample that jax refuses
    accepts   jax computes a sample that the CPU refuses
    timeout   it took longer than --timeout
    crashes   the process ended
    no        the CPU computes none of the samples, so there is nothing to compare

The database needs one more package:  pip install expecttest

Results of random ops are compared by shape and dtype alone. Ops run in child processes, so that one
that crashes or hangs ends nothing else. --json writes one object for each op, mode and dtype, among
it the ops that fell back to ATen's CPU kernels; the fields are those of `Result` and are stable.

Exit code 1 if any op does anything but agree (or "no"), else 0.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import json
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

MODES = ("forward", "backward", "inplace", "out")
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "uint8", "bool", "complex64")
# The other dtypes that --dtype takes.
MORE_DTYPES = ("int8", "int16", "int32", "complex128")

# Relative and absolute, the latter times the largest element.
_TOLERANCES = {
    torch.float64: 1e-8,
    torch.complex128: 1e-8,
    torch.float32: 1e-4,
    torch.complex64: 1e-4,
    torch.float16: 4e-3,
    torch.bfloat16: 3e-2,
}


@dataclasses.dataclass(frozen=True)
class Job:
    """One op in one mode and one dtype."""

    op: str
    mode: str
    dtype: str


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of a job; `detail` is the first thing that is not as on the CPU."""

    op: str
    mode: str
    dtype: str
    status: str
    samples: int = 0
    seconds: float = 0.0
    detail: str = ""
    fallbacks: tuple[str, ...] = ()


class _Difference(Exception):
    """A result is not the CPU's."""


# --- in a child -----------------------------------------------------------------------------------


def _database() -> dict[str, Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    # Samplers of the database set a seed in each call, and look like deterministic ops. All modules
    # that define ops have a reference to this function.
    for module in list(sys.modules.values()):
        if "wrapper_set_seed" in getattr(module, "__dict__", {}):
            module.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    return {op.formatted_name: op for op in op_db}


def _serve(connection: Connection, num_samples: int) -> None:
    """Answers jobs with results until the other end closes."""
    import torch_xla_lite  # noqa: F401

    warnings.simplefilter("ignore")
    ops = _database()
    with contextlib.suppress(EOFError):
        while True:
            job = connection.recv()
            connection.send(_run(ops[job.op], job, num_samples))


def _run(op: Any, job: Job, num_samples: int) -> Result:
    from torch_xla_lite import debug

    start = time.monotonic()
    debug.reset_metrics()
    status, detail, count = "no", "", 0
    try:
        for sample in _samples(op, job, num_samples):
            verdict, text = _compare(op, job.mode, sample)
            if verdict == "no":
                continue
            count += 1
            if verdict == "agrees":
                status = verdict if status == "no" else status
            elif status in ("no", "agrees"):
                status, detail = verdict, f"{_short(sample)}: {text}"
    except Exception as error:
        detail = f"no samples: {type(error).__name__}: {str(error)[:200]}"
    seconds = round(time.monotonic() - start, 2)
    fallbacks = tuple(sorted(debug.metrics()["fallbacks"]))
    return Result(job.op, job.mode, job.dtype, status, count, seconds, detail, fallbacks)


def _samples(op: Any, job: Job, limit: int) -> Iterator[Any]:
    """Sample inputs on the CPU. For a dtype that the op is not said to take: those of float32,
    converted, so that what the CPU refuses is met too."""
    dtype = getattr(torch, job.dtype)
    grad = job.mode == "backward"
    torch.manual_seed(0)
    known = dtype in op.dtypes
    source = dtype if known else torch.float32 if torch.float32 in op.dtypes else None
    if source is None or (grad and not known):
        return
    for i, sample in enumerate(op.sample_inputs("cpu", source, requires_grad=grad)):
        if i == limit:
            return
        yield sample if known else sample.transform(lambda value: _cast(value, dtype))


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype == torch.float32:
        return value.detach().to(dtype)
    return dtype if value is torch.float32 else value


def _on_jax(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().to("jax").requires_grad_(value.requires_grad)
    return value


def _compare(op: Any, mode: str, sample: Any) -> tuple[str, str]:
    function = _FUNCTIONS[mode]
    other = sample.transform(_on_jax)
    if other.kwargs.get("device") == "cpu":
        other.kwargs["device"] = "jax"
    state = torch.get_rng_state()
    try:
        wanted = function(op, _copied(sample), None)
    except _Inapplicable:
        return "no", ""
    except Exception as error:
        wanted = error
    try:
        got = _to_cpu(function(op, other, wanted))
    except Exception as error:
        if isinstance(wanted, Exception):
            return "no", ""
        return "raises", f"{type(error).__name__}: {str(error)[:300]}"
    if isinstance(wanted, Exception):
        return "accepts", f"CPU: {type(wanted).__name__}: {str(wanted)[:200]}"
    values = _is_deterministic(op, function, sample, state)
    try:
        _check_defined(sample, got, _to_cpu(wanted), values)
    except (_Difference, AssertionError) as error:
        # The CPU may be the one that is wrong: where everything cancels, float32 leaves noise.
        with contextlib.suppress(Exception):
            _check_defined(sample, got, _in_float64(op, function, sample), values)
            return "agrees", ""
        return "differs", " ".join(str(error).split())[:300]
    return "agrees", ""


def _check_defined(sample: Any, got: Any, wanted: Any, values: bool) -> None:
    """Compares the results, or else what the database says is defined of them: eigenvectors, for
    example, without their sign."""
    try:
        _check(got, wanted, values)
    except (_Difference, AssertionError):
        try:
            got, wanted = (sample.output_process_fn_grad(_as_tuple(x)) for x in (got, wanted))
        except Exception:
            raise _Difference(f"{got!r}, not {wanted!r}") from None
        _check(_to_cpu(got), _to_cpu(wanted), values)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _in_float64(op: Any, function: Callable[..., Any], sample: Any) -> Any:
    """What the CPU computes in float64, rounded to float32."""

    def cast(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
            return torch.float64 if value is torch.float32 else value
        return value.detach().double().requires_grad_(value.requires_grad)

    def rounded(value: Any) -> Any:
        if isinstance(value, list):
            return [rounded(item) for item in value]
        is_wide = isinstance(value, torch.Tensor) and value.dtype == torch.float64
        return value.float() if is_wide else value

    return rounded(_to_cpu(function(op, sample.transform(cast), None)))


def _copied(sample: Any) -> Any:
    return sample.transform(
        lambda value: (
            value.detach().clone().requires_grad_(value.requires_grad)
            if isinstance(value, torch.Tensor)
            else value
        )
    )


class _Inapplicable(Exception):
    """The op has no such mode."""


def _forward(op: Any, sample: Any, _wanted: Any) -> Any:
    return op(sample.input, *sample.args, **sample.kwargs)


def _backward(op: Any, sample: Any, _wanted: Any) -> Any:
    if not op.supports_autograd:
        raise _Inapplicable
    outputs = sample.output_process_fn_grad(op(sample.input, *sample.args, **sample.kwargs))
    outputs = [x for x in _tensors(outputs) if x.requires_grad]
    inputs = [x for x in _tensors([sample.input, sample.args, sample.kwargs]) if x.requires_grad]
    if not outputs or not inputs:
        raise _Inapplicable
    seeds = []
    for i, x in enumerate(outputs):
        generator = torch.Generator().manual_seed(i)
        seed = torch.randn(x.shape, generator=generator, dtype=torch.float64)
        seeds.append(seed.to(x.dtype).to(x.device))
    return torch.autograd.grad(outputs, inputs, seeds, allow_unused=True)


def _inplace(op: Any, sample: Any, _wanted: Any) -> Any:
    variant = op.inplace_variant
    if variant is None:
        raise _Inapplicable
    target = sample.input
    result = variant(target, *sample.args, **sample.kwargs)
    return [target, result]


def _out(op: Any, sample: Any, wanted: Any) -> Any:
    if not op.supports_out:
        raise _Inapplicable
    if wanted is None or isinstance(wanted, Exception):
        shapes = op(sample.input, *sample.args, **sample.kwargs)
    else:
        shapes = wanted[0]
    device = next((x.device for x in _tensors([sample.input, sample.args])), "cpu")
    if isinstance(shapes, torch.Tensor):
        out: Any = torch.zeros(shapes.shape, dtype=shapes.dtype, device=device)
    else:
        out = tuple(torch.zeros(x.shape, dtype=x.dtype, device=device) for x in shapes)
    op(sample.input, *sample.args, **sample.kwargs, out=out)
    return [out]


_FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "forward": _forward,
    "backward": _backward,
    "inplace": _inplace,
    "out": _out,
}


def _is_deterministic(
    op: Any, function: Callable[..., Any], sample: Any, state: torch.Tensor
) -> bool:
    """Whether the CPU gives the same with another seed, and the op has defined values at all."""
    if "empty" in op.name:
        return False
    results = []
    for seed in range(5):  # A few random bools may be equal once or twice.
        torch.manual_seed(seed)
        results.append(_to_cpu(function(op, _copied(sample), None)))
    torch.set_rng_state(state)
    try:
        for other in results[1:]:
            _check(results[0], other, True)
    except (_Difference, AssertionError):
        return False
    return True


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [x for item in value for x in _tensors(item)]
    return []


def _to_cpu(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, (list, tuple)):
        return [_to_cpu(item) for item in value]
    return value


def _check(got: Any, wanted: Any, values: bool) -> None:
    if isinstance(wanted, list):
        if not isinstance(got, list) or len(got) != len(wanted):
            raise _Difference(f"another number of results: {type(got).__name__}")
        for a, b in zip(got, wanted, strict=True):
            _check(a, b, values)
    elif isinstance(wanted, torch.Tensor):
        _check_tensor(got, wanted, values)
    elif values and got != wanted and not (got != got and wanted != wanted):
        raise _Difference(f"{got!r}, not {wanted!r}")


def _check_tensor(got: Any, wanted: torch.Tensor, values: bool) -> None:
    if not isinstance(got, torch.Tensor):
        raise _Difference(f"{type(got).__name__}, not a tensor")
    if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
        raise _Difference(f"{got.dtype} {list(got.shape)}, not {wanted.dtype} {list(wanted.shape)}")
    if not values or not wanted.numel():
        return
    if wanted.layout != torch.strided:
        if got.layout != wanted.layout:
            raise _Difference(f"{got.layout}, not {wanted.layout}")
        got, wanted = got.to_dense(), wanted.to_dense()
    if wanted.is_quantized:
        got, wanted = got.dequantize(), wanted.dequantize()
    tolerance = _TOLERANCES.get(wanted.dtype, 0.0)
    finite = wanted[wanted.isfinite()] if tolerance else wanted
    scale = finite.abs().max().item() if tolerance and finite.numel() else 0.0
    torch.testing.assert_close(
        got.resolve_conj().resolve_neg(),
        wanted.resolve_conj().resolve_neg(),
        rtol=tolerance,
        atol=tolerance * min(max(scale, 0.1), 1e30),
        equal_nan=True,
    )


def _short(sample: Any) -> str:
    def text(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(map(text, value)) + "]"
        return repr(value)

    parts = [text(sample.input), *map(text, sample.args)]
    parts += [f"{name}={text(value)}" for name, value in sample.kwargs.items()]
    return "(" + ", ".join(parts)[:200] + ")"


# --- in the parent --------------------------------------------------------------------------------


class _Child:
    """A process that runs jobs; another one takes its place when it crashes or hangs."""

    def __init__(self, num_samples: int) -> None:
        self._num_samples = num_samples
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, self._num_samples), daemon=True
        )
        self._process.start()
        theirs.close()
        self._is_fresh = True

    def run(self, job: Job, timeout: float) -> Result:
        start = time.monotonic()
        # A new process imports torch first.
        limit = timeout + (60 if self._is_fresh else 0)
        self._is_fresh = False
        status = "crashes"
        with contextlib.suppress(EOFError, OSError):
            self._connection.send(job)
            if self._connection.poll(limit):
                return self._connection.recv()
            status = "timeout"
        seconds = round(time.monotonic() - start, 2)
        detail = f"exit code {self._stop()}" if status == "crashes" else f"after {seconds} s"
        if status == "timeout":
            self._stop()
        self._start()
        return Result(job.op, job.mode, job.dtype, status, 0, seconds, detail)

    def _stop(self) -> int | None:
        self._process.join(1)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._connection.close()
        return self._process.exitcode


def _run_all(jobs: list[Job], arguments: argparse.Namespace) -> Iterator[Result]:
    child = _Child(arguments.samples)
    for job in jobs:
        yield child.run(job, arguments.timeout)


def _table(results: list[Result]) -> str:
    groups: dict[tuple[str, str], collections.Counter[str]] = {}
    for result in results:
        groups.setdefault((result.mode, result.dtype), collections.Counter())[result.status] += 1
    names = ("agrees", "differs", "raises", "accepts", "timeout", "crashes", "no")
    lines = ["| mode | dtype | " + " | ".join(names) + " |", "|" + "---|" * (len(names) + 2)]
    for (mode, dtype), counts in groups.items():
        numbers = " | ".join(str(counts[name]) for name in names)
        lines.append(f"| {mode} | {dtype} | {numbers} |")
    return "\n".join(lines)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--op", action="append", help="only ops whose name contains this")
    parser.add_argument("--mode", default="forward", choices=(*MODES, "all"))
    parser.add_argument("--dtype", default="float32", choices=(*DTYPES, *MORE_DTYPES, "all"))
    parser.add_argument("--samples", type=int, default=12, help="of each op, at most")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one op")
    parser.add_argument("--json", type=Path, help="write all results there")
    parser.add_argument("--verbose", action="store_true", help="print each op that agrees, too")
    return parser.parse_args()


def main() -> int:
    arguments = _parse()
    names = [
        name
        for name in _database()
        if not arguments.op or any(part in name for part in arguments.op)
    ]
    modes = MODES if arguments.mode == "all" else (arguments.mode,)
    dtypes = DTYPES if arguments.dtype == "all" else (arguments.dtype,)
    jobs = [Job(name, mode, dtype) for mode in modes for dtype in dtypes for name in names]
    results = []
    for result in _run_all(jobs, arguments):
        results.append(result)
        if arguments.verbose or result.status not in ("agrees", "no"):
            print(
                f"{result.op} {result.mode} {result.dtype}: {result.status} {result.detail}",
                flush=True,
            )
        if arguments.json:
            text = json.dumps([dataclasses.asdict(each) for each in results], indent=1)
            arguments.json.write_text(text + "\n")
    print(_table(results))
    return int(any(result.status not in ("agrees", "no") for result in results))


if __name__ == "__main__":
    sys.exit(main())
