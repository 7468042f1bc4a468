"""Runs a cache server for Bazel on this machine: nginx, by HTTP.

    python scripts/cache_server.py start /srv/cache      # http://127.0.0.1:9090
    python scripts/cache_server.py status /srv/cache     # address and size
    python scripts/cache_server.py prune /srv/cache --size 10G --verify
    python scripts/cache_server.py stop /srv/cache

The folder holds all that the server has: entries, configuration, logs, the numbers of its processes
and the files `read-token` and `write-token`, which `start` makes if they are missing. nginx checks
the tokens: the read token can read, the write token can read and write. docs/cache.md describes
what a build needs to use it, and other servers, some of which speak gRPC.

Needs nginx (Debian: nginx-light).

Exit status: 0; 1 if the server could not be started or stopped, or does not run (status); 2 for a
wrong command line. Messages go to standard error, the output of `status` is JSON.
"""

import argparse
import hashlib
import json
import os
import pwd
import re
import secrets
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_START_S = 60
_STOP_S = 10
# In the order in which they are ended.
_PROCESSES = ("prune", "nginx")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

_NGINX = """\
# Written by scripts/cache_server.py.
{user}
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
worker_processes 2;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  log_not_found off;
  client_max_body_size 0;
  client_body_temp_path {folder}/temporary;
  proxy_temp_path {folder}/temporary;
  fastcgi_temp_path {folder}/temporary;
  uwsgi_temp_path {folder}/temporary;
  scgi_temp_path {folder}/temporary;

  # Who asks. The value of the header is compared as a whole.
  map_hash_bucket_size 512;
  map $http_authorization $role {{
    default {anonymous};
    "Bearer {read_token}" reader;
    "Bearer {write_token}" writer;
  }}
  # What is asked for. Every request that is not listed needs the write token.
  map "$request_method $uri" $changes {{
    default yes;
    "~^(GET|HEAD) " no;
  }}
  map "$role $changes" $refusal {{
    default 401;
    "reader no" "";
    "reader yes" 403;
    "~^writer" "";
  }}

  # A file appears under its name when it is complete: nginx renames it.
  server {{
    listen {listen};
{tls}
    root {folder}/entries;
    if ($refusal = 401) {{ return 401; }}
    if ($refusal = 403) {{ return 403; }}
    location ~ "^/(ac|cas)/[0-9a-f]{{64}}$" {{
      dav_methods PUT;
      create_full_put_path on;
      dav_access user:rw;
    }}
    location / {{ return 404; }}
  }}
}}
"""


class Failure(Exception):
    """What is wrong, and what the user can do."""


def main() -> int:
    arguments = _parser().parse_args()
    folder = arguments.folder.resolve()
    try:
        return arguments.command(folder, arguments)
    except (Failure, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, function: object, explanation: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=explanation, description=explanation)
        added.add_argument("folder", type=Path, metavar="FOLDER", help="of the server")
        added.set_defaults(command=function)
        return added

    start = command("start", _start, "Starts the server, which goes on in the background.")
    start.add_argument("--address", default="127.0.0.1", help="default: %(default)s")
    start.add_argument("--port", type=int, default=9090, help="default: %(default)s; 0: a free one")
    start.add_argument("--size", type=_size, default="10G", help="limit; default: %(default)s")
    start.add_argument("--every", type=float, default=600, help="seconds between two prunes")
    start.add_argument("--certificate", type=Path, help="PEM file with the chain; switches TLS on")
    start.add_argument("--key", type=Path, help="PEM file with the certificate's private key")
    start.add_argument(
        "--public-read", action="store_true", help="everybody may read, without a token"
    )
    command("stop", _stop, "Stops the server; its entries stay.")
    command("status", _status, "Prints whether it runs, its address and size as JSON.")
    prune = command("prune", _prune, "Removes the entries that were not used for the longest time.")
    prune.add_argument("--size", type=_size, help="limit; default: the one of `start`")
    prune.add_argument(
        "--verify", action="store_true", help="also removes blobs whose content is not their name's"
    )
    prune.add_argument("--every", type=float, help="repeats it after so many seconds, for ever")
    return parser


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+)([KMGT]?)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text} is not a size such as 500M or 10G")
    return int(found[1]) * _UNITS[found[2]]


# Commands.


def _start(folder: Path, arguments: argparse.Namespace) -> int:
    if _pids(folder):
        raise Failure(f"A server runs in {folder}.\nStop it:  {sys.argv[0]} stop {folder}")
    if bool(arguments.certificate) != bool(arguments.key):
        raise Failure("TLS needs both --certificate and --key.")
    nginx = _program("nginx", "Install it:  sudo apt-get install nginx-light")
    # A server that was killed leaves parts of uploads.
    shutil.rmtree(folder / "temporary", ignore_errors=True)
    for place in (folder, folder / "entries", folder / "temporary"):
        place.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    port = arguments.port or _free_port(arguments.address)
    scheme = "https" if arguments.certificate else "http"
    url = f"{scheme}://{arguments.address}:{port}"
    _write(folder / "server.json", json.dumps({"url": url, "limit": arguments.size}))
    _write(folder / "nginx.conf", _nginx(folder, arguments, port))
    # A crash of the machine leaves files that are cut off.
    _report(_remove_damaged(folder), "damaged blobs")
    try:
        command = [nginx, "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log"]
        process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if process.returncode:
            raise Failure(f"nginx does not start:\n{process.stderr.strip()}")
        _until((folder / "nginx.pid").exists, folder / "error.log")
        prune = [
            sys.executable,
            Path(__file__).resolve(),
            "prune",
            folder,
            "--every",
            arguments.every,
        ]
        _background(folder, "prune", prune)
    except BaseException:
        _stop(folder, arguments)
        raise
    print(f"cache server: {url}; the tokens are in {folder}/*-token", file=sys.stderr)
    return 0


def _stop(folder: Path, arguments: argparse.Namespace) -> int:
    for pid in _pids(folder).values():
        _end(pid)
    for name in _PROCESSES:
        (folder / f"{name}.pid").unlink(missing_ok=True)
    return 0


def _end(pid: int) -> None:
    """Ends a process, and waits until all of its threads have ended."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        for number, seconds in ((signal.SIGTERM, _STOP_S), (signal.SIGKILL, None)):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, number)
            # It can be read when the process has ended.
            if select.select([process], [], [], seconds)[0]:
                return
    finally:
        os.close(process)


def _status(folder: Path, arguments: argparse.Namespace) -> int:
    running = "nginx" in _pids(folder)
    entries = list(_entries(folder))
    size = sum(entry.size for entry in entries)
    state = {"running": running, **_settings(folder), "bytes": size, "files": len(entries)}
    print(json.dumps(state, indent=1))
    return 0 if running else 1


def _prune(folder: Path, arguments: argparse.Namespace) -> int:
    while True:
        if arguments.verify:
            _report(_remove_damaged(folder), "damaged blobs")
        limit = _settings(folder)["limit"] if arguments.size is None else arguments.size
        _report(_remove_oldest(folder, limit), "files that were not used for the longest time")
        if not arguments.every:
            return 0
        time.sleep(arguments.every)


def _report(removed: int, what: str) -> None:
    if removed:
        print(f"removed {removed} {what}", file=sys.stderr, flush=True)


# Entries.


class _Entry(NamedTuple):
    """A file of the cache; the time is that of its last use, in seconds since 1970."""

    used: float
    size: int
    path: Path


def _entries(folder: Path) -> Iterator[_Entry]:
    for path in (folder / "entries").rglob("*"):
        # Another process may remove it meanwhile.
        with suppress(FileNotFoundError):
            status = path.stat()
            if stat.S_ISREG(status.st_mode):
                yield _Entry(max(status.st_atime, status.st_mtime), status.st_size, path)


def _remove_oldest(folder: Path, limit: int) -> int:
    entries = sorted(_entries(folder))
    size = sum(entry.size for entry in entries)
    removed = 0
    for entry in entries:
        if size <= limit:
            break
        entry.path.unlink(missing_ok=True)
        size -= entry.size
        removed += 1
    return removed


def _remove_damaged(folder: Path) -> int:
    """Removes blobs whose content has not the hash that is their name."""
    removed = 0
    for entry in _entries(folder):
        name = entry.path.name
        if entry.path.parent.name != "cas" or not re.fullmatch("[0-9a-f]{64}", name):
            continue
        with suppress(FileNotFoundError):
            # Reading it is not a use of it.
            status = entry.path.stat()
            with entry.path.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
            if content == name:
                os.utime(entry.path, ns=(status.st_atime_ns, status.st_mtime_ns))
            else:
                entry.path.unlink()
                removed += 1
    return removed


# Configuration and processes.


def _nginx(folder: Path, arguments: argparse.Namespace, port: int) -> str:
    tls = ""
    if arguments.certificate:
        tls = (
            f"    ssl_certificate {arguments.certificate.resolve()};\n"
            f"    ssl_certificate_key {arguments.key.resolve()};"
        )
    listen = f"{arguments.address}:{port}{' ssl' if tls else ''}"
    return _NGINX.format(
        # Processes of root would become another user, who may not read this folder.
        user=f"user {pwd.getpwuid(0).pw_name};" if os.getuid() == 0 else "",
        folder=folder,
        anonymous="reader" if arguments.public_read else "nobody",
        read_token=_token(folder / "read-token"),
        write_token=_token(folder / "write-token"),
        listen=listen,
        tls=tls,
    )


def _token(file: Path) -> str:
    if not file.exists():
        _write(file, secrets.token_urlsafe(32) + "\n")
    token = file.read_text().strip()
    # Nothing that has a meaning in nginx's configuration.
    if not re.fullmatch(r"[\w.~+/-]+=*", token, re.ASCII):
        raise Failure(f"{file} must contain letters, digits and -._~+/ only.")
    return token


def _settings(folder: Path) -> dict[str, object]:
    try:
        return json.loads((folder / "server.json").read_text())
    except FileNotFoundError:
        raise Failure(f"There is no server in {folder}.") from None


def _write(file: Path, text: str) -> None:
    file.unlink(missing_ok=True)
    file.touch(0o600)
    file.write_text(text)


def _program(name: str, remedy: str) -> str:
    # Debian's servers are in a folder that is not on every user's PATH.
    found = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if found is None:
        raise Failure(f"{name} is not a program that can be run.\n{remedy}")
    return found


def _background(folder: Path, name: str, command: Sequence[str | Path | float]) -> None:
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    _write(folder / f"{name}.pid", str(process.pid))


def _pids(folder: Path) -> dict[str, int]:
    """The processes of the server that run."""
    found = {}
    for name in _PROCESSES:
        # A number may meanwhile belong to another process.
        with suppress(OSError, ValueError):
            pid = int((folder / f"{name}.pid").read_text())
            if os.fsencode(folder) in Path(f"/proc/{pid}/cmdline").read_bytes():
                found[name] = pid
    return found


def _until(happened: Callable[[], bool], log: Path) -> None:
    """Waits until the server has started."""
    end = time.monotonic() + _START_S
    while not happened():
        if time.monotonic() > end:
            raise Failure(f"The server does not answer after {_START_S} s; see {log}.")
        time.sleep(0.02)


def _free_port(address: str) -> int:
    with socket.socket() as unused:
        unused.bind((address, 0))
        return unused.getsockname()[1]


if __name__ == "__main__":
    sys.exit(main())
