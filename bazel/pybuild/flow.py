"""The steps of `python setup.py ...`, in the order of PyTorch's setup.py.

Errors that can be found at once are reported before a long build and before anything is written;
warnings come last, where the user sees them.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bazel.pybuild import interrupts, notices
from bazel.pybuild import options as options_table
from bazel.pybuild.errors import BuildError, message
from bazel.pybuild.options import Options

if TYPE_CHECKING:
    from types import ModuleType

# The first version that accepts a licence expression in pyproject.toml.
_SETUPTOOLS = 77


def main(arguments: list[str], since: float | None = None) -> int:
    """Runs setup.py.

    Args:
      arguments: those after its name.
      since: time.perf_counter() at the start of the process.

    Returns:
      The exit status. If it is not 0, a message was printed to standard error.
    """
    root = Path(__file__).resolve().parents[2]
    if None in (sys.stdin, sys.stdout, sys.stderr):
        from bazel.pybuild import streams

        streams.open_closed()
    interrupts.handle()
    try:
        try:
            run(root, arguments, os.environ, since)
        finally:
            notices.show()
    except (BuildError, OSError) as error:
        problem, status = message(error), 1
    except KeyboardInterrupt as interrupt:
        state = str(interrupt) or "What is finished stays; the same command does the rest."
        problem, status = f"{interrupts.name()}. {state}", interrupts.status()
    else:
        return 0
    print(f"error: {problem}", file=sys.stderr)
    return status


def run(
    root: Path, arguments: list[str], environ: Mapping[str, str], since: float | None = None
) -> None:
    """The steps.

    The everyday command, `develop` without other words, does not import setuptools: that would
    double its time when there is nothing to do.

    Raises:
      BuildError: something that the user must correct.
    """
    # The command `options` reports every wrong variable instead of the first one.
    options = Options() if arguments[:1] == ["options"] else options_table.read(environ)
    if arguments == ["develop"]:
        from bazel.pybuild import develop

        # Prepares, configures and builds. Only a new editable install needs the metadata.
        options = options_table.with_platform_defaults(options)
        develop.develop(root, options, environ, since=since)
        return
    from bazel.pybuild import configure
    from bazel.pybuild.dist import metadata

    package = metadata.for_wheel(root, options, "")
    options = options_table.with_platform_defaults(options)
    command_line = _setuptools_half()
    distribution = command_line.parse(root, arguments, package, options, environ)
    if distribution is None:
        return
    if distribution.builds():
        # Before setuptools starts, which would leave folders behind after an error.
        distribution.configured = configure.ensure(root, options, environ)
    command_line.setup(distribution)


def _setuptools_half() -> "ModuleType":
    """The module that parses command lines. Raises BuildError without a suitable setuptools."""
    version = f">={_SETUPTOOLS}"
    try:
        import setuptools
    except ModuleNotFoundError as error:
        if error.name != "setuptools":
            raise
        problem = "is missing; every command but a lone develop needs it"
    else:
        version = setuptools.__version__
        problem = "cannot read our pyproject.toml"
        if int(version.partition(".")[0]) >= _SETUPTOOLS:
            from bazel.pybuild.commands import command_line

            return command_line
    raise BuildError(
        f"setuptools {version} of {sys.executable} {problem}.",
        f"Install a newer one:  {sys.executable} -m pip install 'setuptools>={_SETUPTOOLS}'",
    )
