"""Configures the tree, calls Bazel and installs the built files into the package.

    report = build(root, options, os.environ)

Until everything is built and checked, nothing in the package changes.
"""

import functools
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bazel.pybuild import lock, notices
from bazel.pybuild.errors import BuildError
from bazel.pybuild.invocation import invoke
from bazel.pybuild.machine import configure, cuda, find_bazel
from bazel.pybuild.options import Options, WheelKind, checksums

if TYPE_CHECKING:
    from bazel.pybuild.invocation.events import Outcome, Output
    from bazel.pybuild.invocation.explain import Action
    from bazel.pybuild.invocation.report import Report

_AS_BEFORE = "The installed files have not changed."
# Bazel's exit code if the server has crashed or was killed.
_SERVER_ENDED = 37
_FULL_BELOW = 1 << 20
# As in PyTorch's setup.py.
_ADVICE = """\
+-----------------------------------------------------------------------------------+
| This is a build for 64-bit ARM with CUDA. Programs may run faster when the linker |
| places the functions that run most side by side. Only linking is repeated:        |
|     USE_PRIORITIZED_TEXT_FOR_LD=1 python setup.py develop                         |
| To build without it and without this advice:                                      |
|     USE_PRIORITIZED_TEXT_FOR_LD=0                                                 |
+-----------------------------------------------------------------------------------+"""


def build(
    root: Path,
    options: Options,
    environ: Mapping[str, str],
    *,
    into: Path | None = None,
    since: float | None = None,
    configured: configure.State | None = None,
) -> "Report":
    """Builds and installs.

    Args:
      root: of the tree.
      options: from the environment.
      environ: usually os.environ.
      into: folder to write the package's files to, with the public headers; None for the tree.
      since: time.perf_counter() when the command began; None for now.
      configured: what configure.ensure has returned for these options; None to call it.

    Returns:
      The report, which is also in build/report.json.

    Raises:
      BuildError: the build failed; the package is as it was.
      KeyboardInterrupt: its message says whether the package changed.
    """
    since = time.perf_counter() if since is None else since
    if into is None and options.wheel_kind is not WheelKind.ALL:
        raise _half_a_package(options.wheel_kind)
    if into is None and (ignored := _only_for_wheels(options)):
        notices.defer(f"torch_xla_lite: only wheels use {ignored}")
    bazel = find_bazel.find(options.bazel, environ.get("PATH", os.defpath))
    with lock.exclusive(root, wait=options.waits):
        try:
            state = configured
            # Another command may have configured the tree meanwhile.
            if state is None or state != configure.read(root):
                state = configure.ensure(root, bazel, options, environ)
            _print_once(f"torch_xla_lite: CUDA {state.cuda}")
            if state.has_cuda and options.prioritized_text is None:
                notices.defer(_ADVICE)
            if options.wheel_kind is WheelKind.PYTHON:
                _check_library(root, options, cuda.inspect(options, environ))
            command = invoke.build_command(
                bazel,
                options,
                root / "build",
                headers=into is not None,
                cuda=state.has_cuda,
                caching=_caching(options),
            )
            code, outcome = _run(command, root, options, environ)
            from bazel.pybuild.install import outputs
            from bazel.pybuild.invocation import last_build, report

            succeeded = code == 0 and bool(outcome.outputs)
            check = functools.partial(_verify, outcome.outputs, root)
            changed = {}
            if succeeded and into is None:
                changed = outputs.install(outcome.outputs, root, check)
            elif succeeded:
                check(list(outcome.outputs))
                changed = outputs.copy(outcome.outputs, into)
        except KeyboardInterrupt as interrupt:
            raise KeyboardInterrupt(str(interrupt) or _AS_BEFORE) from None
        variables = checksums(environ)
        actions: Sequence[Action] = ()
        with _errors_are_notices():
            actions = _explain(outcome, variables, root)
        wall = time.perf_counter() - since
        done = report.Report(succeeded, wall, outcome, changed, state.cuda, actions, variables)
        with _errors_are_notices(stale=root / last_build.FILE):
            report.write(done, root)
    if not succeeded:
        if outcome.exit_name:
            print(done.line(), flush=True)
        raise _failure(root, bazel, command, code, outcome.exit_name, environ)
    return done


@functools.cache
def _print_once(line: str) -> None:
    """For a line that `develop --watch` does not repeat."""
    print(line, flush=True)


def _caching(options: Options) -> list[str]:
    """Bazel's options for the remote cache; none if the server cannot be used now."""
    if options.remote_cache is None:
        return []
    from bazel.pybuild.machine import remote_cache

    flags, said = remote_cache.flags(options)
    if said:
        _complain(said)
    return flags


def _complain(text: str) -> None:
    notices.defer(text, about="torch_xla_lite: the remote cache")


def _run(
    command: invoke.Command, root: Path, options: Options, environ: Mapping[str, str]
) -> "tuple[int, Outcome]":
    """Calls Bazel; a second time if a cache that is silent or damaged has ended the first call.

    Returns:
      The exit code of the last call, and what all calls did.
    """
    code, outcome, problem = _call(command, root, options, environ)
    if problem and code != 0:
        _complain(f"was not used to the end: {problem}")
        command = command.without_cache()
        code, rest, _ = _call(command, root, options, environ)
        outcome = rest.after(outcome)
    if code != 0 and outcome.incomplete:
        code, rest, _ = _call(command.without_results(), root, options, environ)
        outcome = rest.after(outcome)
    _after_warnings(outcome, root, options, environ)
    return code, outcome


def _after_warnings(
    outcome: "Outcome", root: Path, options: Options, environ: Mapping[str, str]
) -> None:
    """Says in one line what was wrong with the caches, and repairs the disk cache."""
    if outcome.unread or outcome.incomplete:
        from bazel.pybuild.machine import disk_cache

        folder = configure.disk_cache(options, environ)
        repaired = disk_cache.repair(folder, outcome.made, root) if folder else []
        if repaired:
            notices.defer(
                f"torch_xla_lite: the disk cache had {len(repaired)} damaged files, which were "
                f"replaced or removed, such as {repaired[0]}"
            )
        elif outcome.unread:
            from bazel.pybuild.machine import remote_cache

            advice = remote_cache.advice(options)
            _complain(f"has results that cannot be used: {outcome.unread[0]}{advice}")
        else:
            notices.defer("torch_xla_lite: a cache has incomplete results, so none was used")
    if outcome.unwritten:
        _complain(f"did not store all results: {outcome.unwritten[0]}")


def _call(
    command: invoke.Command, root: Path, options: Options, environ: Mapping[str, str]
) -> "tuple[int, Outcome, str]":
    """Calls Bazel.

    Returns:
      The exit code, what Bazel did, and why the remote cache cannot be used any more; empty if it
      can.
    """
    watch = None
    if options.remote_cache is not None:
        from bazel.pybuild.machine import remote_cache

        watch = remote_cache.Watch(options)
    try:
        with invoke.started(command, root) as process:
            if watch is not None and command.caching:
                watch.start(functools.partial(os.killpg, process.pid, signal.SIGINT))
            # These imports take 24 ms, while Bazel works.
            from bazel.pybuild.install import outputs  # noqa: F401
            from bazel.pybuild.invocation import events, report  # noqa: F401
    except KeyboardInterrupt:
        from bazel.pybuild.invocation import execution_log, explain

        with _errors_are_notices():
            explain.remember(execution_log.read(command.log), checksums(environ), root)
        raise
    finally:
        if watch is not None:
            watch.stop()
            remote_cache.redact(command.events, root)
    outcome = events.read(command.events, command.log, command.targets, command.profile)
    if watch is None or not command.caching:
        return process.returncode, outcome, ""
    return process.returncode, outcome, watch.problem(process.returncode)


@contextmanager
def _errors_are_notices(stale: Path | None = None) -> Iterator[None]:
    """Defers an OSError, as of a full disk: the block writes what only `explain` reads. The file of
    an earlier build, which would seem to be of this one, is removed."""
    try:
        yield
    except OSError as error:
        if stale is not None:
            with suppress(OSError):
                stale.unlink()
        notices.defer(f"torch_xla_lite: `setup.py explain` does not know this build: {error}")


def _explain(outcome: "Outcome", variables: Mapping[str, int], root: Path) -> "Sequence[Action]":
    if not outcome.spawns:
        return ()
    # Imported only when an action ran.
    from bazel.pybuild.invocation import explain, last_build

    return explain.explain(outcome, variables, last_build.variables(root), root)


def _verify(built: "Sequence[Output]", root: Path, changed: "list[Output]") -> None:
    # Imported only when files have changed.
    from bazel.pybuild.install import verify

    verify.check(changed, built, root)


def _half_a_package(kind: WheelKind) -> BuildError:
    variable = "BUILD_LIB_WHL" if kind is WheelKind.LIBRARY else "BUILD_PYTHON_ONLY"
    return BuildError(
        f"{variable}=1 makes one half of the package, and the package in this tree needs both.",
        f"Make a wheel of it:  {variable}=1 python setup.py bdist_wheel\n"
        f"or unset it:  unset {variable}",
    )


def _only_for_wheels(options: Options) -> str:
    """The variables that are set and have no effect on the package in the tree."""
    names = {
        "TORCH_XLA_LITE_BUILD_NUMBER": options.build_number,
        "TORCH_XLA_LITE_DEBUG_FILES": options.debug_files,
    }
    return " and ".join(name for name, value in names.items() if value)


def _check_library(root: Path, options: Options, gpu: cuda.Cuda) -> None:
    """Checks the installed library that a wheel without libraries is linked to."""
    from bazel.pybuild.dist import metadata
    from bazel.pybuild.machine import packages, preflight

    found = packages.installed([packages.LIBRARY], packages.search_path())
    wanted = metadata.for_wheel(root, options, gpu.version).version
    preflight.check_library(wanted, found.get(packages.LIBRARY))


def _failure(
    root: Path,
    bazel: find_bazel.Bazel,
    command: invoke.Command,
    code: int,
    exit_name: str,
    environ: Mapping[str, str],
) -> BuildError | KeyboardInterrupt:
    """The error for a Bazel that failed."""
    import shlex

    command_line = shlex.join(command.arguments)
    # 8 is Bazel's exit code; the signal ends a client that has not reached its server.
    if exit_name == "INTERRUPTED" or code in (8, -signal.SIGINT):
        return KeyboardInterrupt(_AS_BEFORE)
    if exit_name == "COMMAND_LINE_ERROR" or code == 2:
        return BuildError(
            "Bazel rejects its command line; it says above why.",
            "Your own options are in TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS, "
            "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS and .bazelrc.user. The command was:\n"
            f"  {command_line}",
        )
    if code == _SERVER_ENDED:
        return BuildError(
            f"Bazel's server ended during the build.\n{_AS_BEFORE}",
            "Build again:  python setup.py develop",
        )
    if not exit_name and not (command.events.exists() and command.events.stat().st_size):
        return find_bazel.cannot_start(bazel, command.arguments, root)
    if full := _full_disk(root, environ):
        # Programs whose messages find no space end without a message.
        return BuildError(
            f"No space left on device: {full}\n{_AS_BEFORE}",
            "Free some space there, then build again:  python setup.py develop",
        )
    reason = f"{exit_name}, exit code {code}" if exit_name else f"exit code {code}"
    return BuildError(
        f"Bazel could not build {' '.join(command.targets)} ({reason}); it says above why.\n"
        f"{_AS_BEFORE}",
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
