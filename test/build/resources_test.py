"""How many compilers run at once, by memory and the limits of a container."""

import os
from pathlib import Path

import pytest

from bazel.pybuild.machine import resources


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One with 16 processors and 32 GB."""
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    (tmp_path / "meminfo").write_text("MemTotal:       32000000 kB\nMemFree: 5 kB\n")
    return tmp_path


def _jobs(machine: Path, **files: str) -> int | None:
    for name, content in files.items():
        file = machine / name.replace("__", "/").replace("_max", ".max")
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)
    return resources.jobs(machine, machine / "meminfo")


def test_bazel_decides_where_there_is_room_for_all(machine: Path):
    assert _jobs(machine) is None
    assert _jobs(machine, cpu_max="max 100000", memory_max="max\n") is None


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"meminfo": "MemTotal: 8000000 kB\n"}, 11),
        ({"memory_max": "3000000000\n"}, 4),
        ({"memory_max": "300000000\n"}, 1),
        ({"cpu_max": "250000 100000\n"}, 2),
        ({"cpu__cpu.cfs_quota_us": "400000\n", "cpu__cpu.cfs_period_us": "100000\n"}, 4),
        ({"memory__memory.limit_in_bytes": "1500000000\n"}, 2),
    ],
)
def test_memory_and_quotas_limit_the_number(machine: Path, files: dict[str, str], expected: int):
    assert _jobs(machine, **files) == expected


def test_processors_that_we_may_not_use_do_not_count(
    machine: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    assert _jobs(machine) == 3
