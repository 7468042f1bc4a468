"""Prints why each action of the last build ran, from build/report.json.

    1 action ran in 1.20 s; 0 from a cache

    file torch_xla_lite/csrc/ir/shape.cc: 1 action, 1.20 s
      compile  torch_xla_lite/csrc/ir/_objs/shape/shape.pic.o    1.20 s  same result

Below each change are the actions that it caused, and below an action those that read its output.
"""

import collections
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bazel.pybuild.errors import BuildError
from bazel.pybuild.why import causes, execution_log

_VERBS = {
    "CppArchive": "archive",
    "CppCompile": "compile",
    "CppLink": "link",
    "CudaCompile": "compile",
    "TestRunner": "test",
}


def compare(old: Path, new: Path) -> tuple[bool, str]:
    """Whether the cache entries of one build serve another, by their execution logs; and why not.

    Raises:
      BuildError: a log is missing, or has no actions.
    """
    logs = []
    for file in (old, new):
        logs.append(list(execution_log.read(file)))
        if not logs[-1]:
            raise BuildError(
                f"{file} is missing, or no log with actions.",
                "Make one:  python setup.py clean && python setup.py develop && "
                f"cp {execution_log.FILE} {file}",
            )
    actions = [action.as_json() for action in causes.compare(*logs)]
    gone = {spawn.outputs for spawn in logs[0]} - {spawn.outputs for spawn in logs[1]}
    lines = [f"{len(actions)} of {_count(logs[1])} differ; {len(gone)} only in the old log"]
    return not actions and not gone, "\n".join([*lines, *_trees(_changes(actions), actions)])


def text(last: Mapping[str, Any], columns: int | None = None) -> str:
    """The text for a build, whose report has the form of build/report.json.

    Args:
      columns: how wide the terminal is; None for a file or a pipe, where a row is one line.
    """
    succeeded, executed, path = last["succeeded"], last["executed"], last["critical_path"]
    if not executed:
        if succeeded:
            return "The last build ran no action: nothing that it depends on had changed."
        return "The last build failed before it ran an action; its messages say why."
    ran = [action for action in executed if not action["cached"]]
    lines = [] if succeeded else ["The last build failed; its messages say why. Until then:"]
    count, took = _count(ran), sum(map(_seconds, ran))
    lines.append(f"{count} ran in {took:.2f} s; {len(executed) - len(ran)} from a cache")
    changes = _changes(executed)
    if [kind for kind, _ in changes] == ["first run"]:
        lines.append("No earlier build is recorded to compare with.")
    lines += _trees(changes, executed, columns)
    if path:
        lines += ["", f"critical path: {sum(step['seconds'] for step in path):.2f} s"]
        lines += [f"  {step['seconds']:>7.2f} s  {step['description']}" for step in path]
    if same := sum(action["same_result"] for action in ran):
        rebuilt = f"{same} of {len(ran)} actions rebuilt identical output"
        lines += ["", f"{rebuilt}; these actions were unnecessary."]
    return "\n".join(lines if columns is None else _wrapped(lines, columns))


def terminal_columns() -> int | None:
    """The width for `text` on stdout."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _wrapped(lines: Sequence[str], columns: int) -> Iterator[str]:
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        yield from textwrap.wrap(
            line, columns, subsequent_indent=indent, break_on_hyphens=False
        ) or [line]


_Change = tuple[str, str]


def _changes(executed: Sequence[Mapping[str, Any]]) -> dict[_Change, set[str]]:
    """The causes that are not other actions, with the names that each stands for: an upgrade of a
    package changes hundreds of its headers."""
    changes = collections.defaultdict(set)
    for action in executed:
        for cause in action["causes"]:
            if cause["kind"] != "action":
                changes[_change(cause)].add(cause["name"])
    return changes


def _change(cause: Mapping[str, str]) -> _Change:
    kind, name = cause["kind"], cause["name"]
    if kind == "outside file":
        return kind, "/".join(name.split("/")[:2])
    return kind, name


def _trees(
    changes: Mapping[_Change, set[str]],
    executed: Sequence[Mapping[str, Any]],
    columns: int | None = None,
) -> Iterator[str]:
    """For each change, the actions that it caused; an action is printed once. Where a row would be
    wider than a terminal, the notes are below the actions."""
    caused = collections.defaultdict(list)
    for action in sorted(executed, key=_seconds, reverse=True):
        for parent in dict.fromkeys(map(_parent, action["causes"])):
            caused[parent].append(action)
    reached = {change: _reached(change, caused) for change in changes}
    printed: set[str] = set()
    for change in sorted(changes, key=lambda change: (-len(reached[change]), change)):
        actions = reached[change]
        took = sum(map(_seconds, actions))
        yield ""
        yield f"{_name(change, changes[change])}: {_count(actions)}, {took:.2f} s"
        above = sum(action["output"] in printed for action in actions)
        rows = list(_rows(change, caused, printed, 1))
        width = max((len(left) for left, _ in rows), default=0)
        joined = [f"{left:<{width}}  {right}".rstrip() for left, right in rows]
        if columns is not None and any(len(row) > columns for row in joined):
            joined = [line for row in rows for line in _below_each_other(*row)]
        yield from joined
        if above:
            yield f"  {above} of them listed above"


def _below_each_other(action: str, notes: str) -> list[str]:
    indent = " " * (len(action) - len(action.lstrip()) + 4)
    return [action, indent + notes.lstrip()] if notes else [action]


def _parent(cause: Mapping[str, str]) -> _Change:
    return ("action", cause["name"]) if cause["kind"] == "action" else _change(cause)


_Caused = Mapping[_Change, list[Mapping[str, Any]]]


def _reached(change: _Change, caused: _Caused) -> list[Mapping[str, Any]]:
    """The actions that a change caused, also through other actions."""
    found: dict[str, Mapping[str, Any]] = {}
    pending = [change]
    while pending:
        for action in caused.get(pending.pop(), ()):
            if action["output"] not in found:
                found[action["output"]] = action
                pending.append(("action", action["output"]))
    return list(found.values())


def _rows(
    parent: _Change, caused: _Caused, printed: set[str], depth: int
) -> Iterator[tuple[str, str]]:
    for action in caused.get(parent, ()):
        if action["output"] in printed:
            continue
        printed.add(action["output"])
        others = len(set(map(_parent, action["causes"]))) - 1
        notes = [
            "" if action["seconds"] is None else f"{action['seconds']:6.2f} s",
            "from a cache" if action["cached"] else "",
            "failed" if action["failed"] else "",
            "same result" if action["same_result"] else "",
            f"and {others} other cause{'s' if others > 1 else ''}" if others else "",
        ]
        verb = _VERBS.get(action["mnemonic"], action["mnemonic"])
        left = f"{'  ' * depth}{verb}  {_short(action['output'])}"
        yield left, "  ".join(filter(None, notes))
        yield from _rows(("action", action["output"]), caused, printed, depth + 1)


def _name(change: _Change, names: set[str]) -> str:
    kind, name = change
    if kind == "output":
        return "output missing or overwritten"
    if kind == "result":
        return "another result although nothing that the action depends on differs"
    if kind == "outside file":
        files = "outside file" if len(names) == 1 else f"{len(names)} outside files, such as"
        return f"{files} {min(names)}"
    separator = "" if name.startswith(";") or not name else " "
    return f"{kind}{separator}{_short(name)}"


def _short(path: str) -> str:
    """An output without the folder of the configuration, if that is the usual one."""
    return re.sub(r"^bazel-out/\w+-opt/bin/", "", path)


def _seconds(action: Mapping[str, Any]) -> float:
    return action["seconds"] or 0.0


def _count(actions: Sequence[object]) -> str:
    return f"{len(actions)} action" + ("" if len(actions) == 1 else "s")
