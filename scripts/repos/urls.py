"""Addresses of repositories: whether two mean one place, and what of a text must not be shown.

same("git@github.com:pytorch/pytorch.git", "https://github.com/pytorch/pytorch")   # True
redact("https://me:secret@host/x.git")                                            # https://***@host/x.git
"""

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

_SCHEME = re.compile(r"^(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<rest>.*)$", re.IGNORECASE)
# user@host:path, the short form of ssh. A colon after a slash belongs to a path.
_SCP = re.compile(r"^(?:(?P<user>[^@/:]+)@)?(?P<host>\[[^\]]+\]|[^/:]+):(?P<path>.*)$")
_PORTS = {"ssh": "22", "git+ssh": "22", "https": "443", "http": "80", "git": "9418"}
# Hosts that serve the same repositories under another name.
_ALIASES = {"ssh.github.com": "github.com", "www.github.com": "github.com"}

# Compiled when something is shown, which is not at the start.
# Up to the last @ before the path: a password may hold one.
_USER_INFO = r"([\w+.-]*)://([^/\s'\"]+)@"
_HEADER = r"(?i)(authorization\s*[:=]\s*)(?:\w+ )?\S+"
_TOKEN = r"\b(?:gh[pousr]_|github_pat_|glpat-)[A-Za-z0-9_-]{8,}"
_IN_QUERY = r"(?i)([?&](?:access_token|private_token|token|password)=)[^&\s'\"]+"


class Place(NamedTuple):
    """What an address means, apart from how it is reached."""

    host: str
    path: str


def place(url: str, folder: str = "/") -> Place:
    """Takes an address apart.

    Args:
      url: in any form that git takes.
      folder: what a relative path is relative to.
    """
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
    # The two big public hosts take no notice of case.
    return Place(host, path.lower() if host in ("github.com", "gitlab.com") else path)


def same(one: str, other: str, folder: str = "/") -> bool:
    """Whether two addresses mean one repository."""
    return place(one, folder) == place(other, folder)


def is_fork(url: str, official: str) -> bool:
    """Whether an address looks like a fork: the same host and repository name, another owner."""
    ours, theirs = place(url), place(official)
    same_name = ours.path.rpartition("/")[2].lower() == theirs.path.rpartition("/")[2].lower()
    return ours.host == theirs.host and ours.path != theirs.path and same_name


def is_ssh(url: str) -> bool:
    """Whether an address is reached by ssh."""
    match = _SCHEME.match(url)
    if match:
        return "ssh" in match["scheme"].lower()
    return bool(_SCP.match(url)) and not os.path.isabs(url)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """A text without credentials: those in addresses, headers and tokens, and the given ones."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, "***")
    text = re.sub(_USER_INFO, _without_user_info, text)
    text = re.sub(_HEADER, r"\1***", text)
    text = re.sub(_IN_QUERY, r"\1***", text)
    return re.sub(_TOKEN, "***", text)


def _without_user_info(match: re.Match[str]) -> str:
    """An address whose user is hidden; that of ssh is no secret, and commands need it."""
    scheme, info = match[1], match[2]
    shown = info if "ssh" in scheme.lower() and ":" not in info else "***"
    return f"{scheme}://{shown}@"


def secrets_in(config: Iterable[tuple[str, str]]) -> set[str]:
    """What must not be shown of a git configuration: passwords in addresses, extra headers."""
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
