"""What went wrong in a call of Bazel: its exit code as an error with a remedy."""

import os
import shlex
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from bazel.pybuild.call.command import Command
from bazel.pybuild.call.process import INTERRUPTED
from bazel.pybuild.errors import AS_BEFORE, BuildError
from bazel.pybuild.machine import find_bazel

# Bazel's exit code if the server has crashed or was killed.
_SERVER_ENDED = 37
_FULL_BELOW = 1 << 20


def of(
    root: Path,
    bazel: Path,
    command: Command,
    code: int,
    exit_name: str,
    environ: Mapping[str, str],
) -> BuildError | KeyboardInterrupt:
    """The error for a Bazel that failed.

    Args:
      root: of the tree.
      bazel: the program.
      command: that failed.
      code: its exit code.
      exit_name: as of events.Outcome.
      environ: usually os.environ.
    """
    # The signal ends a client that has not reached its server.
    if exit_name == "INTERRUPTED" or code in (INTERRUPTED, -signal.SIGINT):
        return KeyboardInterrupt(AS_BEFORE)
    if exit_name == "COMMAND_LINE_ERROR" or code == 2:
        return BuildError(
            "Bazel rejects its command line; it says above why.",
            "Your own options are in TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS, "
            "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS and .bazelrc.user. The command was:\n"
            f"  {shlex.join(command.arguments)}",
        )
    if code == _SERVER_ENDED:
        return BuildError(
            f"Bazel's server ended during the build.\n{AS_BEFORE}",
            "Build again:  python setup.py develop",
        )
    events = command.written[0]
    if not exit_name and not (events.exists() and events.stat().st_size):
        return find_bazel.cannot_start(bazel, command.arguments, root)
    if full := _full_disk(root, environ):
        # Programs whose messages find no space end without a message.
        return BuildError(
            f"No space left on device: {full}\n{AS_BEFORE}",
            "Free some space there, then build again:  python setup.py develop",
        )
    reason = f"{exit_name}, exit code {code}" if exit_name else f"exit code {code}"
    return BuildError(
        f"Bazel could not build {' '.join(command.targets)} ({reason}); it says above why.\n"
        f"{AS_BEFORE}",
        "To see every command that it runs:  VERBOSE=1 python setup.py develop",
    )


def _full_disk(root: Path, environ: Mapping[str, str]) -> Path | None:
    """The first folder that the build writes to and that has no space left."""
    # As Bazel chooses for actions; tempfile.gettempdir() skips a full folder.
    temporary = Path(environ.get("TMPDIR") or "/tmp")
    for folder in (root, root / "bazel-out", temporary):
        with suppress(OSError):
            space = os.statvfs(folder)
            if space.f_bavail * space.f_frsize < _FULL_BELOW:
                return folder.resolve()
    return None
