"""Which remote of a repository is the upstream, and which addresses mean the same place.

same("git@github.com:pytorch/pytorch.git", "https://github.com/pytorch/pytorch")   # True
"""

import functools
import os
import re
from collections.abc import Mapping
from pathlib import Path

from scripts.repos import git
from scripts.repos.model import Repo

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


@functools.cache
def addresses(folder: Path) -> dict[str, str]:
    """The addresses of remotes as git calls them: insteadOf may lead to another host."""
    # Paths may hold line ends, names of remotes no blanks.
    return dict(re.findall(r"(?ms)^(\S+)\t(.*?) \(fetch\)", git.run(folder, "remote", "-v").out))


def choose(repo: Repo, called: Mapping[str, str]) -> tuple[Repo, tuple[str, ...]]:
    """With the remote that is the upstream, judged by the table; if there is none, why, and a
    command that corrects or explains it."""
    upstream = repo.entry.upstream
    # In the order of preference.
    names = sorted(called, key=lambda name: (name != "upstream", name != "origin", name))
    if upstream:
        fitting = [n for n in names if same(called[n], *upstream, folder=str(repo.path))]
    else:
        fitting = [name for name in names if name in ("upstream", "origin")]
    if fitting:
        return repo._replace(official=fitting[0]), ()
    if not upstream:
        return repo, ("no remote is named upstream or origin", repo.command("remote", "-v"))
    written = ", ".join(f"{name}: {git.redact(called[name])}" for name in names[:2])
    verb = "set-url" if "upstream" in names else "add"
    problem = f"no remote is {upstream[0]}" + (f" (git calls {written})" if written else "")
    return repo, (problem, repo.command("remote", verb, "upstream", upstream[0]))
