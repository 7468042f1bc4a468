"""Which remote of a repository is the upstream, and which is the fork."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.repos import urls
from scripts.repos.model import Entry


class Choice(NamedTuple):
    """What the remotes of a repository are, judged by the table."""

    official: str | None  # The upstream.
    fork: str | None = None  # What the user named: `fork` of the table, or remote.pushDefault.
    problem: str = ""
    remedy: tuple[str, ...] = ()  # Arguments of git that correct the problem, or show its cause.


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
    """The problem if insteadOf maps an address of the upstream elsewhere."""
    called = _effective(url, config)
    is_official = urls.same(called, *entry.upstream)
    return "" if is_official else f"git rewrites {url} to {called} (insteadOf)"


def choose(config: Sequence[tuple[str, str]], entry: Entry, folder: Path) -> Choice:
    """Judges the remotes of a repository by its row of the table."""
    # What git calls counts, not what is written: insteadOf may lead to another host.
    called = {
        key[len("remote.") : -len(".url")]: _effective(value, config)
        for key, value in reversed(config)
        if key.startswith("remote.") and key.endswith(".url")
    }
    # In the order of preference.
    names = sorted(called, key=lambda name: (name != "upstream", name != "origin", name))

    def one_of(*wanted: str) -> str | None:
        found = [name for name in names if urls.same(called[name], *wanted, folder=str(folder))]
        return found[0] if found else None

    usual = next((name for name in names if name in ("upstream", "origin")), None)
    official = one_of(*entry.upstream) if entry.upstream else usual
    fork = dict(config).get("remote.pushdefault")
    if entry.fork is not None:
        fork = entry.fork if entry.fork in names else one_of(entry.fork)
    fork = fork if fork in names and fork != official else None
    if official is not None:
        return Choice(official, fork)
    if not entry.upstream:
        return Choice(None, fork, "no remote is named upstream or origin", ("remote", "-v"))
    wanted = entry.upstream[0]
    problem = rewritten(wanted, config, entry)
    if problem:
        shown = ("config", "--show-origin", "--get-regexp", r"^(remote|url)\.")
        return Choice(None, fork, problem, shown)
    verb = "set-url" if "upstream" in names else "add"
    written = ", ".join(f"{name}: {urls.redact(called[name])}" for name in names[:2])
    problem = f"no remote is {wanted}" + (f" ({written})" if written else "")
    return Choice(None, fork, problem, ("remote", verb, "upstream", wanted))
