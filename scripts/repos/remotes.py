"""Which remote of a repository is the upstream, and which is the fork."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.repos import urls
from scripts.repos.model import Entry


class Choice(NamedTuple):
    """What the remotes of a repository are, judged by the table."""

    official: str | None  # The upstream.
    fork: str | None = None  # What the user named: `fork` of the table, or remote.pushDefault.
    problem: str = ""
    fix: tuple[str, ...] = ()  # Arguments of `git remote` that correct the problem.
    note: str = ""


def _effective(url: str, config: Sequence[tuple[str, str]]) -> str:
    """An address as git uses it: the longest prefix that has a replacement is replaced."""
    fitting = [
        (value, key[len("url.") : -len(".insteadof")])
        for key, value in config
        if key.startswith("url.") and key.endswith(".insteadof") and url.startswith(value)
    ]
    prefix, base = max(fitting, key=lambda pair: len(pair[0]), default=("", ""))
    return base + url[len(prefix) :]


def rewritten(url: str, config: Sequence[tuple[str, str]], entry: Entry) -> str:
    """The problem when git makes something else than the upstream of one of its addresses."""
    called = _effective(url, config)
    is_official = any(urls.same(called, other) for other in entry.upstream)
    return "" if is_official else f"git rewrites {url} to {called} (insteadOf)"


def choose(config: Sequence[tuple[str, str]], entry: Entry, folder: Path) -> Choice:
    """Judges the remotes of a repository by its row of the table."""
    urls_of = {
        key[len("remote.") : -len(".url")]: value
        for key, value in reversed(config)
        if key.startswith("remote.") and key.endswith(".url")
    }
    # What git calls counts, not what is written: insteadOf may lead to another host.
    called = {name: _effective(url, config) for name, url in urls_of.items()}
    written = {name: urls.redact(url) for name, url in urls_of.items()}

    def one_of(addresses: Iterable[str]) -> list[str]:
        names = sorted(called, key=lambda name: (name != "upstream", name != "origin", name))
        is_ours = [any(urls.same(called[n], url, str(folder)) for url in addresses) for n in names]
        return [name for name, ours in zip(names, is_ours, strict=True) if ours]

    usual = [name for name in ("upstream", "origin") if name in written]
    official = next(iter(one_of(entry.upstream) if entry.upstream else usual), None)
    fork = dict(config).get("remote.pushdefault")
    if entry.fork is not None:
        fork = entry.fork if entry.fork in written else next(iter(one_of([entry.fork])), None)
    fork = fork if fork in written and fork != official else None
    if not entry.upstream:
        problem = "" if official else "no remote is named upstream or origin"
        return Choice(official, fork, problem)
    is_upstream = f"remote upstream is {written.get('upstream')}"
    if official is not None:
        is_odd = "upstream" in written and official != "upstream"
        note = f"{is_upstream}; {official} is the official one" if is_odd else ""
        return Choice(official, fork, note=note)
    # The new address has the form of the first remote's.
    by_ssh = any(urls.is_ssh(urls_of[name]) for name in (usual or sorted(written))[:1])
    fitting = [url for url in entry.upstream if urls.is_ssh(url) == by_ssh]
    wanted = (fitting or list(entry.upstream))[0]
    problem = rewritten(wanted, config, entry)
    if problem:
        return Choice(None, fork, problem)
    if "upstream" in written:
        problem = f"{is_upstream}, not {wanted}"
        return Choice(None, fork, problem, ("set-url", "upstream", wanted))
    others = ", ".join(f"{name}: {written[name]}" for name in sorted(written)[:2])
    problem = f"no remote is {wanted}" + (f" ({others})" if others else "")
    return Choice(None, fork, problem, ("add", "upstream", wanted))
