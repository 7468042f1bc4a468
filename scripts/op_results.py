"""Stores the results of op_coverage.py, and writes them as a table and as docs/op_coverage.md."""

from __future__ import annotations

import collections
import dataclasses
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bazel.pybuild import files

MODES = ("forward", "backward", "inplace", "out")
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "uint8", "bool", "complex64")
# The other dtypes that --dtype takes.
MORE_DTYPES = ("int8", "int16", "int32", "complex128")

STATUSES = ("agrees", "accepts", "differs", "raises", "timeout", "crashes", "extends", "no")
_PASSED = ("agrees", "accepts")
# What is not a failure of this project.
FINE = ("agrees", "extends", "no")
# The same for compiling for a device that is not there.
ON_PAPER = ("compiles", "on the host", "no graph")


@dataclasses.dataclass(frozen=True)
class Job:
    """One op in one mode and one dtype."""

    op: str
    mode: str
    dtype: str


@dataclasses.dataclass(frozen=True)
class Result:
    """Result of a job; `detail` is the first difference from the CPU, and `on_paper` what came of
    compiling for a TPU: of `ON_PAPER`, or the error; empty where that was not tried."""

    op: str
    mode: str
    dtype: str
    status: str
    detail: str = ""
    fallbacks: tuple[str, ...] = ()
    on_paper: str = ""


# Groups of jobs in a file: {mode: "dtype dtype ..."}.
_Group = dict[str, str]


def _group(results: Iterable[Result]) -> _Group:
    groups: _Group = {}
    for result in results:
        groups[result.mode] = f"{groups.get(result.mode, '')} {result.dtype}".lstrip()
    return groups


# What a file has of results by its text.
_TEXTS: dict[str, Callable[[Result], str]] = {
    "fallbacks": lambda result: " ".join(result.fallbacks),
    "tpu": lambda result: result.on_paper,
}


def _encode(results: Sequence[Result]) -> dict[str, Any]:
    """The results of one op as they stand in a file."""
    encoded: dict[str, Any] = {}
    for status in STATUSES:
        if group := _group(result for result in results if result.status == status):
            encoded[status] = group
    for name, text_of in _TEXTS.items():
        for text in dict.fromkeys(filter(None, map(text_of, results))):
            group = _group(result for result in results if text_of(result) == text)
            encoded.setdefault(name, {})[text] = group
    details: dict[str, str] = {}
    for result in results:
        # Equal reasons are kept once, and only their beginnings.
        detail = " ".join(result.detail.split())[:200]
        if result.status not in (*FINE, "accepts") and detail not in details.values():
            details[f"{result.mode} {result.dtype}"] = detail
    return encoded | ({"details": details} if details else {})


def _decode(op: str, encoded: dict[str, Any]) -> Iterator[Result]:
    def jobs(group: _Group) -> list[tuple[str, str]]:
        return [(mode, dtype) for mode, dtypes in group.items() for dtype in dtypes.split()]

    fallbacks, tpu = (
        {job: text for text, group in encoded.get(name, {}).items() for job in jobs(group)}
        for name in _TEXTS
    )
    for status in STATUSES:
        for job in jobs(encoded.get(status, {})):
            detail = encoded.get("details", {}).get(" ".join(job), "")
            calls = tuple(fallbacks.get(job, "").split())
            yield Result(op, *job, status, detail, calls, tpu.get(job, ""))


Results = dict[Job, Result]


def read(file: Path) -> Results:
    """The results in a file; none if there is no file."""
    if not file.exists():
        return {}
    return {
        Job(result.op, result.mode, result.dtype): result
        for ops, encoded in json.loads(file.read_text()).items()
        for op in ops.split()
        for result in _decode(op, encoded)
    }


def _ordered(results: Results) -> list[Result]:
    dtypes = (*DTYPES, *MORE_DTYPES)
    return sorted(
        results.values(), key=lambda x: (x.op, MODES.index(x.mode), dtypes.index(x.dtype))
    )


def write(results: Results, file: Path) -> None:
    """Writes a line for all ops that have the same results."""
    ops: dict[str, list[Result]] = {}
    for result in _ordered(results):
        ops.setdefault(result.op, []).append(result)
    alike: dict[str, list[str]] = {}
    for op, found in ops.items():
        alike.setdefault(json.dumps(_encode(found)), []).append(op)
    lines = (f"{json.dumps(' '.join(names))}: {encoded}" for encoded, names in alike.items())
    # An interrupted run leaves the old file.
    files.replace(file, "{\n" + ",\n".join(lines) + "\n}\n")


def table(results: Results) -> str:
    """Counts for each mode and dtype, in Markdown."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results.values():
        groups.setdefault((result.mode, result.dtype), []).append(result)
    names = ("accepts", "differs", "raises", "timeout", "crashes", "extends")
    columns = (
        "mode",
        "dtype",
        "the CPU computes",
        "passes",
        "passes without fallback",
        *names,
        "tpu",
    )
    lines = ["| " + " | ".join(columns) + " |", "|---|---|" + "---:|" * (len(columns) - 2)]
    dtypes = (*DTYPES, *MORE_DTYPES)
    for mode, dtype in sorted(groups, key=lambda x: (MODES.index(x[0]), dtypes.index(x[1]))):
        found = groups[mode, dtype]
        total = sum(result.status not in ("extends", "no") for result in found)
        passed = [result for result in found if result.status in _PASSED]
        in_graph = sum(not result.fallbacks for result in passed)
        counts = collections.Counter(result.status for result in found)
        cells = [mode, dtype, total, _share(len(passed), total), _share(in_graph, total)]
        tried = [result.on_paper for result in found if result.on_paper not in ("", "no graph")]
        cells += [*(counts[x] for x in names), _share(tried.count("compiles"), len(tried))]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def _share(count: int, total: int) -> str:
    return f"{count} ({100 * count / total:.1f} %)" if total else "0"


MARKS = ("<!-- Written by scripts/op_coverage.py -->", "<!-- End -->")


def failures(results: Results) -> str:
    """What fails, grouped by op."""
    failed = (x for x in _ordered(results) if x.status not in (*FINE, "accepts"))
    return _reasons(failed, lambda result: result.detail)


def not_on_tpu(results: Results) -> str:
    """What does not compile for a TPU, grouped by op."""
    fine = ("", "compiles", "no graph")
    failed = (x for x in _ordered(results) if x.on_paper not in fine)
    return _reasons(failed, lambda result: result.on_paper)


def _reasons(failed: Iterable[Result], reason_of: Callable[[Result], str]) -> str:
    ops: dict[str, list[Result]] = {}
    for result in failed:
        ops.setdefault(result.op, []).append(result)
    lines = ["| op | mode and dtypes | first reason |", "|---|---|---|"]
    for op, found in ops.items():
        jobs = "; ".join(f"{mode} {dtypes}" for mode, dtypes in _group(found).items())
        reason = " ".join(reason_of(found[0]).split()).replace("|", "\\|")
        lines.append(f"| `{op}` | {jobs} | {reason[:160]} |")
    return "\n".join(lines)


def section(results: Results) -> str:
    """What stands in the document."""
    parts = [table(results), "What fails:", failures(results)]
    return "\n\n".join([*parts, "What does not compile for a TPU:", not_on_tpu(results)])


def insert(document: Path, text: str, marks: Sequence[str] = MARKS) -> None:
    """Replaces what stands between the two marks of the document."""
    begin, end = map(re.escape, marks)
    new, count = re.subn(
        f"({begin}).*?({end})",
        lambda match: f"{match[1]}\n\n{text}\n\n{match[2]}",
        document.read_text(),
        flags=re.DOTALL,
    )
    if not count:
        sys.exit(
            f"{document} has no place for the table.\nAdd these two lines:\n" + "\n".join(marks)
        )
    document.write_text(new)
