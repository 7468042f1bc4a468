"""Reads what Bazel did from its build event file and its execution log.

    outcome = read(command.targets, *command.written)
    outcome.outputs[0].path       # "torch_xla_lite/_XLAC.so", below the root of the tree
    outcome.ran["CppCompile"]     # how many compilers were started

Actions are counted if they start a process, or would without a cache; Bazel's internal actions are
not counted.
"""

import collections
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from bazel.pybuild.why.execution_log import Spawn

COMPILE = frozenset({"CppCompile", "CudaCompile"})
LINK = frozenset({"CppLink"})


class Output(NamedTuple):
    """A file of a target.

    Attributes:
      path: its place in the tree, relative to the root, such as torch_xla_lite/_XLAC.so.
      file: Bazel's output.
    """

    path: str
    file: Path


class Outcome(NamedTuple):
    """The result of a call of Bazel.

    Attributes:
      exit_name: such as SUCCESS or BUILD_FAILURE; empty if Bazel ended before it wrote one.
      outputs: files of the targets; empty unless all were built.
      ran: mnemonic -> number of actions that ran.
      disk_hits: number of actions found in the disk cache.
      remote_hits: number of actions found in the remote cache. Bazel 4 does not distinguish the
        two: if a remote cache is in use, all hits are counted here.
      local_hits: number of actions that an earlier build in this checkout ran; None with Bazel 4,
        which does not report it; 0 if the server still has the earlier build in memory.
      incomplete: whether an action has failed because outputs are missing, which a damaged result
        in a cache causes.
      spawns: the actions that ran or were found in a cache.
    """

    exit_name: str
    outputs: tuple[Output, ...]
    ran: Mapping[str, int]
    disk_hits: int
    remote_hits: int
    local_hits: int | None
    incomplete: bool = False
    spawns: "tuple[Spawn, ...]" = ()

    def after(self, first: "Outcome") -> "Outcome":
        """This outcome of a call that continued the work of `first`, with the counts of both."""
        return self._replace(
            ran=collections.Counter(first.ran) + collections.Counter(self.ran),
            disk_hits=first.disk_hits + self.disk_hits,
            remote_hits=first.remote_hits + self.remote_hits,
            spawns=first.spawns + self.spawns,
        )


def read(targets: Sequence[str], *written: Path) -> Outcome:
    """Reads the files; a missing file counts as empty.

    Args:
      targets: labels whose files are returned.
      *written: by Bazel: events, and execution log.
    """
    exit_name = ""
    remote = incomplete = False
    local_hits = None
    file_sets: dict[str, dict[str, Any]] = {}
    wanted: dict[str, list[str]] = {}
    for line in _lines(written[:1]):
        if line.startswith(_MESSAGES):
            incomplete |= any(words in line for words in _INCOMPLETE)
            continue
        try:
            event = json.loads(line)
        except ValueError:
            # The last line of a Bazel that was killed.
            break
        identity = event["id"]
        if "optionsParsed" in event:
            # The last option of a name counts.
            options = event["optionsParsed"].get("cmdLine", [])
            remote = bool(dict(o.partition("=")[::2] for o in options).get("--remote_cache"))
        elif "namedSetOfFiles" in event:
            file_sets[identity["namedSet"]["id"]] = event["namedSetOfFiles"]
        elif "completed" in event:
            label = identity["targetCompleted"]["label"]
            if label in targets and event["completed"].get("success"):
                wanted[label] = _default_group(event["completed"])
        elif "finished" in event:
            exit_name = event["finished"].get("exitCode", {}).get("name", "")
        elif "buildMetrics" in event:
            statistics = event["buildMetrics"].get("actionSummary", {}).get("actionCacheStatistics")
            if statistics is not None:
                local_hits = int(statistics.get("hits", 0))
    ran: collections.Counter[str] = collections.Counter()
    disk_hits = remote_hits = 0
    spawns = _spawns(written[1:2])
    for spawn in spawns:
        if not spawn.hit:
            ran[spawn.mnemonic] += 1
        elif remote and spawn.runner != "disk cache hit":
            remote_hits += 1
        else:
            disk_hits += 1
    if len(wanted) < len(targets):
        wanted = {}
    names = [name for group in wanted.values() for name in group]
    outputs = {output.path: output for output in _outputs(names, file_sets)}
    return Outcome(
        exit_name,
        tuple(outputs.values()),
        ran,
        disk_hits,
        remote_hits,
        local_hits,
        incomplete,
        spawns,
    )


def _spawns(logs: Iterable[Path]) -> "tuple[Spawn, ...]":
    # The log of a build that ran nothing is empty.
    if not any(log.exists() and log.stat().st_size for log in logs):
        return ()
    from bazel.pybuild.why import execution_log

    return tuple(spawn for log in logs for spawn in execution_log.read(log))


# Lines that repeat the command line are most of the file, and are not parsed; nor are those that
# repeat Bazel's messages, in which only two are of interest.
_UNUSED = (b'{"id":{"structured', b'{"id":{"unstructured')
_MESSAGES = b'{"id":{"progress"'
_INCOMPLETE = (b"' was not created", b"error while parsing .d file")


def _lines(files: Iterable[Path]) -> Iterator[bytes]:
    contents = [file.read_bytes() for file in files if file.exists()]
    for line in b"".join(contents).splitlines():
        if not line.startswith(_UNUSED):
            yield line


def _default_group(completed: Mapping[str, Any]) -> list[str]:
    """Names of the file sets in the default output group of a target."""
    return [
        file_set["id"]
        for group in completed.get("outputGroup", [])
        if group["name"] == "default"
        for file_set in group.get("fileSets", [])
    ]


def _outputs(names: list[str], file_sets: Mapping[str, Mapping[str, Any]]) -> Iterator[Output]:
    """The files of sets and of the sets that they include, in Bazel's order."""
    pending, visited = list(reversed(names)), set(names)
    while pending:
        file_set = file_sets.get(pending.pop(), {})
        for file in file_set.get("files", []):
            yield Output(file["name"], _path(file["uri"]))
        for inner in reversed(file_set.get("fileSets", [])):
            if inner["id"] not in visited:
                visited.add(inner["id"])
                pending.append(inner["id"])


def _path(uri: str) -> Path:
    path = uri.removeprefix("file://")
    if "%" in path:
        import urllib.parse

        path = urllib.parse.unquote(path)
    return Path(path)
