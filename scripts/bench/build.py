"""Measures the build: cold, with nothing to do, and each translation unit.

    python -m scripts.bench.build                      # everything, about four minutes
    python -m scripts.bench.build --rounds 3           # fewer repetitions of the short commands
    python -m scripts.bench.build --only null          # of: units, null, server, cache
    python -m scripts.bench.build --json result.json

It builds a copy of this tree in a temporary folder, with a separate environment, cache and Bazel
server; nothing outside is changed. The copy has the edits that are not committed. The compared
commands run in turn, with ccache disabled.
`cache` builds in more copies, which have only the disk cache.

Tables go to the standard output. The JSON file is stable, for programs. The exit code is 0 even if
a goal is missed, and 1 if something did not build.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bazel.pybuild.machine import find_bazel
from bazel.pybuild.why import execution_log
from scripts.bench import harness
from scripts.bench.clones import JOBS, Clone, temporary_folder
from scripts.bench.harness import Row

PARTS = ("units", "null", "server", "cache")
# Bazel names a repository torch, or _main~external~torch if a module declares it.
_TORCH = re.compile(r"external/([^/]*[~+])?(torch|pybind11)/")


def machine() -> dict[str, Any]:
    """The machine and the versions of the tools."""

    def version(program: str) -> str:
        command = [program, "--version"]
        process = subprocess.run(command, capture_output=True, text=True, check=True)
        return process.stdout.strip().split("\n")[0]

    return harness.machine(jobs=JOBS, compiler=version("gcc"), bazel=version(find_bazel.default()))


def measure_cold(clone: Clone) -> Row:
    """The first build: no server, no external repositories, an empty disk cache."""
    took = clone.develop()
    actions = clone.report()["actions"]
    name = f"cold build, {actions['compile']} compiled, {actions['link']} linked"
    return Row(name, "s", {"ours": took}, took, 60, f"with {JOBS} jobs")


def measure_units(clone: Clone, spawns: list[execution_log.Spawn]) -> list[Row]:
    """Compiles each source with Bazel's commands, without Bazel: CPU seconds."""
    root = Path(clone.bazel("info", "execution_root"))
    rows = []
    for spawn in spawns:
        if spawn.mnemonic != "CppCompile":
            continue
        source = spawn.arguments[spawn.arguments.index("-c") + 1]
        if source.startswith("torch_xla_lite/"):
            seconds = _cpu_seconds(spawn, root)
            uses_torch = any(_TORCH.match(path) for path in spawn.inputs)
            goal, note = (8.0, "includes torch") if uses_torch else (1.2, "")
            rows.append(Row(source, "s", {"ours": seconds}, seconds, goal, note))
    return sorted(rows, key=lambda row: row.ratio or 0, reverse=True)


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


def measure_null(clone: Clone, rounds: int) -> Iterator[Row]:
    """A build without changes, compared with pip on the same tree and with Bazel alone."""
    pip = [clone.python, "-m", "pip", "install", "-e", "."]
    pip += ["--no-build-isolation", "--no-deps", "--no-index", "--quiet"]
    alone = clone.bazel_command("build", "//torch_xla_lite:outputs")
    for name, command, goal, note in (
        ("pip install -e . --no-build-isolation", pip, 1 / 8, "and <= 0.25 s"),
        ("bazel build alone", alone, None, "as near to 1 as can be"),
    ):
        contenders = {"ours": clone.develop, "other": lambda command=command: clone.run(command)}
        harness.interleave(contenders, 1)
        times = harness.interleave(contenders, rounds)
        title = f"null develop / {name}"
        yield harness.compare(title, times, "s", against="other", goal=goal, note=note)


def measure_server(clone: Clone) -> Row:
    """A build without changes whose Bazel server has ended, as after three idle hours."""
    seconds = []
    for _ in range(3):
        clone.bazel("shutdown")
        seconds.append(clone.develop())
    took = statistics.median(seconds)
    return Row("null develop that starts Bazel's server", "s", {"ours": took}, took, 3.5)


def measure_cache(folder: Path, rounds: int = 3) -> Iterator[Row]:
    """Copies with other paths and environments: one fills the cache, the others have only it."""
    first = Clone(folder / "filling", folder / "user")
    cold_s = first.develop()
    seconds, hits, actions = [], 0, 0
    for _ in range(rounds):
        made = Clone(Path(tempfile.mkdtemp(dir=folder)) / "deeper", folder / "user", first.root)
        made.environ["XDG_CACHE_HOME"] = first.environ["XDG_CACHE_HOME"]
        seconds.append(made.develop())
        report = made.report()
        hits += sum(filter(None, report["cache_hits"].values()))
        actions += sum(report["actions"].values())
        made.bazel("shutdown")
    first.bazel("shutdown")
    took = statistics.median(seconds)
    note = f"{100 * hits / (hits + actions):.0f} % of the results are from it"
    yield Row("another copy", "s", {"ours": took}, took, 3, note)
    yield Row("cold / another copy", "", {"ours": cold_s / took})


def main() -> None:
    """Runs the command line."""
    parser = harness.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="of the short commands (7)")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to measure")
    options = parser.parse_args()

    report = harness.Report(machine())
    with temporary_folder() as folder:
        clone = Clone(folder / "first", folder / "shared")
        try:
            rows = [measure_cold(clone)]
            spawns = clone.spawns()
            if "null" in options.only:
                rows += measure_null(clone, options.rounds)
            if "server" in options.only:
                rows.append(measure_server(clone))
            report.add("Build (medians)", rows)
            if "units" in options.only:
                report.add("CPU seconds of translation units", measure_units(clone, spawns))
            if "cache" in options.only:
                report.add("Disk cache (medians)", list(measure_cache(folder)))
        finally:
            clone.bazel("shutdown")
    report.write(options.json)


if __name__ == "__main__":
    main()
