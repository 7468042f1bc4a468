"""Addresses of repositories: whether two mean one place, and how they are shown without secrets.

same("git@github.com:pytorch/pytorch.git", "https://github.com/pytorch/pytorch")   # True
redact("https://me:secret@host/x.git")                                            # https://***@host/x.git
"""

import functools
import os
import re
import shlex
import subprocess
from collections.abc import Iterable
from typing import NamedTuple

_SCHEME = re.compile(r"^(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<rest>.*)$", re.IGNORECASE)
# user@host:path, the short form of ssh. A colon after a slash belongs to a path.
_SCP = re.compile(r"^(?:(?P<user>[^@/:]+)@)?(?P<host>\[[^\]]+\]|[^/:]+):(?P<path>.*)$")
_PORTS = {"ssh": "22", "git+ssh": "22", "https": "443", "http": "80", "git": "9418"}
# Hosts that serve the same repositories under another name.
_ALIASES = {"ssh.github.com": "github.com", "www.github.com": "github.com"}

# Up to the last @ before the path: a password may hold one.
_USER_INFO = re.compile(r"([\w+.-]*)://([^/\s'\"]+)@")
_SECRETS = (
    (re.compile(r"(?i)(authorization\s*[:=]\s*)(?:\w+ )?\S+"), r"\1***"),
    (re.compile(r"(?i)([?&](?:access_token|private_token|token|password)=)[^&\s'\"]+"), r"\1***"),
    (re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-)[A-Za-z0-9_-]{8,}"), "***"),
)

# ssh reads only files for this, unless it is told to ask a name server that does not answer.
_SSH_SECONDS = 5


class Place(NamedTuple):
    """What an address means, apart from how it is reached."""

    host: str
    path: str


def place(url: str, folder: str = "/") -> Place:
    """Takes an address apart; a relative path is relative to `folder`."""
    match = _SCHEME.match(url)
    if match:
        scheme, rest = match["scheme"].lower(), match["rest"]
        if scheme == "file":
            return Place("", _file(rest, folder))
        authority, _, path = rest.partition("/")
        host = authority.rpartition("@")[2].lower().removesuffix(f":{_PORTS.get(scheme)}")
        if host == "ssh.github.com:443":
            host = "github.com"
        return _place(host, path)
    match = _SCP.match(url)
    if match and not os.path.isabs(url):
        return _place(match["host"].lower(), match["path"])
    return Place("", _file(url, folder))


def _file(path: str, folder: str) -> str:
    path = os.path.realpath(os.path.join(folder, path))
    return path.removesuffix("/.git").removesuffix(".git")


def _place(host: str, path: str) -> Place:
    host = _ALIASES.get(host, host)
    path = re.sub("/+", "/", path).strip("/").removesuffix(".git")
    # The two big public hosts ignore case.
    return Place(host, path.lower() if host in ("github.com", "gitlab.com") else path)


def same(one: str, other: str, folder: str = "/") -> bool:
    """Whether two addresses mean one repository."""
    return place(one, folder) == place(other, folder)


def is_ssh(url: str) -> bool:
    """Whether an address is reached by ssh."""
    match = _SCHEME.match(url)
    if match:
        return "ssh" in match["scheme"].lower()
    return bool(_SCP.match(url)) and not os.path.isabs(url)


def resolved(url: str, officials: Iterable[str], command: str = "") -> str:
    """An address with the host name that ssh makes of its host (`Host` in ~/.ssh/config).

    ssh is asked only where the answer could make it one of the official addresses. `command` is
    core.sshCommand.
    """
    if not is_ssh(url):
        return url
    host, path = place(url)
    places = [place(official) for official in officials]
    hosts = {other.host for other in places if other.path.lower() == path.lower()}
    if host.startswith("-") or not hosts or host in hosts:
        return url
    real = _host_name(host, os.environ.get("GIT_SSH_COMMAND") or command or "ssh")
    return f"ssh://{real}/{path}" if real else url


@functools.cache
def _host_name(host: str, command: str) -> str:
    """Empty when ssh does not say."""
    try:
        said = subprocess.run(
            [*shlex.split(command), "-G", host.partition(":")[0]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SSH_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    lines = [line.split(" ", 1) for line in said.stdout.splitlines()]
    return next((line[1] for line in lines if line[0] == "hostname" and len(line) == 2), "")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """A text without credentials: those in addresses, headers and tokens, and the given ones."""
    # The longest first: one may be the beginning of another. Other threads may add to them.
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= 4:
            text = text.replace(secret, "***")
    text = _USER_INFO.sub(_without_user_info, text)
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def _without_user_info(match: re.Match[str]) -> str:
    """An address whose user is hidden; that of ssh is no secret, and commands need it."""
    scheme, info = match[1], match[2]
    user = info if "ssh" in scheme.lower() and ":" not in info else "***"
    return f"{scheme}://{user}@"


def secrets_in(config: Iterable[tuple[str, str]]) -> set[str]:
    """The secrets in a git configuration: passwords in addresses, extra headers."""
    found = set()
    for key, value in config:
        if key.lower().endswith(".extraheader"):
            found.add(value)
            found.update(word for word in value.split() if len(word) >= 8)
        for text in (key, value):
            for info in re.findall(r"://([^/\s]+)@", text):
                password = info.partition(":")[2]
                if password:
                    found.add(password)
    return found
