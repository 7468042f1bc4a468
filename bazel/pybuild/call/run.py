"""Calls Bazel, with the remote cache only as long as its server answers.

code, outcome = run(command, root, options, os.environ)

A call that a silent or damaged cache has ended is repeated without it. One line at the end of the
command says what was wrong with the caches.
"""

import functools
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bazel.pybuild import notices
from bazel.pybuild.call.command import Command
from bazel.pybuild.call.process import child
from bazel.pybuild.options import Options, checksums
from bazel.pybuild.variables import without_secrets

if TYPE_CHECKING:
    from bazel.pybuild.call.events import Outcome


def run(
    command: Command,
    root: Path,
    options: Options,
    environ: Mapping[str, str],
    meanwhile: Callable[[], None] = lambda: None,
) -> "tuple[int, Outcome]":
    """Calls Bazel; a second time if a cache that is silent or damaged has ended the first call.

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
    code, outcome, problem = _call(command, root, options, environ, meanwhile)
    if problem and code != 0:
        complain(f"was switched off during the build: {problem}")
        command = command.without_cache()
        code, rest, _ = _call(command, root, options, environ)
        outcome = rest.after(outcome)
    if code != 0 and outcome.incomplete:
        code, rest, _ = _call(command.without_results(), root, options, environ)
        outcome = rest.after(outcome)
    _after_warnings(outcome, root, options, environ)
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
    notices.defer(text, about="torch_xla_lite: the remote cache")


def _after_warnings(
    outcome: "Outcome", root: Path, options: Options, environ: Mapping[str, str]
) -> None:
    """Says in one line what was wrong with the caches, and repairs the disk cache."""
    if outcome.unread or outcome.incomplete:
        from bazel.pybuild.cache import disk_cache, folders

        folder = folders.disk_cache(options, environ)
        repaired = disk_cache.repair(folder, outcome.made, root) if folder else []
        if repaired:
            notices.defer(
                f"torch_xla_lite: the disk cache had {len(repaired)} damaged files, which were "
                f"replaced or removed, such as {repaired[0]}"
            )
        elif outcome.unread:
            from bazel.pybuild.cache import remote_cache

            advice = remote_cache.advice(options)
            complain(f"has results that cannot be used: {outcome.unread[0]}{advice}")
        else:
            notices.defer("torch_xla_lite: a cache has incomplete results, so none was used")
    if outcome.unwritten:
        complain(f"did not store all results: {outcome.unwritten[0]}")


def _call(
    command: Command,
    root: Path,
    options: Options,
    environ: Mapping[str, str],
    meanwhile: Callable[[], None] = lambda: None,
) -> "tuple[int, Outcome, str]":
    """Calls Bazel.

    Bazel writes all variables and options to its event file; so it gets no variable with
    credentials, and options with credentials make the file private.

    Returns:
      The exit code, what Bazel did, and why the remote cache cannot be used any more; empty if it
      can.
    """
    for file in command.written:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Of an earlier build.
        file.unlink(missing_ok=True)
    if command.written and command.caching:
        command.written[0].touch(0o600)
    watch = None
    if options.remote_cache is not None:
        from bazel.pybuild.cache import remote_cache

        watch = remote_cache.Watch(options)
    # The watch sends SIGINT, which bazelisk does not pass on to Bazel.
    group, private = bool(command.caching), without_secrets(environ)
    arguments, filtered = command.arguments, command.filtered
    try:
        with child(arguments, root, private, filtered=filtered, group=group) as process:
            if watch is not None and command.caching:
                watch.start(functools.partial(os.killpg, process.pid, signal.SIGINT))
            from bazel.pybuild.call import events

            meanwhile()
    except KeyboardInterrupt:
        from bazel.pybuild.why import causes, execution_log

        with notices.of_errors():
            for log in command.written[1:2]:
                causes.remember(execution_log.read(log), checksums(environ), root)
        raise
    finally:
        if watch is not None:
            watch.stop()
            remote_cache.redact(command.written[:1], root)
    outcome = events.read(command.targets, *command.written)
    uses_cache = watch is not None and command.caching
    return process.returncode, outcome, watch.problem(process.returncode) if uses_cache else ""
