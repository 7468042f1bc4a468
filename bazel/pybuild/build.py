"""Configures the tree, calls Bazel and installs the built files into the package.

    report = build(root, options, os.environ)

Until everything is built and checked, nothing in the package changes.
"""

import functools
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bazel.pybuild import lock, notices
from bazel.pybuild.errors import BuildError
from bazel.pybuild.invocation import invoke
from bazel.pybuild.machine import configure, cuda, find_bazel
from bazel.pybuild.options import Options, WheelKind

if TYPE_CHECKING:
    from bazel.pybuild.invocation.events import Output
    from bazel.pybuild.invocation.report import Report

_AS_BEFORE = "The installed files are as they were."
# As in PyTorch's setup.py.
_ADVICE = """\
This is a build for 64-bit ARM with CUDA. Programs may run faster when the linker
places the functions that run most side by side. Only linking is repeated:
    USE_PRIORITIZED_TEXT_FOR_LD=1 python setup.py develop
To build without it and without this advice:
    USE_PRIORITIZED_TEXT_FOR_LD=0"""


def build(
    root: Path,
    options: Options,
    environ: Mapping[str, str],
    *,
    into: Path | None = None,
    since: float | None = None,
) -> "Report":
    """Builds and installs.

    Args:
      root: of the tree.
      options: from the environment.
      environ: usually os.environ.
      into: folder to write the package's files to, with the public headers; None for the tree.
      since: time.perf_counter() when the command began; None for now.

    Returns:
      The report, which is also in build/report.json.

    Raises:
      BuildError: the build failed; the package is as it was.
      KeyboardInterrupt: its message says whether the package changed.
    """
    since = time.perf_counter() if since is None else since
    if into is None and options.wheel_kind is not WheelKind.ALL:
        raise _half_a_package(options.wheel_kind)
    bazel = find_bazel.find(options.bazel, environ.get("PATH", os.defpath))
    with lock.alone(root):
        try:
            gpu = configure.ensure(root, bazel, options, environ).cuda
            print(f"torch_xla_lite: CUDA {gpu}", flush=True)
            if gpu.startswith("on") and options.prioritized_text is None:
                notices.keep(notices.box(_ADVICE))
            if options.wheel_kind is WheelKind.PYTHON:
                _check_library(root, options, cuda.inspect(options, environ))
            command = invoke.build_command(
                bazel, options, root / "build", headers=into is not None, cuda=gpu.startswith("on")
            )
            with invoke.started(command, root) as process:
                # These imports take 24 ms, while Bazel works.
                from bazel.pybuild.install import outputs
                from bazel.pybuild.invocation import events, report
            outcome = events.read(command.events, command.log, command.targets)
            succeeded = process.returncode == 0 and bool(outcome.outputs)
            check = functools.partial(_verify, outcome.outputs, root)
            changed = {}
            if succeeded and into is None:
                changed = outputs.install(outcome.outputs, root, check)
            elif succeeded:
                check(list(outcome.outputs))
                changed = outputs.copy(outcome.outputs, into)
        except KeyboardInterrupt as interrupt:
            raise KeyboardInterrupt(str(interrupt) or _AS_BEFORE) from None
        done = report.summarize(outcome, changed, succeeded, time.perf_counter() - since, gpu)
        report.write(done, root)
    if not succeeded:
        if outcome.exit_name:
            print(done.line(), flush=True)
        raise _failure(root, bazel, command, process.returncode, outcome.exit_name)
    return done


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


def _check_library(root: Path, options: Options, gpu: cuda.Cuda) -> None:
    """Checks the installed library that a wheel without libraries is linked to."""
    from bazel.pybuild.dist import metadata
    from bazel.pybuild.machine import packages, preflight

    found = packages.installed([packages.LIBRARY], packages.search_path())
    wanted = metadata.for_wheel(root, options, gpu.version).version
    preflight.check_library(wanted, found.get(packages.LIBRARY))


def _failure(
    root: Path, bazel: find_bazel.Bazel, command: invoke.Command, code: int, exit_name: str
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
    if not exit_name and not command.events.exists():
        return find_bazel.cannot_start(bazel, command.arguments, root)
    said = f"{exit_name}, exit code {code}" if exit_name else f"exit code {code}"
    return BuildError(
        f"Bazel could not build {' '.join(command.targets)} ({said}); it says above why.\n"
        f"{_AS_BEFORE}",
        "To see every command that it runs:  VERBOSE=1 python setup.py develop",
    )
