"""What the benchmarks share: runs in turn, rows and tables, the machine, the JSON file.

    report = harness.Report(harness.machine(jobs=2))
    times = harness.interleave({"ours": build, "ninja": ninja}, rounds=7)
    report.add("Build", [harness.compare("null", times, "s", against="ninja", goal=0.25)])
    report.write(options.json)

The compared programs run in turn, and a ratio is the median of the ratios of neighbouring runs, so
that a temporary load affects both.
"""

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

Contender = Callable[[], float]  # Runs once and returns the seconds that it took.


@dataclass(frozen=True)
class Row:
    """One line of a table.

    Attributes:
      name: what was measured.
      unit: of the values.
      values: contender -> median.
      ratio: what the goal is about: ours divided by another one, or our value.
      goal: the largest acceptable ratio; None without a goal.
      note: what it is compared with, or the goal in words.
    """

    name: str
    unit: str
    values: dict[str, float]
    ratio: float | None = None
    goal: float | None = None
    note: str = ""


@dataclass
class Report:
    """All measurements, and the machine; the JSON file has the same form."""

    machine: dict[str, str | int | float]
    sections: dict[str, list[Row]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._console = Console(width=None if sys.stdout.isatty() else 120)
        details = ", ".join(f"{name} {value}" for name, value in self.machine.items())
        self._console.print(details, style="dim")

    def add(self, title: str, rows: Sequence[Row]) -> None:
        """Prints a table and keeps it for the file."""
        self.sections[title] = [*rows]
        names = list(dict.fromkeys(name for row in rows for name in row.values))
        texts = [_texts(row, names) for row in rows]
        heads = ("", *names, "unit", "ratio", "goal", "note")
        # Without the columns that are empty.
        used = [place for place in range(len(heads)) if any(line[place] for line in texts)]
        table = Table(*(heads[place] for place in used), title=title, title_justify="left")
        for column, place in zip(table.columns, used, strict=True):
            column.justify = "right" if 0 < place <= len(names) else "left"
        for line in texts:
            table.add_row(*(line[place] for place in used))
        self._console.print(table)

    def write(self, file: Path | None) -> None:
        """Writes the JSON file, if one is wanted."""
        self.machine["load after"] = _load()
        if file:
            file.write_text(json.dumps(asdict(self)) + "\n")


def _texts(row: Row, names: Sequence[str]) -> list[str]:
    """The cells of a row."""
    values = [_digits(row.values[name]) if name in row.values else "" for name in names]
    ratio = "" if row.ratio is None else _digits(row.ratio)
    goal = "" if row.goal is None else f"<= {row.goal:g}"
    if row.ratio is not None and row.goal is not None:
        ratio = f"[{'green' if row.ratio <= row.goal else 'red'}]{ratio}[/]"
    return [escape(row.name), *values, row.unit, ratio, goal, row.note]


def arguments(description: str | None) -> argparse.ArgumentParser:
    """A parser with the option --json."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there too")
    return parser


def machine(**more: str | int | float) -> dict[str, str | int | float]:
    """Processor, cores, system, Python, load and `more`, by name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", platform.system()),
        "Python": platform.python_version(),
        "load": _load(),
        **more,
    }


def _digits(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _load() -> float:
    return round(os.getloadavg()[0], 2)


def timed(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds that a function takes."""
    start = clock()
    work()
    return clock() - start


def interleave(contenders: Mapping[str, Contender], rounds: int) -> dict[str, list[float]]:
    """Runs the contenders in turn, `rounds` times, in an order that rotates."""
    names = list(contenders)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds):
            for place in range(len(names)):
                name = names[(turn + place) % len(names)]
                seconds[name].append(contenders[name]())
    finally:
        gc.enable()
    return seconds


def compare(
    name: str,
    seconds: Mapping[str, Sequence[float]],
    unit: str,
    *,
    against: str,
    scale: float = 1,
    goal: float | None = None,
    note: str = "",
) -> Row:
    """A row that compares "ours" with the contender `against`, run by run."""
    ratios = [ours / other for ours, other in zip(seconds["ours"], seconds[against], strict=True)]
    medians = {key: statistics.median(values) * scale for key, values in seconds.items()}
    return Row(name, unit, medians, statistics.median(ratios), goal, note)
