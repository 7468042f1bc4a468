"""What the hosts of addresses mean to ssh: people give them names of their own in ~/.ssh/config."""

import functools
import os
import shlex
import subprocess
from collections.abc import Sequence

from scripts.repos import urls

# ssh only reads files for this, unless it is told to ask a name server that does not answer.
_SECONDS = 5


def resolved(url: str, officials: Sequence[str], command: str = "") -> str:
    """An address with the host that ssh makes of its host, for comparing it.

    Args:
      url: any address; ssh is asked only about one that could be an official one or a fork of it.
      officials: official addresses.
      command: core.sshCommand; empty when it is not set.
    """
    if not urls.is_ssh(url):
        return url
    host, path = urls.place(url)
    places = [urls.place(official) for official in officials]
    name = _name(path)
    if host.startswith("-") or all(host == p.host or name != _name(p.path) for p in places):
        return url
    real = _host_name(host, os.environ.get("GIT_SSH_COMMAND") or command or "ssh")
    return f"ssh://{real}/{path}" if real else url


def _name(path: str) -> str:
    return path.rpartition("/")[2].lower()


@functools.cache
def _host_name(host: str, command: str) -> str:
    """Empty when ssh does not say."""
    try:
        said = subprocess.run(
            [*shlex.split(command), "-G", host.partition(":")[0]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    lines = [line.split(" ", 1) for line in said.stdout.splitlines()]
    return next((line[1] for line in lines if line[0] == "hostname" and len(line) == 2), "")
