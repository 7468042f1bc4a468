"""Summarizes a build: its last line, and build/report.json.

    torch_xla_lite: built in 1.3 s; 1 compiled, 1 linked, 0 other; 0 from a cache; replaced _XLAC.so

The keys of the file are stable: `succeeded`, `wall_s`, `cuda` (whether there is a CUDA library, and
why), `actions.compile/link/other`, `cache_hits.local/disk/remote`, and for each of `outputs` its
`path` and whether it `changed`. Only actions that started a process are counted. With Bazel 4,
which does not count them, `cache_hits.local` is null.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bazel.pybuild import files
from bazel.pybuild.invocation import events

FILE = Path("build") / "report.json"


class Report(NamedTuple):
    """Summary of a build.

    Attributes:
      succeeded: whether everything was built and installed.
      wall_s: seconds since the start of the command.
      compiled: number of compiler calls.
      linked: number of programs and shared objects that were linked.
      other: number of other processes, such as archivers.
      disk_hits: actions found in the disk cache.
      remote_hits: actions found in the remote cache.
      local_hits: actions of an earlier build in this checkout; None if unknown.
      changed: for each path in the package, whether its content changed.
      cuda: whether there is a CUDA library, and why.
    """

    succeeded: bool
    wall_s: float
    compiled: int
    linked: int
    other: int
    disk_hits: int
    remote_hits: int
    local_hits: int | None
    changed: Mapping[str, bool]
    cuda: str = ""

    def line(self) -> str:
        """The summary in one line."""
        done = self.compiled + self.linked + self.other + self.disk_hits + self.remote_hits
        replaced = [Path(path).name for path, changed in self.changed.items() if changed]
        verb = "built" if done or replaced else "up to date"
        if not self.succeeded:
            verb = "failed"
        caches = f"{self.disk_hits + self.remote_hits} from a cache"
        if self.remote_hits:
            caches += f" ({self.remote_hits} remote)"
        names = ", ".join(replaced) if len(replaced) < 7 else f"{len(replaced)} files"
        parts = [
            f"torch_xla_lite: {verb} in {self.wall_s:.2f} s",
            f"{self.compiled} compiled, {self.linked} linked, {self.other} other",
            caches,
            f"replaced {names or 'no file'}",
        ]
        return "; ".join(parts)

    def as_json(self) -> str:
        """The content of build/report.json."""
        content = {
            "succeeded": self.succeeded,
            "wall_s": round(self.wall_s, 3),
            "cuda": self.cuda,
            "actions": {"compile": self.compiled, "link": self.linked, "other": self.other},
            "cache_hits": {
                "local": self.local_hits,
                "disk": self.disk_hits,
                "remote": self.remote_hits,
            },
            "outputs": [
                {"path": path, "changed": changed} for path, changed in self.changed.items()
            ],
        }
        return json.dumps(content, indent=2) + "\n"


def summarize(
    outcome: events.Outcome,
    changed: Mapping[str, bool],
    succeeded: bool,
    wall_s: float,
    cuda: str = "",
) -> Report:
    """Summarizes a call of Bazel and the installation of its outputs."""
    compiled = sum(count for mnemonic, count in outcome.ran.items() if mnemonic in events.COMPILE)
    linked = sum(count for mnemonic, count in outcome.ran.items() if mnemonic in events.LINK)
    return Report(
        succeeded=succeeded,
        wall_s=wall_s,
        compiled=compiled,
        linked=linked,
        other=sum(outcome.ran.values()) - compiled - linked,
        disk_hits=outcome.disk_hits,
        remote_hits=outcome.remote_hits,
        local_hits=outcome.local_hits,
        changed=changed,
        cuda=cuda,
    )


def write(report: Report, root: Path) -> None:
    """Writes build/report.json."""
    files.replace(root / FILE, report.as_json())
