"""The table of repositories, and the user's own file over it."""

import tomllib
from collections.abc import Collection, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

from scripts.repos.model import Entry, UsageError

FILE = Path(__file__).resolve().parents[1] / "repositories.toml"

# Words of the command line, which cannot be names of repositories.
COMMANDS = ("status", "undo")
_KINDS = {
    **{list: "a list of strings", dict: "a table", str: "a string", bool: "true or false"},
}


class Table(NamedTuple):
    """What the files say."""

    entries: Mapping[str, Entry]  # By name, in dependency order.
    default: list[str]  # Repositories that are updated when none is named.


def read(own: Path | None, environ: Mapping[str, str]) -> Table:
    """Reads the project's table and the user's file over it; raises UsageError.

    `own` is the user's file, which must exist; if None, the one at its usual place, if it is there.
    """
    folder = environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()
    usual = Path(folder) / "torch_xla_lite" / "repositories.toml"
    default: list[str] = []
    rows: dict[str, dict[str, Any]] = {}
    for source in (FILE, own or usual):
        content = _load(source, source == usual)
        _check(content, {"default": list, "repository": dict}, f"{source}")
        default = content.get("default", default)
        for name, keys in content.get("repository", {}).items():
            if not isinstance(keys, dict) or name in COMMANDS:
                raise UsageError(f"{source}: repository.{name} must be a table, and no command.")
            rows.setdefault(name, {}).update(keys)
    kinds = {name: type(value) for name, value in Entry._field_defaults.items()}
    for name, keys in rows.items():
        _check(keys, kinds, f"repository.{name} in {source}")
    entries = {name: Entry(**{**keys, "name": name}) for name, keys in rows.items()}
    return Table(_in_order(entries, default, source), default)


def _load(source: Path, may_be_absent: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        if may_be_absent and isinstance(error, (FileNotFoundError, PermissionError)):
            return {}
        raise UsageError(f"{source} cannot be read: {error}\nCorrect it.") from None


def _check(values: Mapping[str, Any], kinds: Mapping[str, type], of: str) -> None:
    """Raises UsageError unless each key is known, and each value is of its kind."""
    for key, value in values.items():
        if key not in kinds:
            raise UsageError(f"{of}: unknown key {key}.\nKnown: {', '.join(kinds)}.")
        parts = value.values() if isinstance(value, dict) else value
        is_nested = isinstance(value, (list, dict)) and key != "repository"
        is_kind = isinstance(value, kinds[key])
        if not is_kind or (is_nested and not all(isinstance(part, str) for part in parts)):
            raise UsageError(f"{of}: {key} = {value!r} must be {_KINDS[kinds[key]]}.")


def _in_order(entries: Mapping[str, Entry], default: list[str], source: Path) -> dict[str, Entry]:
    """Dependencies come first."""
    for name in default:
        _check_known(name, entries, f"`default` in {source}")
    for entry in entries.values():
        for name in entry.needs:
            _check_known(name, entries, f"repository.{entry.name} in {source}")
    graph = TopologicalSorter({entry.name: entry.needs for entry in entries.values()})
    try:
        return {name: entries[name] for name in graph.static_order()}
    except CycleError as error:
        circle = " → ".join(error.args[1])
        raise UsageError(f"{source}: `depends` and `pins` are a circle: {circle}.") from None


def select(table: Table, names: Iterable[str], base: str | None, everything: bool) -> list[str]:
    """The given names, `base` with all that depend on it, or all; in dependency order."""
    bases = {base} if base else set()
    for name in (*names, *bases):
        _check_known(name, table.entries, "the command line")
    wanted = {*names, *with_dependents(bases, table.entries.values())}
    wanted |= set(table.entries if everything else () if wanted else table.default)
    return [name for name in table.entries if name in wanted]


def with_dependents(names: set[str], entries: Iterable[Entry]) -> set[str]:
    """The names and those of all that depend on them; the entries are in dependency order."""
    found = set(names)
    for entry in entries:
        if found.intersection(entry.needs):
            found.add(entry.name)
    return found


def _check_known(name: str, known: Collection[str], where: str) -> None:
    if name not in known:
        problem = f"No repository is named {name}, but {where} names it."
        raise UsageError(f"{problem}\nKnown: {', '.join(known)}.")
