"""Configures the tree, calls Bazel and installs the built files into the package.

    report = build(root, options, os.environ)

Until everything is built and checked, nothing in the package changes.
"""

import functools
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bazel.pybuild import configure, lock, notices
from bazel.pybuild.call import command, run
from bazel.pybuild.errors import AS_BEFORE, BuildError
from bazel.pybuild.machine import find_bazel
from bazel.pybuild.options import Options, WheelKind

if TYPE_CHECKING:
    from bazel.pybuild.call.events import Outcome, Output
    from bazel.pybuild.machine.cuda import Cuda
    from bazel.pybuild.report import Report

# As in PyTorch's setup.py.
_ADVICE = """\
torch_xla_lite: a build for 64-bit ARM with CUDA. Programs may run faster when the linker places the
functions that run most side by side:  USE_PRIORITIZED_TEXT_FOR_LD=1 python setup.py develop
(USE_PRIORITIZED_TEXT_FOR_LD=0 switches it, and this advice, off)"""


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
    began_ns = time.time_ns()
    if into is None and options.wheel_kind is not WheelKind.ALL:
        raise _half_a_package(options.wheel_kind)
    if into is None and options.build_number:
        notices.defer_line("torch_xla_lite: only wheels use TORCH_XLA_LITE_BUILD_NUMBER")
    # The lock writes a file; a Bazel that is missing is an error before that.
    find_bazel.find(options.bazel, environ.get("PATH", os.defpath))
    with lock.exclusive(root, wait=options.waits):
        try:
            state = _configure(root, options, environ, configured)
            call = command.build_command(
                state.bazel,
                options,
                root / "build",
                headers=into is not None,
                cuda=state.cuda.packaged,
                caching=run.caching(options),
            )
            code, outcome = run.run(call, root, options, environ, meanwhile=_import_the_rest)
            succeeded = code == 0 and bool(outcome.outputs)
            changed = _install(outcome, root, into, began_ns) if succeeded else {}
        except KeyboardInterrupt as interrupt:
            raise KeyboardInterrupt(str(interrupt) or AS_BEFORE) from None
        from bazel.pybuild import report

        done = report.record(
            outcome,
            root,
            environ,
            since,
            succeeded=succeeded,
            changed=changed,
            cuda=state.cuda.evidence,
            installs=into is None,
        )
        report.write(done, root)
    if not succeeded:
        from bazel.pybuild.call import failure

        if outcome.exit_name:
            print(done.line(), flush=True)
        raise failure.of(root, state.bazel, call, code, outcome.exit_name, options, environ)
    return done


def _configure(
    root: Path,
    options: Options,
    environ: Mapping[str, str],
    configured: configure.State | None,
) -> configure.State:
    state = configured
    # Another command may have configured the tree meanwhile.
    if state is None or state != configure.read(root):
        state = configure.ensure(root, options, environ)
    if state.cuda.packaged and options.prioritized_text is None:
        notices.defer_line(_ADVICE)
    if options.wheel_kind is WheelKind.PYTHON:
        _check_library(root, options, state.cuda)
    return state


def _import_the_rest() -> None:
    """These imports take 24 ms, while Bazel works."""
    from bazel.pybuild import report  # noqa: F401
    from bazel.pybuild.install import outputs  # noqa: F401


def _install(outcome: "Outcome", root: Path, into: Path | None, began_ns: int) -> dict[str, bool]:
    """Verifies the outputs, and copies them if all is well with them."""
    from bazel.pybuild.install import outputs

    check = functools.partial(_verify, outcome.outputs, root)
    if into is None:
        changed = outputs.install(outcome.outputs, root, check)
        # Sources that are newer are not built (torch_xla_lite/startup/edits.py).
        os.utime(root / outputs.RECORD, ns=(began_ns, began_ns))
        return changed
    check(list(outcome.outputs))
    return outputs.copy(outcome.outputs, into)


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


def _check_library(root: Path, options: Options, gpu: "Cuda") -> None:
    """Checks the installed library that a wheel without libraries is linked to."""
    from bazel.pybuild.dist import metadata
    from bazel.pybuild.machine import packages, preflight

    found = packages.installed([packages.LIBRARY], packages.search_path())
    wanted = metadata.for_wheel(root, options, gpu.version).version
    preflight.check_library(wanted, found.get(packages.LIBRARY))
