"""Which remote of a repository is the upstream, which is the fork, and how to correct them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.repos import git, urls
from scripts.repos.model import Entry, Repo

# Names that are preferred when several remotes fit.
_PREFERRED = ("upstream", "origin")


class Remote(NamedTuple):
    """A remote: its address as written, and the one that git calls (insteadOf, `Host` of ssh)."""

    name: str
    url: str
    effective: str


class Choice(NamedTuple):
    """What the remotes of a repository are, judged by the table.

    The upstream, the user's fork; what is wrong, and `git remote` arguments that correct it; what
    is unusual and does no harm.
    """

    official: str | None
    fork: str | None = None
    problem: str = ""
    fix: tuple[str, ...] = ()
    note: str = ""


def read(config: Sequence[tuple[str, str]], known: Sequence[str] = ()) -> list[Remote]:
    """The remotes of a configuration, those with usual names first.

    `known` are addresses whose host the user may have given a name of their own.
    """
    found: dict[str, str] = {}
    for key, value in config:
        if key.startswith("remote.") and key.endswith(".url"):
            found.setdefault(key[len("remote.") : -len(".url")], value)
    names = sorted(found, key=lambda name: (_rank(name), name))
    return [Remote(name, found[name], effective(found[name], config, known)) for name in names]


def effective(url: str, config: Sequence[tuple[str, str]], known: Iterable[str] = ()) -> str:
    """An address as git uses it: the longest prefix that has a replacement is replaced."""
    fitting = [
        (value, key[len("url.") : -len(".insteadof")])
        for key, value in config
        if key.startswith("url.") and key.endswith(".insteadof") and url.startswith(value)
    ]
    if fitting:
        prefix, base = max(fitting, key=lambda pair: len(pair[0]))
        url = base + url[len(prefix) :]
    return urls.resolved(url, known, dict(config).get("core.sshcommand", ""))


def _rank(name: str) -> int:
    return _PREFERRED.index(name) if name in _PREFERRED else len(_PREFERRED)


def choose(config: Sequence[tuple[str, str]], entry: Entry, folder: Path) -> Choice:
    """Judges the remotes of a repository by its row of the table."""
    remotes = read(config, [*entry.upstream, *([entry.fork] if entry.fork else [])])
    by_name = {remote.name: remote for remote in remotes}
    if not entry.upstream:
        official = next((name for name in _PREFERRED if name in by_name), None)
        problem = "" if official else "no remote is named upstream or origin"
        return Choice(official, _fork(by_name, entry, config, folder, official), problem)
    found = [remote for remote in remotes if _is_one_of(remote, entry.upstream, folder)]
    official = found[0].name if found else None
    fork = _fork(by_name, entry, config, folder, official)
    upstream = by_name.get("upstream")
    if official is not None:
        note = ""
        if upstream is not None and official != "upstream":
            note = f"remote upstream is {_shown(upstream)}; {official} is the official one"
        return Choice(official, fork, note=note)
    wanted = _wanted(remotes, entry)
    if effective(wanted, config) != wanted and not _is_one_of(
        Remote("", wanted, effective(wanted, config, entry.upstream)), entry.upstream, folder
    ):
        return Choice(
            None, fork, f"git rewrites {wanted} to {effective(wanted, config)} (insteadOf)"
        )
    if upstream is not None:
        problem = f"remote upstream is {_shown(upstream)}, not {wanted}"
        return Choice(None, fork, problem, ("set-url", "upstream", wanted))
    others = f" ({', '.join(f'{r.name}: {_shown(r)}' for r in remotes[:2])})" if remotes else ""
    return Choice(None, fork, f"no remote is {wanted}{others}", ("add", "upstream", wanted))


def _shown(remote: Remote) -> str:
    return urls.redact(remote.url)


def _is_one_of(remote: Remote, addresses: Iterable[str], folder: Path) -> bool:
    # What git calls counts, not what is written: insteadOf may lead to another host.
    return any(urls.same(remote.effective, address, str(folder)) for address in addresses)


def _fork(
    by_name: Mapping[str, Remote],
    entry: Entry,
    config: Sequence[tuple[str, str]],
    folder: Path,
    official: str | None,
) -> str | None:
    """The remote that the user named: `fork` of the table, or remote.pushDefault."""
    named = dict(config).get("remote.pushdefault")
    if entry.fork is not None:
        fitting = [r.name for r in by_name.values() if _is_one_of(r, [entry.fork], folder)]
        named = entry.fork if entry.fork in by_name else next(iter(fitting), None)
    return named if named in by_name and named != official else None


def _wanted(remotes: list[Remote], entry: Entry) -> str:
    """The official address in the form in which the first remote is reached."""
    by_ssh = bool(remotes) and urls.is_ssh(remotes[0].url)
    fitting = [url for url in entry.upstream if urls.is_ssh(url) == by_ssh]
    return (fitting or list(entry.upstream))[0]


def choose_into(repo: Repo, config: Sequence[tuple[str, str]]) -> Repo:
    """The record with what its remotes are."""
    choice = choose(config, repo.entry, repo.place)
    repo = repo.having(official=choice.official, fork=choice.fork, fix=choice.fix)
    repo = repo.noting(choice.note)
    if not choice.problem:
        return repo.having(problem="", remedy=())
    words = choice.fix or ("add", "upstream", "URL")
    remedy = (git.shell_command(repo.place, "remote", *words),)
    problem = f"{choice.problem}; --fix-remotes corrects it" if choice.fix else choice.problem
    return repo.having(problem=problem, remedy=remedy)
