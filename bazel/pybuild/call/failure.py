"""What went wrong in a call of Bazel: its exit code as an error with a remedy."""

import shlex
import signal
from collections.abc import Mapping
from pathlib import Path

from bazel.pybuild import files
from bazel.pybuild.call.command import Command
from bazel.pybuild.call.process import INTERRUPTED
from bazel.pybuild.errors import AS_BEFORE, BuildError
from bazel.pybuild.machine import find_bazel
from bazel.pybuild.options import Options

# Bazel's exit code if the server has crashed or was killed.
_SERVER_ENDED = 37
# Those for servers of remote caches, of remote execution and of build events.
_SERVICES = (32, 34, 38, 39, 45)


def of(
    root: Path,
    bazel: Path,
    command: Command,
    code: int,
    exit_name: str,
    options: Options,
    environ: Mapping[str, str],
) -> BuildError | KeyboardInterrupt:
    """The error for a Bazel that failed.

    Args:
      root: of the tree.
      bazel: the program.
      command: that failed.
      code: its exit code.
      exit_name: as of events.Outcome.
      options: from the environment.
      environ: usually os.environ.
    """
    # The signal ends a client that has not reached its server.
    if exit_name == "INTERRUPTED" or code in (INTERRUPTED, -signal.SIGINT):
        return KeyboardInterrupt(AS_BEFORE)
    if exit_name == "COMMAND_LINE_ERROR" or code == 2:
        return BuildError(
            "Bazel rejects its command line; it says above why.",
            f"{_own_options(root, options)}The command was:\n  {shlex.join(command.arguments)}",
        )
    if code in _SERVICES and not command.caching:
        return BuildError(
            f"A server that Bazel is told to use does not work ({exit_name}, exit code {code}); it "
            f"says above why.\n{AS_BEFORE}",
            f"{_own_options(root, options)}Correct or remove it, and build again.",
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


def _own_options(root: Path, options: Options) -> str:
    """Where the user has options for Bazel, as a sentence; empty for none."""
    places = ["TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS"] if options.startup_options else []
    places += ["TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS"] if options.build_options else []
    places += map(str, find_bazel.rc_files_of_user(root))
    return f"Your options are in {' and '.join(places)}. " if places else ""


def _full_disk(root: Path, environ: Mapping[str, str]) -> Path | None:
    """The first folder that the build writes to and that has no space left."""
    # As Bazel chooses for actions; tempfile.gettempdir() skips a full folder.
    temporary = Path(environ.get("TMPDIR") or "/tmp")
    places = (root, root / "bazel-out", temporary)
    return next((folder.resolve() for folder in places if files.is_full(folder)), None)
