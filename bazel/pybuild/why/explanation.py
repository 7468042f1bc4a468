"""Prints why each action of the last build ran, from build/report.json.

    2 actions ran; 0 from a cache

    file torch_xla_lite/csrc/ir/shape.cc: 1 action
      compile  torch_xla_lite/csrc/ir/_objs/shape/shape.pic.o

    outputs of these actions: 1 action
      link  torch_xla_lite/lib/libtorch_xla_lite.so  same result

Below each change are the actions that it has caused. For more, Bazel has --explain=FILE.
"""

import collections
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_VERBS = {
    "CppArchive": "archive",
    "CppCompile": "compile",
    "CppLink": "link",
    "CudaCompile": "compile",
}


def text(last: Mapping[str, Any]) -> str:
    """The text for a build, whose report has the form of build/report.json."""
    succeeded, executed = last["succeeded"], last["executed"]
    if not executed:
        if succeeded:
            return "The last build ran no action: nothing that it depends on had changed."
        return "The last build failed before it ran an action; its messages say why."
    ran = [action for action in executed if not action["cached"]]
    lines = [] if succeeded else ["The last build failed; its messages say why. Until then:"]
    lines.append(f"{_count(ran)} ran; {len(executed) - len(ran)} from a cache")
    if all(cause["kind"] == "first run" for action in executed for cause in action["causes"]):
        lines.append("No earlier build is recorded to compare with.")
    lines += _blocks(executed)
    if same := sum(action["same_result"] for action in ran):
        rebuilt = f"{same} of {len(ran)} actions rebuilt identical output"
        lines += ["", f"{rebuilt}; these actions were unnecessary."]
    return "\n".join(lines)


_Change = tuple[str, str]


def _blocks(executed: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """For each change the actions that it caused; those that other actions caused are last."""
    caused: dict[_Change, list[Mapping[str, Any]]] = collections.defaultdict(list)
    # An upgrade of a package changes hundreds of its headers.
    names: dict[_Change, set[str]] = collections.defaultdict(set)
    for action in executed:
        for cause in action["causes"]:
            names[_change(cause)].add(cause["name"])
        for change in dict.fromkeys(map(_change, action["causes"])):
            caused[change].append(action)
    for change in sorted(caused, key=lambda change: (change[0] == "action", change)):
        yield ""
        yield f"{_title(change, names[change])}: {_count(caused[change])}"
        yield from map(_row, caused[change])


def _change(cause: Mapping[str, str]) -> _Change:
    kind, name = cause["kind"], cause["name"]
    if kind == "outside file":
        return kind, "/".join(name.split("/")[:2])
    return (kind, "") if kind == "action" else (kind, name)


def _title(change: _Change, names: set[str]) -> str:
    kind, name = change
    if kind == "action":
        return "outputs of these actions"
    if kind == "output":
        return "output missing or overwritten"
    if kind == "outside file":
        files = "outside file" if len(names) == 1 else f"{len(names)} outside files, such as"
        return f"{files} {min(names)}"
    separator = "" if name.startswith(";") or not name else " "
    return f"{kind}{separator}{_short(name)}"


def _row(action: Mapping[str, Any]) -> str:
    verb = _VERBS.get(action["mnemonic"], action["mnemonic"])
    notes = {
        "from a cache": action["cached"],
        "failed": action["failed"],
        "same result": action["same_result"],
    }
    said = "".join(f"  {note}" for note, holds in notes.items() if holds)
    return f"  {verb}  {_short(action['output'])}{said}"


def _short(path: str) -> str:
    """An output without the folder of the configuration, if that is the usual one."""
    return re.sub(r"^bazel-out/\w+-opt/bin/", "", path)


def _count(actions: Sequence[object]) -> str:
    return f"{len(actions)} action" + ("" if len(actions) == 1 else "s")
