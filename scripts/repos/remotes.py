"""Which remote of a repository is the upstream, and which addresses mean the same place.

same("git@github.com:pytorch/pytorch.git", "https://github.com/pytorch/pytorch")   # True
"""

import os
import re

from scripts.repos import git
from scripts.repos.model import Entry, Repo

_SCHEME = re.compile(r"^(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<rest>.*)$", re.IGNORECASE)
# user@host:path, the short form of ssh. A colon after a slash belongs to a path.
_SCP = re.compile(r"^(?:[^@/:]+@)?(?P<host>\[[^\]]+\]|[^/:]+):(?P<path>.*)$")
_PORTS = {"ssh": "22", "git+ssh": "22", "https": "443", "http": "80", "git": "9418"}
# Hosts that serve the same repositories under another name.
_ALIASES = dict.fromkeys(("ssh.github.com:443", "ssh.github.com", "www.github.com"), "github.com")


def _place(url: str, folder: str) -> tuple[str, str]:
    """Host and path that an address means; a relative path is relative to `folder`."""
    match = _SCHEME.match(url)
    scheme = match["scheme"].lower() if match else ""
    short = None if match or os.path.isabs(url) else _SCP.match(url)
    if short:
        host, path = short["host"].lower(), short["path"]
    elif match and scheme != "file":
        authority, _, path = match["rest"].partition("/")
        host = authority.rpartition("@")[2].lower().removesuffix(f":{_PORTS.get(scheme)}")
    else:
        path = os.path.realpath(os.path.join(folder, match["rest"] if match else url))
        return "", path.removesuffix("/.git").removesuffix(".git")
    host = _ALIASES.get(host, host)
    path = re.sub("/+", "/", path).strip("/").removesuffix(".git")
    # The two big public hosts ignore case.
    return host, path.lower() if host in ("github.com", "gitlab.com") else path


def same(one: str, *others: str, folder: str = "/") -> bool:
    """Whether an address means the same repository as one of the others."""
    return any(_place(one, folder) == _place(other, folder) for other in others)


def _effective(url: str, config: git.Config) -> str:
    """An address as git uses it: the longest prefix that has a replacement is replaced."""
    bases = git.subsections(config, "url", "insteadof")
    fitting = [(prefix, base) for base, prefix in bases if url.startswith(prefix)]
    prefix, base = max(fitting, key=lambda pair: len(pair[0]), default=("", ""))
    return base + url[len(prefix) :]


def rewritten(url: str, config: git.Config, entry: Entry) -> str:
    """The problem if insteadOf maps an address of the upstream elsewhere."""
    called = _effective(url, config)
    is_official = same(called, *entry.upstream)
    return "" if is_official else f"git rewrites {url} to {called} (insteadOf)"


def choose(repo: Repo, config: git.Config) -> Repo:
    """With the remotes that are the upstream and the fork, judged by the table.

    If no remote is the upstream, with the reason, and a command that corrects or explains it.
    """
    entry = repo.entry
    # What git calls counts, not what is written: insteadOf may lead to another host.
    addresses = git.subsections(config[::-1], "remote", "url")
    called = {name: _effective(url, config) for name, url in addresses}
    # In the order of preference.
    names = sorted(called, key=lambda name: (name != "upstream", name != "origin", name))

    def one_of(*wanted: str) -> str | None:
        found = [name for name in names if same(called[name], *wanted, folder=str(repo.path))]
        return found[0] if found else None

    usual = next((name for name in names if name in ("upstream", "origin")), None)
    official = one_of(*entry.upstream) if entry.upstream else usual
    fork = dict(config).get("remote.pushdefault")
    if entry.fork is not None:
        fork = entry.fork if entry.fork in names else one_of(entry.fork)
    fork = fork if fork in names and fork != official else None
    repo = repo._replace(official=official, fork=fork)
    if official is not None:
        return repo
    wanted = next(iter(entry.upstream), "")
    problem, remedy = "no remote is named upstream or origin", ("remote", "-v")
    if wanted:
        problem = rewritten(wanted, config, entry)
        remedy = ("config", "--show-origin", "--get-regexp", r"^(remote|url)\.")
    if not problem:
        written = ", ".join(f"{name}: {git.redact(called[name])}" for name in names[:2])
        problem = f"no remote is {wanted}" + (f" ({written})" if written else "")
        remedy = ("remote", "set-url" if "upstream" in names else "add", "upstream", wanted)
    return repo._replace(reason=problem, remedy=(repo.command(*remedy),))
