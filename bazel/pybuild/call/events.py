"""Reads what Bazel did from its build event file, its execution log and its profile.

    outcome = read(command.targets, *command.written)
    outcome.outputs[0].path       # "torch_xla_lite/_XLAC.so", below the root of the tree
    outcome.ran["CppCompile"]     # how many compilers were started

Actions are counted if they start a process, or would without a cache; Bazel's internal actions are
not counted.
"""

import collections
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
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
      unread: why results in a cache could not be used, for each warning about that.
      unwritten: why results could not be stored, for each warning about that.
      incomplete: whether an action has failed because outputs are missing, which a damaged result
        in a cache causes.
      made: path, below the root of the tree -> SHA-256, of the outputs of actions that ran.
      spawns: the actions that ran or were found in a cache.
      seconds: primary output -> time of its action.
      critical_path: Bazel's descriptions of the actions on it, and their seconds.
    """

    exit_name: str
    outputs: tuple[Output, ...]
    ran: Mapping[str, int]
    disk_hits: int
    remote_hits: int
    local_hits: int | None
    unread: tuple[str, ...] = ()
    unwritten: tuple[str, ...] = ()
    incomplete: bool = False
    made: Mapping[str, str] = MappingProxyType({})
    spawns: "tuple[Spawn, ...]" = ()
    seconds: Mapping[str, float] = MappingProxyType({})
    critical_path: tuple[tuple[str, float], ...] = ()

    def after(self, first: "Outcome") -> "Outcome":
        """This outcome of a call that continued the work of `first`, with the counts of both."""
        return self._replace(
            ran=collections.Counter(first.ran) + collections.Counter(self.ran),
            disk_hits=first.disk_hits + self.disk_hits,
            remote_hits=first.remote_hits + self.remote_hits,
            unread=first.unread + self.unread,
            unwritten=first.unwritten + self.unwritten,
            incomplete=first.incomplete or self.incomplete,
            made={**first.made, **self.made},
            spawns=first.spawns + self.spawns,
            seconds={**first.seconds, **self.seconds},
            critical_path=first.critical_path + self.critical_path,
        )


def read(targets: Sequence[str], *written: Path) -> Outcome:
    """Reads the files; a missing file counts as empty.

    Args:
      targets: labels whose files are returned.
      *written: by Bazel: events, execution log and profile, which is read only if an action ran.
    """
    exit_name = ""
    remote = writes = False
    local_hits = None
    file_sets: dict[str, dict[str, Any]] = {}
    wanted: dict[str, list[str]] = {}
    said = ""
    for event in _events(written[:1]):
        identity = event["id"]
        if "progress" in event:
            said += event["progress"].get("stderr", "")
        elif "optionsParsed" in event:
            # The last option of a name counts.
            options = event["optionsParsed"].get("cmdLine", [])
            writes = "--noremote_upload_local_results" not in options
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
    made: dict[str, str] = {}
    disk_hits = remote_hits = 0
    spawns = _spawns(written[1:2])
    for spawn in spawns:
        if not spawn.hit:
            ran[spawn.mnemonic] += 1
            made |= spawn.products
        elif remote and spawn.runner != "disk cache hit":
            remote_hits += 1
        else:
            disk_hits += 1
    seconds: dict[str, float] = {}
    critical_path: tuple[tuple[str, float], ...] = ()
    if spawns and written[2:]:
        from bazel.pybuild.why import profile

        spans, critical_path = profile.read(written[2])
        seconds = {output: span.seconds for output, span in spans.items()}
    if len(wanted) < len(targets):
        wanted = {}
    names = [name for group in wanted.values() for name in group]
    outputs = {output.path: output for output in _outputs(names, file_sets)}
    warnings = list(_cache_warnings(said, writes))
    return Outcome(
        exit_name,
        tuple(outputs.values()),
        ran,
        disk_hits,
        remote_hits,
        local_hits,
        unread=tuple(reason for is_unread, reason in warnings if is_unread),
        unwritten=tuple(reason for is_unread, reason in warnings if not is_unread),
        incomplete=_INCOMPLETE.search(said) is not None,
        made=made,
        spawns=spawns,
        seconds=seconds,
        critical_path=critical_path,
    )


def _spawns(logs: Iterable[Path]) -> "tuple[Spawn, ...]":
    # The log of a build that ran nothing is empty.
    if not any(log.exists() and log.stat().st_size for log in logs):
        return ()
    from bazel.pybuild.why import execution_log

    return tuple(spawn for log in logs for spawn in execution_log.read(log))


# Bazel's words for both caches; the reason can be in the next line.
_CACHE_WARNING = re.compile(
    r"WARNING: (?:(Reading from|Writing to) )?Remote Cache:\s*"
    r"(?:\d+ errors during bulk transfer:\s*)?(?:[\w.]+Exception: )?([^\r\n]*)"
)
_OF_READING = re.compile(
    "download failed|was not created|parsing message|rotocol message|CodedInputStream"
)
_INCOMPLETE = re.compile(r"output '.*' was not created|error while parsing \.d file")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def _cache_warnings(said: str, writes: bool) -> Iterator[tuple[bool, str]]:
    """For each warning about a cache, whether a result could not be read, and the reason."""
    for what, reason in _CACHE_WARNING.findall(_COLOUR.sub("", said)):
        # Bazel 7 does not say what it did.
        is_unread = not writes or _OF_READING.search(reason) is not None
        yield what == "Reading from" if what else is_unread, reason


# Lines that repeat the command line and the output are most of the file, and are not parsed, unless
# the output is about a cache.
_UNUSED = (b'{"id":{"structured', b'{"id":{"unstructured')
_OUTPUT = b'{"id":{"progress"'
_ABOUT_CACHES = (b"Remote Cache:", b" was not created", b"error while parsing .d file")


def _events(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    contents = [file.read_bytes() for file in files if file.exists()]
    for line in b"".join(contents).splitlines():
        if line.startswith(_UNUSED):
            continue
        if line.startswith(_OUTPUT) and not any(words in line for words in _ABOUT_CACHES):
            continue
        try:
            yield json.loads(line)
        except ValueError:
            # The last line of a Bazel that was killed.
            return


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
