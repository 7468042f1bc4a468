#!/usr/bin/env python3
"""Compares device jax with torch's CPU on PyTorch's own database of ops and sample inputs.

    python scripts/op_coverage.py                             # forward, float32
    python scripts/op_coverage.py --mode backward --json results.json
    python scripts/op_coverage.py --dtype uint8 --op interpolate --verbose
    python scripts/op_coverage.py --interpret --op linalg     # by the interpreter
    python scripts/op_coverage.py --mode all --dtype all --json results.json     # hours
    python scripts/op_coverage.py --tpu --samples 2           # compiles for a TPU, too

Each op runs on its sample inputs on both devices. Graphs are compiled, or, with --interpret, run by
the interpreter, as all new graphs do outside this script. An op may be:

    agrees    jax gives the CPU's results, in this dtype or in float64, for all samples that the CPU
              computes, and refuses the others
    accepts   likewise, but jax computes some of the others
    differs   a result has another value, shape or dtype
    raises    jax refuses a sample that the CPU computes
    timeout   the op takes longer than --timeout
    crashes   the op ends the process
    extends   jax computes samples, the CPU none
    no        neither computes any, so there is nothing to compare

The database needs one more package:  pip install expecttest

Results of random ops are compared by shape and dtype alone. Ops run in child processes, so the run
goes on after an op that crashes or hangs.

--tpu compiles each graph for a TPU v5e that is not there, too (scripts/bench/paper_devices.py). It
adds to the results, and replaces none.

--json FILE adds the results to FILE, one line for all ops with the same results; the format is
stable. What FILE has is not run again, so a run that was interrupted continues; --again repeats
what failed.
The table at the end is that of FILE. --markdown writes it into a document, too.

Exit code 1 if any op of this run accepts, differs, raises, crashes or takes too long, else 0.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import multiprocessing
import sys
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).absolute().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from scripts import op_results  # noqa: E402
from scripts.op_results import (  # noqa: E402
    DTYPES,
    FINE,
    MODES,
    MORE_DTYPES,
    ON_PAPER,
    Job,
    Result,
)
from torch_xla_lite.debug.comparison import _TOLERANCES  # noqa: E402


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


def _serve(connection: Connection, num_samples: int, interprets: bool, kind: str | None) -> None:
    """Answers jobs with results until the other end closes."""
    from torch_xla_lite import _XLAC

    _XLAC.set_compile_when("repeated" if interprets else "first")
    warnings.simplefilter("ignore")
    ops = _database()
    with contextlib.suppress(EOFError), _compiled_for(kind) as graphs:
        while True:
            job = connection.recv()
            graphs.clear()
            result = _run(ops[job.op], job, num_samples)
            on_paper = _on_paper(graphs) if kind else ""
            connection.send(dataclasses.replace(result, on_paper=on_paper))


def _compiled_for(kind: str | None) -> contextlib.AbstractContextManager[list[Any]]:
    from scripts.bench import paper_graphs

    return paper_graphs.compiled_for(kind) if kind else contextlib.nullcontext([])


def _on_paper(graphs: list[Any]) -> str:
    """What came of compiling a job for a device on paper: of `ON_PAPER`, or an error."""
    for graph in graphs:
        if graph.error:
            return graph.error[:200]
    on_host = any(graph.on_host for graph in graphs)
    return "no graph" if not graphs else "on the host" if on_host else "compiles"


def _run(op: Any, job: Job, num_samples: int) -> Result:
    from torch_xla_lite import _XLAC, debug

    debug.reset_metrics()
    found: dict[str, str] = {}
    try:
        for sample in _samples(op, job, num_samples):
            # A graph that was interpreted before would be compiled.
            _XLAC.clear_cache()
            verdict, text = _compare(op, job, sample)
            found.setdefault(verdict, f"{_short(sample)}: {text}" if text else "")
    except Exception as error:
        found.setdefault("no", f"no samples: {type(error).__name__}: {str(error)[:200]}")
    status = next((x for x in ("differs", "raises", "accepts", "agrees") if x in found), "no")
    detail = found.get(status, "")
    if status == "accepts" and "agrees" not in found:
        status = "extends"
    fallbacks = tuple(sorted(debug.metrics()["fallbacks"]))
    return Result(job.op, job.mode, job.dtype, status, detail, fallbacks)


def _samples(op: Any, job: Job, limit: int) -> Iterator[Any]:
    """Sample inputs on the CPU, from the whole range of what the database has. For a dtype that the
    database does not list for the op: its float32 samples, converted, to include refused calls."""
    dtype = getattr(torch, job.dtype)
    grad = job.mode == "backward"
    torch.manual_seed(0)
    known = dtype in op.dtypes
    source = dtype if known else torch.float32 if torch.float32 in op.dtypes else None
    if source is None or (grad and not known):
        return
    samples = list(op.sample_inputs("cpu", source, requires_grad=grad))
    count = min(limit, len(samples))
    for i in range(count):
        sample = samples[i * len(samples) // count]
        yield sample if known else sample.transform(lambda value: _cast(value, dtype))


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype == torch.float32:
        return value.detach().to(dtype)
    return dtype if value is torch.float32 else value


def _on_jax(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().to("jax").requires_grad_(value.requires_grad)
    return value


def _compare(op: Any, job: Job, sample: Any) -> tuple[str, str]:
    function = _FUNCTIONS[job.mode]
    state = torch.get_rng_state()
    try:
        wanted = function(op, _copied(sample), None)
    except _Inapplicable:
        return "no", ""
    except Exception as error:
        wanted = error
    try:
        other = sample.transform(_on_jax)
        if other.kwargs.get("device") == "cpu":
            other.kwargs["device"] = "jax"
        got = _to_cpu(function(op, other, wanted))
    except Exception as error:
        if isinstance(wanted, Exception):
            return "no", ""
        return "raises", f"{type(error).__name__}: {str(error)[:300]}"
    if isinstance(wanted, Exception):
        return "accepts", f"CPU: {type(wanted).__name__}: {str(wanted)[:200]}"
    values = _is_deterministic(op, function, sample, state)
    wanted = _to_cpu(wanted)
    try:
        if op.name in _WITH_TIES and job.mode in ("forward", "out"):
            got, wanted = (_with_elements(op, sample, results) for results in (got, wanted))
        _check_defined(sample, got, wanted, values)
    except (_Difference, AssertionError, RuntimeError) as error:
        # The CPU may be the one that is wrong: where everything cancels, float32 leaves noise, and
        # float16 overflows.
        with contextlib.suppress(Exception):
            in_float64 = _in_float64(op, function, sample, getattr(torch, job.dtype))
            _check_defined(sample, got, in_float64, values)
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


_WIDE = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
}


def _in_float64(op: Any, function: Callable[..., Any], sample: Any, dtype: torch.dtype) -> Any:
    """What the CPU computes in float64, rounded to `dtype`."""

    def cast(value: Any) -> Any:
        if isinstance(value, torch.dtype):
            return _WIDE.get(value, value)
        if not isinstance(value, torch.Tensor) or value.dtype not in _WIDE:
            return value
        return value.detach().to(_WIDE[value.dtype]).requires_grad_(value.requires_grad)

    def rounded(value: Any) -> Any:
        if isinstance(value, list):
            return [rounded(item) for item in value]
        is_wide = isinstance(value, torch.Tensor) and value.dtype == _WIDE.get(dtype)
        return value.to(dtype) if is_wide else value

    return rounded(_to_cpu(function(op, sample.transform(cast), None)))


# Ops whose choice among equal elements is not defined -> the position of `dim`.
_WITH_TIES = {"sort": 0, "argsort": 0, "topk": 1, "kthvalue": 1}


def _with_elements(op: Any, sample: Any, results: Any) -> Any:
    """The results of an op of `_WITH_TIES`, with elements in the place of the last one, indices."""
    if isinstance(results, list):
        return [*results[:-1], _with_elements(op, sample, results[-1])]
    position = _WITH_TIES[op.name]
    dim = sample.kwargs.get("dim", (*sample.args, -1, -1)[position])
    if sample.input.ndim > results.ndim:
        return sample.input.gather(dim, results.unsqueeze(dim)).squeeze(dim)
    return sample.input.gather(dim, results)


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
        shapes = wanted
    devices = [x.device for x in _tensors([sample.input, sample.args])]
    device = sample.kwargs.get("device") or (devices or ["cpu"])[0]
    if isinstance(shapes, torch.Tensor):
        out: Any = torch.zeros(shapes.shape, dtype=shapes.dtype, device=device)
    else:
        out = tuple(torch.zeros(x.shape, dtype=x.dtype, device=device) for x in shapes)
    op(sample.input, *sample.args, **sample.kwargs, out=out)
    return out


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
    # Relative, and absolute: the latter times the largest element.
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

    def __init__(self, num_samples: int, interprets: bool = False, kind: str | None = None) -> None:
        self._arguments = (num_samples, interprets, kind)
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, *self._arguments), daemon=True)
        self._process.start()
        theirs.close()
        self._is_fresh = True

    def run(self, job: Job, timeout: float) -> Result:
        # A new process imports torch first.
        limit = timeout + (60 if self._is_fresh else 0)
        self._is_fresh = False
        status = "crashes"
        with contextlib.suppress(EOFError, OSError):
            self._connection.send(job)
            if self._connection.poll(limit):
                return self._connection.recv()
            status = "timeout"
        detail = f"exit code {self._stop()}" if status == "crashes" else f"after {limit} s"
        if status == "timeout":
            self._stop()
        self._start()
        on_paper = f"{status}: {detail}" if self._arguments[-1] else ""
        return Result(job.op, job.mode, job.dtype, status, detail, on_paper=on_paper)

    def _stop(self) -> int | None:
        self._process.join(1)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._connection.close()
        return self._process.exitcode


def _run_all(jobs: list[Job], arguments: argparse.Namespace) -> Iterator[Result]:
    child = _Child(arguments.samples, arguments.interpret, "v5e" if arguments.tpu else None)
    for job in jobs:
        yield child.run(job, arguments.timeout)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--op", action="append", help="only ops whose name contains this")
    parser.add_argument("--mode", default="forward", choices=(*MODES, "all"))
    parser.add_argument("--dtype", default="float32", choices=(*DTYPES, *MORE_DTYPES, "all"))
    parser.add_argument("--samples", type=int, default=12, help="of each op, at most")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one op")
    parser.add_argument("--json", type=Path, help="add the results to this file")
    parser.add_argument("--again", action="store_true", help="run what failed in it again")
    parser.add_argument("--markdown", type=Path, help="write the table into this document")
    parser.add_argument("--interpret", action="store_true", help="compile nothing")
    parser.add_argument("--tpu", action="store_true", help="compile for a TPU on paper, too")
    parser.add_argument("--verbose", action="store_true", help="print each op that agrees, too")
    return parser.parse_args()


def _is_done(result: Result, arguments: argparse.Namespace) -> bool:
    if arguments.tpu:
        return result.on_paper in ON_PAPER or (result.on_paper != "" and not arguments.again)
    return not arguments.again or result.status in FINE


def main() -> int:
    arguments = _parse()
    modes = MODES if arguments.mode == "all" else (arguments.mode,)
    dtypes = DTYPES if arguments.dtype == "all" else (arguments.dtype,)
    results = op_results.read(arguments.json) if arguments.json else {}
    done = {job for job, x in results.items() if _is_done(x, arguments)}
    jobs = [
        job
        for mode in modes
        for dtype in dtypes
        for name in _database()
        if not arguments.op or any(part in name for part in arguments.op)
        if (job := Job(name, mode, dtype)) not in done
    ]
    failed = False
    for job, result in zip(jobs, _run_all(jobs, arguments), strict=True):
        if arguments.tpu and job in results:
            result = dataclasses.replace(results[job], on_paper=result.on_paper)
        results[job] = result
        failed |= result.status not in FINE
        if arguments.verbose or result.status not in FINE:
            print(*dataclasses.astuple(result)[:4], result.detail, flush=True)
        if arguments.json:
            op_results.write(results, arguments.json)
    print(op_results.table(results))
    if arguments.markdown:
        op_results.insert(arguments.markdown, op_results.section(results))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
