"""Finds out why a build ran its actions: compares each with the record of its previous run.

    actions = explain(outcome.spawns, checksums, checksums_before, root)
    actions[0].causes      # (Cause("file", "torch_xla_lite/csrc/ir/shape.h"),)

Bazel compares hashes of all that an action depends on, and keeps no list. So build/actions has a
file for each action, with the arguments, variables and inputs of its last successful run. A build
writes only those of the actions that it ran; one with nothing to do does not use this file.
"""

import collections
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bazel.pybuild import files
from bazel.pybuild.why.execution_log import Spawn

FOLDER = Path("build") / "actions"
_HEADER = (".cuh", ".h", ".hh", ".hpp", ".inc")
# Files in which a compilation lists the headers that it included, or those that it did not.
_LISTS = (".d", ".unused")


class Cause(NamedTuple):
    """A reason to run an action.

    Attributes:
      kind: "file", "outside file" (of an external repository), "generated file" (written by Bazel
        itself, or by an action of another build), "action" (another action of this build wrote an
        input), "flag", "environment variable" (of the action), "tool", "first run", or "output"
        (nothing else changed, so its output was missing).
      name: the file, the output of the other action, or what changed.
    """

    kind: str
    name: str


class Action(NamedTuple):
    """An action of the last build.

    Attributes:
      mnemonic: such as CppCompile.
      output: which identifies it.
      cached: whether its result came from a cache.
      failed: whether it failed.
      same_result: whether it wrote the same as its previous run.
      causes: why it ran.
    """

    mnemonic: str
    output: str
    cached: bool
    failed: bool
    same_result: bool
    causes: tuple[Cause, ...]

    def as_json(self) -> dict[str, Any]:
        """Its entry in build/report.json."""
        return {**self._asdict(), "causes": [cause._asdict() for cause in self.causes]}


class _Run(NamedTuple):
    """What an action depended on in its last successful run, and what it wrote: path -> hash.

    `checksums` are the variables of setup.py: name -> checksum.
    """

    checksums: Mapping[str, int]
    arguments: list[str]
    variables: Mapping[str, str]
    properties: Mapping[str, str]
    inputs: Mapping[str, str]
    products: Mapping[str, str]


def explain(
    ran: Iterable[Spawn],
    checksums: Mapping[str, int],
    before: Mapping[str, int],
    root: Path,
) -> list[Action]:
    """The actions of a build, with their causes; writes the record of their runs.

    Args:
      ran: all actions that ran or were found in a cache.
      checksums: variables of setup.py that can change flags: name -> checksum.
      before: the same of the build before.
      root: of the tree.
    """
    # A second call of Bazel in one build may have run an action again.
    spawns = {spawn.outputs: spawn for spawn in ran}.values()
    makers = {path: spawn.outputs[-1] for spawn in spawns for path in spawn.products}
    actions = []
    for spawn in spawns:
        record = _record(spawn, root)
        previous, now = _read(record), _run(spawn, checksums, root)
        if previous is None:
            causes = (Cause("first run", _variables(before, checksums)),)
        else:
            causes = tuple(_causes(previous, now, spawn, makers))
        actions.append(
            Action(
                mnemonic=spawn.mnemonic,
                output=spawn.outputs[-1],
                cached=spawn.hit,
                failed=spawn.failed,
                same_result=previous is not None and previous.products == now.products,
                causes=causes,
            )
        )
        if not spawn.failed:
            files.replace(record, json.dumps(now))
    return actions


def _record(spawn: Spawn, root: Path) -> Path:
    name = hashlib.md5("\n".join(spawn.outputs).encode(), usedforsecurity=False).hexdigest()
    return root / FOLDER / f"{name}.json"


def _read(record: Path) -> _Run | None:
    try:
        return _Run(*json.loads(record.read_bytes()))
    except (OSError, ValueError, TypeError):
        # The record is missing, or of an older version.
        return None


def _run(spawn: Spawn, checksums: Mapping[str, int], root: Path) -> _Run:
    inputs = _used(spawn, root)
    arguments: list[str] = []
    for word in spawn.arguments:
        lines = _lines(root / word[1:]) if word.startswith("@") else None
        arguments += [word] if lines is None else lines
        if lines is not None:
            # The lines say more than the hash of the file.
            inputs.pop(word[1:], None)
    products = {path: hash for path, hash in spawn.products.items() if not path.endswith(".d")}
    return _Run(checksums, arguments, spawn.variables, spawn.properties, inputs, products)


def _lines(file: Path) -> list[str] | None:
    try:
        return file.read_text().splitlines()
    except (OSError, ValueError):
        return None


def _used(spawn: Spawn, root: Path) -> dict[str, str]:
    """Its inputs without headers that it may include and does not: a change of these does not run
    it. If the file that lists them was not downloaded from a cache, all inputs."""
    file = next((path for path in spawn.products if path.endswith(_LISTS)), "")
    lines = _lines(root / file) if file else None
    if lines is None:
        return dict(spawn.inputs)
    listed = {word for line in lines for word in line.split()}
    headers = {path for path in spawn.inputs if path.endswith(_HEADER)}
    used = headers & listed if file.endswith(".d") else headers - listed
    unused = headers - used
    return {path: hash for path, hash in spawn.inputs.items() if path not in unused}


def _causes(before: _Run, now: _Run, spawn: Spawn, makers: Mapping[str, str]) -> Iterator[Cause]:
    """Why an action ran again.

    Args:
      before: its previous run.
      now: this run.
      spawn: this run, with all inputs.
      makers: path -> output that identifies the action of this build that wrote it.
    """
    paths = [path for path, hash in before.inputs.items() if spawn.inputs.get(path) != hash]
    lists_headers = any(path.endswith(_LISTS) for path in spawn.products)
    paths += [
        path
        for path in now.inputs.keys() - before.inputs.keys()
        # A new #include is the effect of a change of another file.
        if not (lists_headers and path.endswith(_HEADER))
    ]
    causes = [_cause_of(path, makers) for path in sorted(paths)]
    if flags := _changed_flags(before.arguments, now.arguments, {*before.inputs, *spawn.inputs}):
        causes.append(Cause("flag", flags + _variables(before.checksums, now.checksums)))
    for name in _different(before.variables, now.variables):
        old, new = (run.variables.get(name, "unset") for run in (before, now))
        causes.append(Cause("environment variable", f"{name}: {old} -> {new}"))
    if before.properties != now.properties:
        causes.append(Cause("tool", "compiler, assembler, linker or C library"))
    yield from dict.fromkeys(causes) or [Cause("output", "")]


def _cause_of(path: str, makers: Mapping[str, str]) -> Cause:
    if path in makers:
        return Cause("action", makers[path])
    if path.startswith("bazel-out/"):
        return Cause("generated file", path)
    outside = path.startswith(("external/", "../", "/"))
    return Cause("outside file" if outside else "file", path)


def _changed_flags(before: Sequence[str], now: Sequence[str], inputs: set[str]) -> str:
    old, new = collections.Counter(before), collections.Counter(now)
    added = [f"{word} added" for word in (new - old) if word not in inputs]
    removed = [f"{word} removed" for word in (old - new) if word not in inputs]
    if old == new and [*before] != [*now]:
        return "order of the arguments"
    return ", ".join(added + removed)


def _variables(before: Mapping[str, int], now: Mapping[str, int]) -> str:
    """The variables of setup.py that may have caused it."""
    names = _different(before, now)
    return f"; changed variable: {', '.join(names)}" if names else ""


def _different(one: Mapping[str, object], other: Mapping[str, object]) -> list[str]:
    """The names whose values differ."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
