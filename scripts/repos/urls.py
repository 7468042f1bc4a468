"""Addresses of repositories: whether two mean one place, and how to print them without secrets.

same("git@github.com:pytorch/pytorch.git", "https://github.com/pytorch/pytorch")   # True
redact("https://me:secret@host/x.git")                                            # https://***@host/x.git
"""

import os
import re

_SCHEME = re.compile(r"^(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<rest>.*)$", re.IGNORECASE)
# user@host:path, the short form of ssh. A colon after a slash belongs to a path.
_SCP = re.compile(r"^(?:[^@/:]+@)?(?P<host>\[[^\]]+\]|[^/:]+):(?P<path>.*)$")
_PORTS = {"ssh": "22", "git+ssh": "22", "https": "443", "http": "80", "git": "9418"}
# Hosts that serve the same repositories under another name.
_ALIASES = dict.fromkeys(("ssh.github.com:443", "ssh.github.com", "www.github.com"), "github.com")

# Up to the last @ before the path: a password may hold one.
_USER_INFO = re.compile(r"([\w+.-]*)://([^/\s'\"]+)@")
_SECRETS = (
    (re.compile(r"(?i)(authorization\s*[:=]\s*)(?:\w+ )?[^\s'\"]+"), r"\1***"),
    (re.compile(r"(?i)([?&](?:access_token|private_token|token|password)=)[^&\s'\"]+"), r"\1***"),
    (re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-)[A-Za-z0-9_-]{8,}"), "***"),
)


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


def redact(text: str) -> str:
    """A text without credentials: those in addresses, headers and tokens."""
    text = _USER_INFO.sub(_without_user_info, text)
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def _without_user_info(match: re.Match[str]) -> str:
    """An address whose user is hidden; that of ssh is no secret, and commands need it."""
    scheme, info = match[1], match[2]
    user = info if "ssh" in scheme.lower() and ":" not in info else "***"
    return f"{scheme}://{user}@"
