"""Calls Bazel, and again without the caches if one of them has ended the first call.

code, outcome = run(command, root, options, os.environ)
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bazel.pybuild import files, notices
from bazel.pybuild.cache import folders
from bazel.pybuild.call.command import Command
from bazel.pybuild.call.process import child
from bazel.pybuild.options import Options
from bazel.pybuild.variables import without_secrets

if TYPE_CHECKING:
    from bazel.pybuild.call.events import Outcome

# Bazel's exit codes for errors of remote caches, for its own crash, and for results that a remote
# cache has lost. Debian's Bazel 4 crashes when it uses TLS.
_OF_REMOTE_CACHES = (32, 34, 37, 39)


def run(
    command: Command,
    root: Path,
    options: Options,
    environ: Mapping[str, str],
    meanwhile: Callable[[], None] = lambda: None,
) -> "tuple[int, Outcome]":
    """Calls Bazel; a second time without the caches if one of them has ended the first call.

    Args:
      command: to run.
      root: of the tree.
      options: from the environment.
      environ: usually os.environ.
      meanwhile: called while Bazel works.

    Returns:
      The exit code of the last call, and what all calls did.

    Raises:
      KeyboardInterrupt: as of process.child.
    """
    code, outcome = _call(command, root, environ, meanwhile)
    lost = bool(command.caching) and code in _OF_REMOTE_CACHES
    if lost or (code != 0 and outcome.incomplete):
        if lost:
            complain(f"was switched off during the build: Bazel failed with exit code {code}")
        else:
            notices.defer_line(
                "torch_xla_lite: a cache has incomplete results, so none was used; to delete the "
                "disk cache:  torch-xla-lite cache --clear"
            )
        code, rest = _call(command.without_caches(), root, environ)
        outcome = rest.after(outcome)
    if outcome.ran:
        _check_space(options, environ)
    return code, outcome


def caching(options: Options) -> list[str]:
    """Bazel's options for the remote cache; none if the server cannot be used now."""
    if options.remote_cache is None:
        return []
    from bazel.pybuild.cache import remote_cache

    flags, said = remote_cache.flags(options)
    if said:
        complain(said)
    return flags


def complain(text: str) -> None:
    """Defers a message about the remote cache."""
    notices.defer_detail("torch_xla_lite: the remote cache", text)


def _check_space(options: Options, environ: Mapping[str, str]) -> None:
    """Bazel's own warning calls the disk cache `Remote Cache`, and does not name its folder."""
    folder = folders.disk_cache(options, environ)
    if folder is not None and files.is_full(folder):
        notices.defer_line(
            f"torch_xla_lite: the disk cache did not store all results, because there is no space "
            f"left in {folder}. Free some, or delete it:  torch-xla-lite cache --clear"
        )


def _call(
    command: Command,
    root: Path,
    environ: Mapping[str, str],
    meanwhile: Callable[[], None] = lambda: None,
) -> "tuple[int, Outcome]":
    """Calls Bazel; returns its exit code, and what it did.

    Bazel writes all variables and options to its event file; so it gets no variable with
    credentials, and options with credentials make the file private.
    """
    for file in command.written:
        file.parent.mkdir(parents=True, exist_ok=True)
        # A file of an earlier build.
        file.unlink(missing_ok=True)
    if command.written and command.caching:
        command.written[0].touch(0o600)
    with child(command.arguments, root, without_secrets(environ)) as process:
        from bazel.pybuild.call import events

        meanwhile()
    return process.returncode, events.read(command.targets, *command.written)
