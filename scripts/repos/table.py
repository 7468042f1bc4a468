"""The table of repositories, the user's own file over it, and the file of frozen commits."""

import json
import math
import os
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

from scripts.repos import journal
from scripts.repos.model import Entry, Repo, Settings, Status, UsageError

FILE = Path(__file__).resolve().parents[1] / "repositories.toml"

# Words of the command line, which cannot be names of repositories.
COMMANDS = ("status", "freeze", "undo")

# What a value is to be, by the type of its default in `Entry` or `Settings`.
_KINDS: dict[type, tuple[tuple[type, ...], str]] = {
    type(None): ((str,), "a string"),
    bool: ((bool,), "true or false"),
    tuple: ((list,), "a list of strings"),
    dict: ((dict,), "a table of file names"),
    int: ((int,), "a number"),
    float: ((int, float), "a number"),
}
_MINIMUM = {"jobs": 1, "timeout": 0.001}

_SCHEMA = "update-repos-freeze/1"
_COMMIT = re.compile("[0-9a-f]{40}([0-9a-f]{24})?")
_HEAD = f"""\
# Commits of repositories. Written by:  scripts/update_repos.py freeze FILE
# Check them out again by:              scripts/update_repos.py --to FILE
schema = "{_SCHEMA}"
"""


class Table(NamedTuple):
    """What the files say."""

    entries: Mapping[str, Entry]  # By name, in dependency order.
    default: tuple[str, ...]  # Those that are updated when none is named.
    settings: Settings


def read(own: Path | None, environ: Mapping[str, str], given: Mapping[str, Any] = {}) -> Table:
    """Reads the project's table and the user's file over it; raises UsageError.

    `own` is the user's file, which must exist; if None, the one at its usual place, if it is there.
    `given` are settings of the command line, which go over the others where they are not None.
    """
    folder = environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    usual = Path(folder) / "torch_xla_lite" / "repositories.toml"
    content: dict[str, Any] = {"default": [], "settings": {}, "repository": {}}
    for source in (FILE, *([own or usual] if own is not None or os.path.isfile(usual) else [])):
        _merge(content, load(source), source)
    entries = {}
    for name, keys in content["repository"].items():
        _check(keys, Entry._field_defaults, name, source)
        values = {key: tuple(v) if isinstance(v, list) else v for key, v in keys.items()}
        entries[name] = Entry(name=name, **values)
    for name in content["default"]:
        check_known(str(name), entries, f"`default` in {source}")
    numbers = {name: value for name, value in given.items() if value is not None}
    _check(content["settings"], Settings._field_defaults, "settings", source)
    _check(numbers, Settings._field_defaults, "settings", "the command line")
    settings = Settings(**content["settings"] | numbers)
    return Table(_in_order(entries, source), tuple(content["default"]), settings)


def load(source: Path) -> dict[str, Any]:
    """The content of a TOML file; raises UsageError."""
    try:
        return tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{source} cannot be read: {error}", f"Correct {source}.") from None


def _merge(content: dict[str, Any], new: dict[str, Any], source: Path) -> None:
    for key, value in new.items():
        if key not in content:
            raise _wrong(source, f"unknown key {key}", f"Known: {', '.join(content)}.")
        if not isinstance(value, type(content[key])):
            kind = "a list" if key == "default" else "a table"
            raise _wrong(source, f"{key} = {value!r} must be {kind}")
    content["default"] = new.get("default", content["default"])
    content["settings"].update(new.get("settings", {}))
    for name, keys in new.get("repository", {}).items():
        if not isinstance(keys, dict):
            raise _wrong(source, f"repository.{name} must be a table")
        if name in COMMANDS:
            raise _wrong(source, f"{name} is a command and cannot name a repository")
        content["repository"].setdefault(name, {}).update(keys)


def _check(
    values: Mapping[str, Any], defaults: Mapping[str, Any], of: str, source: Path | str
) -> None:
    """Raises UsageError unless each key has a default, and each value is of its kind."""
    for key, value in values.items():
        if key not in defaults:
            raise _wrong(source, f"unknown key {key} of {of}", f"Known: {', '.join(defaults)}.")
        kinds, words = _KINDS[type(defaults[key])]
        parts = value.values() if type(value) is dict else value if type(value) is list else ()
        if type(value) not in kinds or not all(isinstance(part, str) for part in parts):
            raise _wrong(source, f"{key} of {of} must be {words}")
        least = _MINIMUM.get(key, 0)
        if words == "a number" and not least <= value < math.inf:
            raise _wrong(source, f"{key} of {of} must be a number ≥ {least}")


def _in_order(entries: Mapping[str, Entry], source: Path) -> dict[str, Entry]:
    """Dependencies come first."""
    for entry in entries.values():
        for name in entry.depends:
            check_known(name, entries, f"`depends` of {entry.name} in {source}")
    graph = {entry.name: entry.depends for entry in entries.values()}
    _sorted(pins(entries.values()), "pins", source)
    return {name: entries[name] for name in _sorted(graph, "depends", source)}


def _sorted(graph: Mapping[str, Iterable[str]], key: str, source: Path) -> list[str]:
    try:
        return [*TopologicalSorter(graph).static_order()]
    except CycleError as error:
        circle = " → ".join(error.args[1])
        raise _wrong(source, f"`{key}` is a circle: {circle}", f"Correct `{key}`.") from None


def pins(entries: Iterable[Entry]) -> dict[str, list[str]]:
    """The repositories that are pinned, each with those that pin it."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        for name in entry.pins:
            found.setdefault(name, []).append(entry.name)
    return found


def select(table: Table, names: Iterable[str], base: str | None, everything: bool) -> list[str]:
    """The given names, `base` with all that depend on it, or all; in dependency order."""
    bases = {base} if base else set()
    for name in (*names, *bases):
        check_known(name, table.entries, "the command line")
    wanted = {*names, *with_dependents(bases, table.entries.values())}
    wanted |= set(table.entries if everything else () if wanted else table.default)
    return [name for name in table.entries if name in wanted]


def with_dependents(names: set[str], entries: Iterable[Entry]) -> set[str]:
    """The names and those of all that depend on them; the entries are in dependency order."""
    found = set(names)
    for entry in entries:
        if found & set(entry.depends):
            found.add(entry.name)
    return found


def check_known(name: str, known: Collection[str], where: str) -> None:
    """Raises UsageError unless a name is one of those that are known."""
    if name not in known:
        problem = f"No repository is named {name}, but {where} names it."
        raise UsageError(problem, f"Known: {', '.join(known)}.")


def write_commits(file: Path, repos: Iterable[Repo]) -> None:
    """Writes the commits of all repositories that are `frozen`."""
    written = [repo for repo in repos if repo.status is Status.CURRENT]
    rows = [f'\n[repository.{json.dumps(r.name)}]\ncommit = "{r.head}"\n' for r in written]
    try:
        journal.write(file, "".join([_HEAD, *rows]))
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error}", "Name another file.") from None


def read_commits(file: Path, known: Collection[str] | None = None) -> dict[str, str]:
    """The commits that a file names, of `known` repositories if given; raises UsageError."""
    content = load(file)
    repositories = content.get("repository", {})
    if content.get("schema") != _SCHEMA or not isinstance(repositories, dict):
        raise UsageError(f"{file} was not written by `freeze`.", "Name a file that was.")
    for name, keys in repositories.items():
        if not (isinstance(keys, dict) and _COMMIT.fullmatch(str(keys.get("commit")))):
            raise UsageError(f"{file} names no whole commit for {name}.", f"Correct {file}.")
        if known is not None:
            check_known(name, known, str(file))
    return {name: keys["commit"] for name, keys in repositories.items()}


def _wrong(source: Path | str, problem: str, remedy: str = "Correct it.") -> UsageError:
    return UsageError(f"{source}: {problem}.", remedy)
