"""Which repositories there are: repositories.toml, and the user's own file over it."""

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scripts.repos.model import Repository, Settings, UsageError

FILE = Path(__file__).resolve().parents[1] / "repositories.toml"


# Of what other keys than lists of strings are.
_KINDS = {
    "branch": str,
    "optional": bool,
    "project": bool,
    "pins": dict,
    "path": str,
    "rebuild": str,
}
_WORDS = {str: "no string", bool: "neither true nor false", dict: "no table"}
# Without a thread nothing would ever end, and without time nothing would be answered.
_LEAST = {"jobs": 1, "timeout": 0.001}


class Table(NamedTuple):
    """All that the files say.

    Attributes:
      repositories: by name, in dependency order.
      default: names of those that are updated when none is named.
      settings: numbers.
      sources: the files that were read.
    """

    repositories: Mapping[str, Repository]
    default: tuple[str, ...]
    settings: Settings
    sources: tuple[Path, ...]


def user_file(environ: Mapping[str, str]) -> Path:
    """Where the user's own file is, if there is one."""
    folder = environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(folder) / "torch_xla_lite" / "repositories.toml"


def read(own: Path | None, environ: Mapping[str, str]) -> Table:
    """Reads the project's table and the user's file over it.

    Args:
      own: the user's file, which must exist; None for the one at its usual place, if it is there.
      environ: environment variables.

    Raises:
      UsageError: a file cannot be read or says what makes no sense.
    """
    sources = [FILE]
    usual = user_file(environ)
    if own is not None or usual.is_file():
        sources.append(own or usual)
    content: dict[str, Any] = {"default": [], "settings": {}, "repository": {}}
    for source in sources:
        _lay_over(content, _load(source), source)
    repositories = {
        name: _repository(name, keys, sources[-1]) for name, keys in content["repository"].items()
    }
    for name in content["default"]:
        _known(str(name), repositories, f"`default` in {sources[-1]}")
    return Table(
        _in_order(repositories, sources[-1]),
        tuple(content["default"]),
        _settings(content["settings"], sources[-1]),
        tuple(sources),
    )


def _load(source: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{source} cannot be read: {error}", f"Correct {source}.") from None


def _lay_over(content: dict[str, Any], new: dict[str, Any], source: Path) -> None:
    unknown = set(new) - set(content)
    if unknown:
        raise _wrong(source, f"unknown key {sorted(unknown)[0]}", f"Known: {', '.join(content)}.")
    for key, value in new.items():
        if not isinstance(value, type(content[key])):
            raise _wrong(source, f"{key} = {value!r} makes no sense", "Correct it.")
    content["default"] = new.get("default", content["default"])
    content["settings"].update(new.get("settings", {}))
    for name, keys in new.get("repository", {}).items():
        if not isinstance(keys, dict):
            raise _wrong(source, f"repository.{name} is no table", "Correct it.")
        content["repository"].setdefault(name, {}).update(keys)


def _repository(name: str, keys: Mapping[str, Any], source: Path) -> Repository:
    unknown = set(keys) - set(Repository._fields) | set(keys) & {"name"}
    if unknown:
        known = ", ".join(Repository._fields[1:])
        raise _wrong(source, f"unknown key {sorted(unknown)[0]} of {name}", f"Known: {known}.")
    values = dict(keys)
    for key in ("folders", "upstream", "depends"):
        value = values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise _wrong(source, f"{key} of {name} is no list of strings", "Write it in brackets.")
        values[key] = tuple(value)
    for key, kind in _KINDS.items():
        if key in values and not isinstance(values[key], kind):
            raise _wrong(source, f"{key} of {name} is {_WORDS[kind]}", "Correct it.")
    if not all(isinstance(word, str) for word in values.get("pins", {}).values()):
        raise _wrong(source, f"pins of {name} name no files", "Correct it.")
    return Repository(name=name, **values)


def _settings(values: Mapping[str, Any], source: Path) -> Settings:
    for key, value in values.items():
        if key not in Settings._fields:
            known = ", ".join(Settings._fields)
            raise _wrong(source, f"unknown setting {key}", f"Known: {known}.")
        kind = type(getattr(Settings(), key))
        fits = type(value) is kind or (kind is float and type(value) is int)
        if not fits or value < _LEAST.get(key, 0):
            raise _wrong(source, f"setting {key} = {value!r} makes no sense", "Correct it.")
    return Settings(**values)


def _in_order(repositories: Mapping[str, Repository], source: Path) -> dict[str, Repository]:
    """What others depend on comes first; otherwise the order of the file."""
    ordered: dict[str, Repository] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            circle = " → ".join((*path[path.index(name) :], name))
            raise _wrong(source, f"{circle} depend on each other", "Correct `depends`.")
        _known(name, repositories, f"`depends` of {path[-1] if path else name} in {source}")
        for below in repositories[name].depends:
            visit(below, (*path, name))
        ordered.setdefault(name, repositories[name])

    for name in repositories:
        visit(name, ())
    return ordered


def select(table: Table, names: Iterable[str], base: str | None, everything: bool) -> list[str]:
    """Names of the repositories to update, in dependency order.

    Args:
      table: all there are.
      names: those that were named.
      base: one that is chosen together with all that depend on it, directly or not.
      everything: whether all are wanted.

    Raises:
      UsageError: a name is in no table.
    """
    wanted = set(names)
    for name in (*wanted, *([base] if base else [])):
        _known(name, table.repositories, "the command line")
    if everything:
        wanted |= set(table.repositories)
    if base:
        chosen = {base}
        # In dependency order, so one pass finds all.
        for name, repository in table.repositories.items():
            if chosen & set(repository.depends):
                chosen.add(name)
        wanted |= chosen
    if not wanted:
        wanted = set(table.default)
    return [name for name in table.repositories if name in wanted]


def _known(name: str, repositories: Mapping[str, Repository], where: str) -> None:
    if name not in repositories:
        known = ", ".join(repositories)
        raise UsageError(
            f"No repository is named {name}, but {where} names it.", f"Known: {known}."
        )


def _wrong(source: Path, problem: str, remedy: str) -> UsageError:
    return UsageError(f"{source}: {problem}.", remedy)
