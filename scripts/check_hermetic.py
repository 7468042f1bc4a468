#!/usr/bin/env python3
"""Checks that no action of a build uses the network or reads files that are not its inputs.

    python scripts/check_hermetic.py                                # all targets
    python scripts/check_hermetic.py //torch_xla_lite/csrc/ir/...   # some targets

Everything is built with --config=ci, in sandboxes and without a cache, and strace records the files
that the actions open. A sandbox hides undeclared files of this tree and of the external
repositories, but not the rest of the machine: an action fails the check if it opens or runs a file
by its path below /usr/local, HOME, the Python environment or this tree, or if it opens a socket of
the internet. The interpreter and its standard library may be read: its hash is an input.

Each finding is one line: the path, and the action. Exit code: 0 without findings, 1 with some, 2 if
the build or strace failed.
"""

import argparse
import collections
import functools
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

_TRACE = (
    "strace",
    "-f",
    "-q",
    "-y",
    "-Y",
    "-z",
    "--seccomp-bpf",
    "-s",
    "4096",
    "-e",
    "signal=none",
)
_CALLS = "open,openat,openat2,execve,socket"
_FORBIDDEN = (Path("/usr/local"), Path.home(), Path(sys.prefix), ROOT)

# Not //..., which has Bazel 4 follow the links that a build with other startup options made here.
_FOLDERS = ("bazel", "scripts", "test", "third_party", "torch_xla_lite")
_ALL = ("//:all", *(f"//{folder}/..." for folder in _FOLDERS))

# A process of an action works in the folder of its sandbox, whose number identifies the action.
_SANDBOX = re.compile(r"AT_FDCWD<[^>]*/sandbox/linux-sandbox/(\d+)/execroot")
_START = re.compile(r'execve\("[^"]*/linux-sandbox", .*?/sandbox/linux-sandbox/(\d+)/execroot')
_PATH = re.compile(r'(?:open|execve)\w*\((?:AT_FDCWD<[^>]*>, )?"(/[^"]*)"')
_COMMAND = re.compile(r'"--", (.*)\], 0x')
_INTERNET = re.compile(r"socket\(AF_INET6?,")


class Finding(NamedTuple):
    """Something that an action must not use.

    Attributes:
      what: a path, or "network".
      action: the command line.
    """

    what: str
    action: str


def findings(trace: Iterable[str]) -> Iterator[Finding]:
    """What the actions of a build used and must not, from the lines that strace wrote."""
    sandboxes: dict[str, str] = {}
    commands: dict[str, str] = {}
    used: dict[str, set[str]] = collections.defaultdict(set)
    found: set[Finding] = set()

    def end(process: str) -> None:
        things, sandbox = used.pop(process, set()), sandboxes.pop(process, None)
        # Without one it is a process of Bazel's server.
        if sandbox is not None:
            found.update(Finding(what, commands.get(sandbox, "?")) for what in things)

    for line in trace:
        process, _, rest = line.partition("<")
        program, _, call = rest.partition("> ")
        # The next process may get the same number.
        if call.startswith("+++ "):
            end(process)
        if start := _START.match(call):
            command = _COMMAND.search(call)
            commands[start[1]] = " ".join(re.findall(r'"([^"]*)"', command[1])) if command else "?"
        if in_sandbox := _SANDBOX.search(call):
            sandboxes[process] = in_sandbox[1]
        path = _PATH.search(call)
        if path and _is_forbidden(Path(path[1])):
            used[process].add(path[1])
        # A sandbox starts its loopback device.
        if _INTERNET.search(call) and program != "linux-sandbox":
            used[process].add("network")
    for process in list(used):
        end(process)
    yield from sorted(found)


def _is_forbidden(path: Path) -> bool:
    within = any(map(path.is_relative_to, _FORBIDDEN)) and "/sandbox/" not in str(path)
    return within and not any(map(path.is_relative_to, _allowed()))


@functools.cache
def _allowed() -> list[Path]:
    allowed = [Path(sys.base_prefix, "lib"), Path(sys.base_prefix, "bin")]
    settings = ROOT / ".bazelrc.generated"
    toolkit = settings.exists() and re.search(r"_CUDA_HOME=([^'\n]+)", settings.read_text())
    if toolkit:
        # nvcc opens headers by their real paths; bazel/nvcc.sh refuses those that are no inputs.
        allowed.append(Path(toolkit[1]).resolve() / "include")
    return allowed


def trace(bazel: str, folder: Path, targets: Iterable[str]) -> Path:
    """Builds targets, and returns the file that strace wrote.

    Raises:
      subprocess.CalledProcessError: strace or Bazel failed.
    """
    file = folder / "trace"
    command = [
        *_TRACE,
        *("-e", f"trace={_CALLS}", "-o", str(file), bazel),
        *(f"--output_user_root={folder / 'bazel'}", "--max_idle_secs=5", "build", "--config=ci"),
        *("--disk_cache=", "--remote_cache=", "--spawn_strategy=linux-sandbox", *targets),
    ]
    # strace ends with the last process, which is Bazel's server.
    subprocess.run(command, cwd=ROOT, check=True, stdout=2)
    return file


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", default=_ALL, help="default: all")
    parser.add_argument("--bazel", default=shutil.which("bazelisk") or "bazel")
    arguments = parser.parse_args()
    if not shutil.which("strace"):
        print(
            "error: strace is not installed.\nInstall it:  apt-get install strace", file=sys.stderr
        )
        return 2
    # Not below HOME, whose files actions must not open.
    with tempfile.TemporaryDirectory(prefix="hermetic-", dir="/var/tmp") as folder:
        try:
            with trace(arguments.bazel, Path(folder), arguments.targets).open() as lines:
                found = list(findings(lines))
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        finally:
            # Bazel removes the permission to write from some folders.
            subprocess.run(["chmod", "-R", "u+w", f"{folder}/bazel"], check=False)
    for finding in found:
        print(f"{finding.what}    {finding.action[:300]}")
    print(f"{len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
