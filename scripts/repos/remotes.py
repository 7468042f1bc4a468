"""Which remote of a repository is the official one, and what is wrong where none is."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from scripts.repos import ssh, urls
from scripts.repos.model import Remote, RemoteChoice, Repository

# Names that are looked at first when several remotes fit.
_PREFERRED = ("upstream", "origin")


def read(config: Iterable[tuple[str, str]], officials: Sequence[str] = ()) -> list[Remote]:
    """The remotes of a configuration, those with usual names first.

    Args:
      config: of the repository.
      officials: addresses that a remote may have under a name of the user's own for their host.
    """
    pairs = list(config)
    found: dict[str, str] = {}
    instead: list[tuple[str, str]] = []
    for key, value in pairs:
        if key.startswith("remote.") and key.endswith(".url"):
            found.setdefault(key[len("remote.") : -len(".url")], value)
        elif key.startswith("url.") and key.endswith(".insteadof"):
            instead.append((value, key[len("url.") : -len(".insteadof")]))
    names = sorted(found, key=lambda name: (_rank(name), name))
    command = dict(pairs).get("core.sshcommand", "")

    def meant(url: str) -> str:
        return ssh.resolved(_rewritten(url, instead), officials, command)

    return [Remote(name, found[name], meant(found[name])) for name in names]


def _rank(name: str) -> int:
    return _PREFERRED.index(name) if name in _PREFERRED else len(_PREFERRED)


def _rewritten(url: str, instead: Iterable[tuple[str, str]]) -> str:
    """An address as git uses it: the longest prefix that has a replacement is replaced."""
    fitting = [(prefix, base) for prefix, base in instead if url.startswith(prefix)]
    if not fitting:
        return url
    prefix, base = max(fitting, key=lambda pair: len(pair[0]))
    return base + url[len(prefix) :]


def choose(remotes: list[Remote], repository: Repository, folder: Path) -> RemoteChoice:
    """Judges the remotes of a repository by what the table says of its upstream.

    Args:
      remotes: of the repository.
      repository: its entry in the table.
      folder: its folder; addresses may be relative to it.
    """
    by_name = {remote.name: remote for remote in remotes}
    if not repository.upstream:
        return _trusting(by_name)
    official = [remote.name for remote in remotes if _is_official(remote, repository, folder)]
    forks = [remote.name for remote in remotes if _is_fork(remote, repository)]
    fork = forks[0] if forks else None
    wanted = _wanted(remotes, repository)
    if official:
        note = ""
        if official[0] != "upstream" and "upstream" in by_name:
            shown = urls.redact(by_name["upstream"].url)
            note = f"remote upstream is {shown}; {official[0]} is the official one"
        return RemoteChoice(official[0], fork, note=note)
    if "upstream" in by_name:
        problem = f"remote upstream is {urls.redact(by_name['upstream'].url)}, not {wanted}"
        return RemoteChoice(None, fork, problem, ("set-url", "upstream", wanted))
    problem = f"no remote is {wanted}"
    if remotes:
        problem += f" (origin: {urls.redact(remotes[0].url)})" if fork else ""
    return RemoteChoice(None, fork, problem, ("add", "upstream", wanted))


def _trusting(by_name: dict[str, Remote]) -> RemoteChoice:
    """Nothing is known of the upstream: what the repository was cloned from is taken for it."""
    for name in _PREFERRED:
        if name in by_name:
            fork = "origin" if name == "upstream" and "origin" in by_name else None
            return RemoteChoice(name, fork)
    return RemoteChoice(None, None, "no remote upstream or origin to follow")


def _is_official(remote: Remote, repository: Repository, folder: Path) -> bool:
    return any(
        urls.same(url, official, str(folder))
        for url in (remote.url, remote.effective)
        for official in repository.upstream
    )


def _is_fork(remote: Remote, repository: Repository) -> bool:
    return any(
        urls.is_fork(url, official)
        for url in (remote.url, remote.effective)
        for official in repository.upstream
    )


def _wanted(remotes: list[Remote], repository: Repository) -> str:
    """The official address in the form in which the first remote is reached."""
    by_ssh = bool(remotes) and urls.is_ssh(remotes[0].url)
    fitting = [url for url in repository.upstream if urls.is_ssh(url) == by_ssh]
    return (fitting or list(repository.upstream))[0]
