"""Runs what tells most about an accelerator into one JSON, and writes docs/gpu.md from it.

    scripts/ci/accelerator.sh                                       # below eight minutes
    scripts/ci/accelerator.sh --peer OTHER_ENVIRONMENT/bin/python   # beside torch with CUDA
    scripts/ci/accelerator.sh --page                                # only writes the page

It runs the daily cases of the runtime but those that need what the device lacks, `digits` and the
kernels (examples/accelerator_report.py), and scripts.bench.gpu, in this order. Each ends when its
time is over, and counts with what it has by then. Exit code 1 if something failed, else 0.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from scripts import op_results

ROOT = Path(__file__).absolute().parents[1]
RESULTS, PAGE = "docs/measurements/accelerator.json", "docs/gpu.md"
MARKS = ("<!-- Written by scripts/accelerator.py -->", "<!-- End -->")
FOLDERS = ("programs", "models", "python")
# Seconds; "speed" takes as many for each of three contenders.
LIMITS = {"tests": 270, "digits": 40, "kernels": 40, "speed": 40}

# torch and jax are imported once.
_FORKED = ("-ISP", "bazel/fork_client.py")

Part = dict[str, Any]


def main() -> int:
    """Runs the command line."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--peer", default=sys.executable, help="Python of a torch with CUDA")
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if not options.page:
        files = (file for x in FOLDERS for file in sorted(ROOT.glob(f"test/{x}/**/*_test.py")))
        results = measure([*files], options.peer, LIMITS)
        (ROOT / RESULTS).write_text(json.dumps(results) + "\n")
    results = json.loads((ROOT / RESULTS).read_text())
    op_results.insert(ROOT / PAGE, section(results), MARKS)
    return int(any(part.keys() & {"error", "failed"} for part in results.values()))


def measure(
    files: Sequence[Path], peer: str, limits: dict[str, int], models: int = 3
) -> dict[str, Part]:
    """Runs all parts on the device of this machine."""
    cores = len(os.sched_getaffinity(0))
    describe = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    machine = {"cores": cores, **json.loads(_python(300, "-c", _DEVICE))}
    parts = {
        "tests": _tests(files, limits["tests"], max(1, cores - 1)),
        "digits": _found(lambda: _report("digits", limits["digits"])),
        "kernels": _found(lambda: _report("kernels", limits["kernels"])),
        "speed": _found(lambda: _speed(peer, models, limits["speed"])),
    }
    return {name: {"commit": commit, "machine": machine, **part} for name, part in parts.items()}


_DEVICE = """
import jax, json, platform, torch
print(json.dumps({"device": jax.devices()[0].device_kind, "jax": jax.__version__,
    "torch": torch.__version__, "Python": platform.python_version()}))
"""


def _found(part: Callable[[], Part]) -> Part:
    """What a part gives, or its error: it was not finished in its time, or wrote no JSON."""
    try:
        return part()
    except (subprocess.TimeoutExpired, ValueError) as error:
        return {"error": str(error)}


def _report(name: str, seconds: int) -> Part:
    module = "torch_xla_lite.examples.accelerator_report"
    return json.loads(_python(seconds, "-m", module, name))[name]


def _python(seconds: float, *arguments: str) -> str:
    """What Python prints until the time is over."""
    environ = os.environ | {"PYTHONPATH": str(ROOT), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, timeout=seconds)
    return done.stdout.decode()


def _tests(files: Sequence[Path], seconds: int, processes: int) -> Part:
    """Each file has a process, so that one that XLA ends takes no other cases with it."""
    begin = time.monotonic()
    _python(300, *_FORKED, "--start")
    with ThreadPoolExecutor(processes) as pool:
        of_files = pool.map(lambda file: [*_cases(file, begin + seconds)], files)
        cases = [case for of_file in of_files for case in of_file]
    failed = [text for outcome, text in cases if outcome == "failed"]
    skipped = collections.Counter(text for outcome, text in cases if outcome == "skipped")
    found = {"cases": len(cases), "passed": len(cases) - len(failed) - skipped.total()}
    found |= {"skipped": skipped, "processes": processes, "seconds": time.monotonic() - begin}
    return found | ({"failed": failed} if failed else {})


def _cases(file: Path, end: float) -> Iterator[tuple[str, str]]:
    """The outcome of each case in a file, and its name, or why it was skipped."""
    name, why = os.path.relpath(file, ROOT), "its process ended"
    with tempfile.NamedTemporaryFile() as report:
        options = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report.name}"]
        try:
            _python(max(0, end - time.monotonic()), *_FORKED, *options, name)
        except subprocess.TimeoutExpired:
            why = "out of time"
        text = report.read()
    if not text:
        yield "failed", f"{name} ({why})"
        return
    for case in ElementTree.fromstring(text).iter("testcase"):
        found = {child.tag: child for child in case}
        if "skipped" in found:
            yield "skipped", found["skipped"].get("message", "")
        else:
            outcome = "failed" if found.keys() & {"failure", "error"} else "passed"
            yield outcome, f"{name}::{case.get('name')}"


def _speed(peer: str, models: int, seconds: int) -> Part:
    with tempfile.NamedTemporaryFile() as file:
        options = ["--seconds", str(seconds), "--models", str(models), "--peer", peer]
        _python(4 * seconds, "-m", "scripts.bench.gpu", *options, "--json", file.name)
        report = json.load(file)
    return {"peer": report["machine"]["torch_of_the_peers"], "sections": report["sections"]}


# --- the page -------------------------------------------------------------------------------------


def section(results: dict[str, Part]) -> str:
    """What the page says of the results."""
    machines = (part["machine"] for part in results.values())
    lines = ["## Test results", "", *dict.fromkeys(map(_MACHINE.format_map, machines)), ""]
    lines += ["| part | commit | result |", "|---|---|---|"]
    for name, text_of in _TEXTS.items():
        part = results[name]
        text = part["error"].splitlines()[-1] if "error" in part else text_of(part)
        text += "".join(f"; failed: `{failed}`" for failed in part.get("failed", [])[:20])
        lines.append(f"| {name} | {part['commit']} | {text} |")
    speed = results["speed"]
    text = speed.get("error") or f"the peer is torch {speed['peer']}."
    lines += ["", "## How fast", "", f"`scripts.bench.gpu` at {speed['commit']}; {text}"]
    lines += ["", "| | | ours | eager | `torch.compile` | ours / eager |"]
    lines += ["|---|---|---:|---:|---:|---:|"]
    for title, rows in speed.get("sections", {}).items():
        for row in rows:
            numbers = [row["values"].get(name) for name in ("ours", "eager", "compiled")]
            cells = ("" if x is None else f"{x:.3g}" for x in (*numbers, row["ratio"]))
            lines.append(f"| {title.partition(';')[0]} | {row['name']} | {' | '.join(cells)} |")
    return "\n".join(lines)


_MACHINE = "On one {device} with {cores} cores; jax {jax}, torch {torch}, Python {Python}."


def _of_tests(part: Part) -> str:
    done = "{passed:,} of {cases:,} cases pass in {seconds:.0f} s with {processes} processes"
    skipped = (f"; {count:,} skipped: {why}" for why, count in part.get("skipped", {}).items())
    return done.format_map(part) + "".join(skipped)


def _of_digits(part: Part) -> str:
    done = f"{part['accuracy']:.1%} on the test set, {part['step_ms']:.1f} ms a step"
    return f"{done}; {', '.join(part['fallbacks']) or 'nothing'} falls back"


def _of_kernels(part: Part) -> str:
    equal = "" if "failed" in part else "equal those of the CPU; "
    times = (f"{name} {ratio:.2f}" for name, ratio in part["time"].items())
    return f"{equal}time / that of XLA: {'; '.join(times)}"


_TEXTS = {"tests": _of_tests, "digits": _of_digits, "kernels": _of_kernels}

if __name__ == "__main__":
    sys.exit(main())
