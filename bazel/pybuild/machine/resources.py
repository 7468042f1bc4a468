"""How many compilers this machine, or the container that we are in, has room for."""

import os
from pathlib import Path

# What a compilation with torch's headers takes at most.
_BYTES = 700_000_000
_CGROUP = Path("/sys/fs/cgroup")


def jobs(cgroup: Path = _CGROUP, meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """The number of compilers to run at once; None where Bazel's choice, one for each processor of
    the machine, is not too many."""
    processors = os.cpu_count() or 1
    limits = [len(os.sched_getaffinity(0)), _quota(cgroup), _memory(cgroup, meminfo) // _BYTES]
    room = max(1, min(int(limit) for limit in limits))
    return room if room < processors else None


def _quota(cgroup: Path) -> float:
    """The processors that a container may use: `docker run --cpus=2`."""
    quota, period = (_read(cgroup / "cpu.max") or "max 100000").split()
    if quota == "max":
        # Version 1 of cgroups.
        quota = _read(cgroup / "cpu" / "cpu.cfs_quota_us") or "-1"
        period = _read(cgroup / "cpu" / "cpu.cfs_period_us") or "100000"
    return max(1.0, int(quota) / int(period)) if int(quota) > 0 else float(os.cpu_count() or 1)


def _memory(cgroup: Path, meminfo: Path) -> int:
    """Bytes that processes can have: of the machine, or of the container."""
    lines = _read(meminfo).splitlines()
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemTotal")]
    for file in (cgroup / "memory.max", cgroup / "memory" / "memory.limit_in_bytes"):
        limit = _read(file)
        found += [int(limit)] if limit.isdigit() else []
    return min(found, default=_BYTES * 1024)


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
