#!/usr/bin/env python3
"""Measures the build: cold, with nothing to do, and each translation unit.

    python scripts/bench_build.py                      # everything, about four minutes
    python scripts/bench_build.py --rounds 3           # fewer repetitions of the short commands
    python scripts/bench_build.py --only null          # of: units, null, server
    python scripts/bench_build.py --json result.json

It builds a copy of this tree in a temporary folder, with a separate environment, cache and Bazel
server; nothing outside is changed. The copy contains the files that git tracks or would add, so
uncommitted edits are measured too.

The compared commands run alternately, and a ratio is the median of the ratios of neighbouring runs,
so that a temporary load affects both. ccache is disabled. bench_peers.py measures edits, and
bench_cache.py builds in other clones.

A table goes to the standard output. The JSON file is stable, for programs. The exit code is 0 even
if a goal is missed, and 1 if something did not build.
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bazel.pybuild.invocation import execution_log  # noqa: E402
from scripts import clones  # noqa: E402

PARTS = ("units", "null", "server")
JOBS = 2
# Bazel names a repository torch, or _main~external~torch if a module declares it.
_TORCH = re.compile(r"external/([^/]*[~+])?(torch|pybind11)/")


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
      name: what was measured.
      ours: median, in `unit`.
      other: median of the compared command; None if the goal is absolute.
      ratio: median of the paired ratios ours / other; None if the goal is absolute.
      unit: of the values.
      runs: the number of runs of each.
      goal: in words.
    """

    name: str
    ours: float
    other: float | None
    ratio: float | None
    unit: str
    runs: int
    goal: str


@dataclass(frozen=True)
class Unit:
    """The cost of compiling a translation unit.

    Attributes:
      source: relative to the tree.
      cpu_s: user and system seconds of the compiler, with the flags of the build.
      uses_torch: whether it includes a header of torch or of pybind11.
    """

    source: str
    cpu_s: float
    uses_torch: bool


@dataclass
class Result:
    """Everything that is printed."""

    machine: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)


class Clone:
    """A copy of the tree with its own environment."""

    def __init__(self, folder: Path, shared: Path, source: Path = ROOT):
        """Copies the tree.

        Args:
          folder: for tree and environment.
          shared: for Bazel's files and the disk cache, which clones of one user share.
          source: the tree to copy.
        """
        self.root = folder / "tree"
        clones.copy_tree(self.root, source)
        self.python = make_environment(folder / "environment")
        self.startup = f"--output_user_root={shared / 'bazel'}"
        self.environ = {
            **{name: value for name, value in os.environ.items() if "TORCH_XLA_LITE" not in name},
            "CCACHE_DISABLE": "1",
            "MAX_JOBS": str(JOBS),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS": self.startup,
            "XDG_CACHE_HOME": str(shared / "cache"),
        }
        # Without bytecode each command would compile the files of setup.py again.
        for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
            self.environ.pop(name, None)

    def run(self, command: Sequence[str | Path], folder: Path | None = None) -> float:
        """Runs a command, which must succeed, and returns the seconds that it took."""
        began = time.perf_counter()
        process = subprocess.run(
            command,
            cwd=folder or self.root,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        took = time.perf_counter() - began
        if process.returncode != 0:
            text = " ".join(str(word) for word in command)
            sys.exit(f"error: {text}\nfailed:\n{process.stdout}{process.stderr}")
        return took

    def develop(self) -> float:
        """Seconds of `setup.py develop`."""
        return self.run([self.python, "setup.py", "develop"])

    def report(self) -> dict[str, Any]:
        """The report of the last `develop`."""
        return json.loads((self.root / "build" / "report.json").read_text())

    def spawns(self) -> list[execution_log.Spawn]:
        """The processes that the last `develop` ran, with their commands."""
        return list(execution_log.read(self.root / execution_log.FILE))

    def bazel(self, *arguments: str) -> str:
        """Runs Bazel without setup.py and returns its output."""
        program = shutil.which("bazelisk") or shutil.which("bazel") or "bazel"
        command = [program, self.startup, *arguments]
        return subprocess.run(
            command, cwd=self.root, env=self.environ, capture_output=True, text=True, check=True
        ).stdout.strip()


def make_environment(folder: Path) -> Path:
    """Makes an environment that sees the packages of this one; installing changes only the new."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    ours = [path for path in sys.path if path.endswith("site-packages")]
    (site / "ours.pth").write_text("".join(f"{path}\n" for path in ours))
    return folder / "bin" / "python"


def paired(
    name: str,
    goal: str,
    rounds: int,
    ours: Callable[[], float],
    other: Callable[[], float],
) -> Row:
    """Runs two functions alternately, after one round that does not count."""
    ours(), other()
    pairs = [(ours(), other()) for _ in track(range(rounds), name, transient=True)]
    return Row(
        name=name,
        ours=statistics.median(pair[0] for pair in pairs),
        other=statistics.median(pair[1] for pair in pairs),
        ratio=statistics.median(first / second for first, second in pairs),
        unit="s",
        runs=rounds,
        goal=goal,
    )


def measure_cold(clone: Clone) -> Row:
    """The first build: no server, no external repositories, an empty disk cache."""
    took = clone.develop()
    actions = clone.report()["actions"]
    name = f"cold build, {actions['compile']} compiled, {actions['link']} linked"
    return Row(name, took, None, None, "s", 1, f"<= 60 s with {JOBS} jobs")


def measure_units(clone: Clone, spawns: list[execution_log.Spawn], rounds: int) -> list[Unit]:
    """Compiles each source with Bazel's commands, without Bazel."""
    root = Path(clone.bazel("info", "execution_root"))
    units = []
    compiles = [spawn for spawn in spawns if spawn.mnemonic == "CppCompile"]
    for spawn in track(compiles, "translation units", transient=True):
        source = spawn.arguments[spawn.arguments.index("-c") + 1]
        if not source.startswith("torch_xla_lite/"):
            continue
        units.append(
            Unit(
                source=source,
                cpu_s=min(_cpu_seconds(spawn, root) for _ in range(rounds)),
                uses_torch=any(_TORCH.match(path) for path in spawn.inputs),
            )
        )
    return sorted(units, key=lambda unit: unit.cpu_s, reverse=True)


def _cpu_seconds(spawn: execution_log.Spawn, root: Path) -> float:
    with tempfile.TemporaryDirectory() as folder:
        redirected = {"-o": str(Path(folder) / "unit.o"), "-MF": str(Path(folder) / "unit.d")}
        command = list(spawn.arguments)
        for option, file in redirected.items():
            if option in command:
                command[command.index(option) + 1] = file
        process = subprocess.Popen(command, cwd=root, env=spawn.variables)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"error: {' '.join(command)}\nfailed in {root}")
    return usage.ru_utime + usage.ru_stime


def measure_null(clone: Clone, rounds: int) -> list[Row]:
    """A build without changes, compared with pip on the same tree and with Bazel alone."""
    pip = [clone.python, "-m", "pip", "install", "-e", "."]
    pip += ["--no-build-isolation", "--no-deps", "--no-index", "--quiet"]
    program = shutil.which("bazelisk") or shutil.which("bazel") or "bazel"
    bazel = [program, clone.startup, "build", "//torch_xla_lite:outputs"]
    return [
        paired(
            "null develop / pip install -e . --no-build-isolation",
            "<= 0.25 s, and <= 1/8",
            rounds,
            clone.develop,
            lambda: clone.run(pip),
        ),
        paired(
            "null develop / bazel build alone",
            "as near to 1 as can be",
            rounds,
            clone.develop,
            lambda: clone.run(bazel),
        ),
    ]


def measure_server(clone: Clone) -> Row:
    """A build without changes whose Bazel server has ended, as after three idle hours."""
    seconds = []
    for _ in range(3):
        clone.bazel("shutdown")
        seconds.append(clone.develop())
    name = "null develop that starts Bazel's server"
    return Row(name, statistics.median(seconds), None, None, "s", 3, "<= 3.5 s")


def machine() -> dict[str, Any]:
    """The machine and the versions of the tools."""

    def version(*command: str) -> str:
        try:
            process = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError:
            return "none"
        return (process.stdout or process.stderr).strip().split("\n")[0]

    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "jobs": JOBS,
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", platform.system()),
        "compiler": version("gcc", "--version"),
        "bazel": version(shutil.which("bazelisk") or "bazel", "--version"),
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def show(result: Result, console: Console) -> None:
    """Prints the tables."""
    console.print(
        ", ".join(f"{name} {value}" for name, value in result.machine.items()), style="dim"
    )
    table = Table(title="Build (medians; the ratio is the median of paired ratios)")
    for name in ("what", "ours", "other", "ratio", "runs", "goal"):
        table.add_column(
            name, justify="right" if name in ("ours", "other", "ratio", "runs") else "left"
        )
    for row in result.rows:
        table.add_row(
            row.name,
            f"{row.ours:.3g} {row.unit}",
            "" if row.other is None else f"{row.other:.3g} {row.unit}",
            "" if row.ratio is None else f"{row.ratio:.2f}",
            str(row.runs),
            row.goal,
        )
    console.print(table)
    if not result.units:
        return
    table = Table(title=f"CPU seconds of a translation unit ({len(result.units)} in all)")
    for name in ("source", "CPU s", "includes torch", "goal"):
        table.add_column(name)
    for uses_torch, limit in ((True, 8.0), (False, 1.2)):
        units = [unit for unit in result.units if unit.uses_torch == uses_torch]
        missed = sum(unit.cpu_s > limit for unit in units)
        # The units are sorted.
        for unit in units[: max(5, missed)]:
            goal = f"<= {limit:g}{' (missed)' if unit.cpu_s > limit else ''}"
            table.add_row(unit.source, f"{unit.cpu_s:.2f}", "yes" if uses_torch else "no", goal)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7, help="of the short commands (7)")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to measure")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there too")
    arguments = parser.parse_args()

    result = Result(machine())
    with tempfile.TemporaryDirectory(prefix="bench_build_") as name:
        folder = Path(name)
        clone = Clone(folder / "first", folder / "shared")
        try:
            result.rows.append(measure_cold(clone))
            spawns = clone.spawns()
            if "null" in arguments.only:
                result.rows += measure_null(clone, arguments.rounds)
            if "server" in arguments.only:
                result.rows.append(measure_server(clone))
            if "units" in arguments.only:
                result.units = measure_units(clone, spawns, 1)
        finally:
            clone.bazel("shutdown")
            # Bazel makes some of its folders read-only.
            subprocess.run(["chmod", "-R", "u+w", folder], check=False)
    result.machine["load_after"] = round(os.getloadavg()[0], 2)
    show(result, Console(width=None if sys.stdout.isatty() else 110))
    if arguments.json:
        arguments.json.write_text(json.dumps(asdict(result), indent=2) + "\n")


if __name__ == "__main__":
    main()
