"""Summarizes a build: its last line, and build/report.json.

    torch_xla_lite: built in 1.3 s; 1 compiled, 1 linked, 0 other; 0 from a cache; replaced _XLAC.so

The keys of the file are stable: `succeeded`, `wall_s`, `cuda` (whether there is a CUDA library, and
why), `actions.compile/link/other`, `cache_hits.local/disk/remote`, for each of `outputs` its `path`
and whether it `changed`, `executed`, which lists the actions with the fields of causes.Action, and
`variables`, their checksums. Only actions that started a process are counted. With Bazel 4, which
does not count them, `cache_hits.local` is null.
"""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from bazel.pybuild import files, notices
from bazel.pybuild.call import events
from bazel.pybuild.errors import BuildError
from bazel.pybuild.options import checksums

if TYPE_CHECKING:
    from bazel.pybuild.why.causes import Action

FILE = Path("build") / "report.json"


class Report(NamedTuple):
    """Summary of a build.

    Attributes:
      succeeded: whether everything was built and installed.
      wall_s: seconds since the start of the command.
      outcome: what Bazel did.
      changed: for each path in the package, whether its content changed.
      cuda: whether there is a CUDA library, and why.
      executed: the actions that ran or were found in a cache, and why.
      variables: as of `options.checksums`.
      installs: whether the files are those in the tree, and not those of a wheel.
    """

    succeeded: bool
    wall_s: float
    outcome: events.Outcome
    changed: Mapping[str, bool]
    cuda: str = ""
    executed: "Sequence[Action]" = ()
    variables: Mapping[str, int] = MappingProxyType({})
    installs: bool = True

    def actions(self) -> dict[str, int]:
        """How many compilers, linkers and other processes, such as archivers, ran."""
        ran = self.outcome.ran
        compiled = sum(ran[name] for name in ran if name in events.COMPILE)
        linked = sum(ran[name] for name in ran if name in events.LINK)
        other = sum(ran.values()) - compiled - linked
        return {"compile": compiled, "link": linked, "other": other}

    def line(self) -> str:
        """The summary in one line."""
        actions, remote = self.actions(), self.outcome.remote_hits
        hits = self.outcome.disk_hits + remote
        changed = self.changed.items() if self.installs else ()
        replaced = [Path(path).name for path, is_new in changed if is_new]
        verb = "built" if any(actions.values()) or hits or replaced else "up to date"
        if not self.succeeded:
            verb = "failed"
        caches = f"{hits} from a cache" + (f" ({remote} remote)" if remote else "")
        names = ", ".join(replaced) if len(replaced) < 7 else f"{len(replaced)} files"
        parts = [
            f"torch_xla_lite: {verb} in {self.wall_s:.2f} s",
            "{compile} compiled, {link} linked, {other} other".format(**actions),
            caches,
            *([f"replaced {names or 'no file'}"] if self.installs else []),
        ]
        ran = [action for action in self.executed if not action.cached]
        if useless := sum(action.same_result for action in ran):
            same = f"{useless} of {len(ran)} actions rebuilt identical output"
            parts += [f"{same} (see: python setup.py explain)"]
        return "; ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """The content of build/report.json."""
        return {
            "succeeded": self.succeeded,
            "wall_s": round(self.wall_s, 3),
            "cuda": self.cuda,
            "actions": self.actions(),
            "cache_hits": {
                "local": self.outcome.local_hits,
                "disk": self.outcome.disk_hits,
                "remote": self.outcome.remote_hits,
            },
            "outputs": [
                {"path": path, "changed": changed} for path, changed in self.changed.items()
            ],
            "executed": [action.as_json() for action in self.executed],
            "variables": dict(self.variables),
        }


def record(
    outcome: events.Outcome,
    root: Path,
    environ: Mapping[str, str],
    since: float,
    *,
    succeeded: bool,
    changed: Mapping[str, bool] = MappingProxyType({}),
    cuda: str = "",
    installs: bool = True,
) -> Report:
    """Writes the record of what each action depended on, which the next build compares with its
    own; returns the report, with the cause of each action.

    Args:
      outcome: what Bazel did.
      root: of the tree.
      environ: usually os.environ.
      since: time.perf_counter() when the command began.
      succeeded: whether everything was built and installed.
      changed: for each path in the package, whether its content changed.
      cuda: whether there is a CUDA library, and why.
      installs: as of Report.
    """
    variables = checksums(environ)
    actions: Sequence[Action] = ()
    if outcome.spawns:
        # Imported only when an action ran.
        from bazel.pybuild.why import causes

        with notices.of_errors():
            try:
                before = last(root)["variables"]
            except BuildError:
                before = {}
            actions = causes.explain(outcome.spawns, variables, before, root)
    wall = time.perf_counter() - since
    return Report(succeeded, wall, outcome, changed, cuda, actions, variables, installs)


def write(report: Report, root: Path) -> None:
    """Writes build/report.json."""
    with notices.of_errors(stale=root / FILE):
        files.replace(root / FILE, json.dumps(report.as_json(), indent=2) + "\n")


def last(root: Path) -> dict[str, Any]:
    """The content of build/report.json.

    Raises:
      BuildError: the file is missing or unreadable.
    """
    try:
        content = json.loads((root / FILE).read_bytes())
        return {key: content[key] for key in ("succeeded", "executed", "variables")}
    except (OSError, ValueError, KeyError):
        raise BuildError(
            "No build of this tree is known.", "Build it:  python setup.py develop"
        ) from None
