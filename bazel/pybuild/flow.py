"""The steps of `python setup.py ...`, in the order of PyTorch's setup.py.

Errors that can be found at once are reported before a long build and before anything is written;
warnings come last, where the user sees them.
"""

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bazel.pybuild import notices
from bazel.pybuild import options as options_table
from bazel.pybuild.errors import BuildError, message
from bazel.pybuild.options import Options, WheelKind

if TYPE_CHECKING:
    from types import ModuleType

    from bazel.pybuild.commands.distribution import Distribution
    from bazel.pybuild.configure import State
    from bazel.pybuild.dist.metadata import Metadata

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
    try:
        try:
            run(root, arguments, os.environ, since)
        finally:
            notices.show()
    except (BuildError, OSError) as error:
        problem, status = message(error), 1
    except KeyboardInterrupt as interrupt:
        state = str(interrupt) or "What is finished stays; the same command does the rest."
        problem, status = f"interrupted. {state}", 128 + signal.SIGINT
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
    lone_develop = arguments == ["develop"]
    options = check_modes(arguments, environ)
    if "bdist_wheel" in arguments:
        from bazel.pybuild.dist import copy

        root = copy.writable(root, environ)
    package = None if lone_develop else base_requirements(root, options)
    options = options_table.platform_link_options(options)
    if package is None:
        from bazel.pybuild import develop

        # Prepares, configures and builds. Only a new editable install needs the metadata.
        develop.develop(root, options, environ, since=since)
        return
    command_line = _setuptools_half()
    distribution = command_line.parse(root, arguments, package, options, environ)
    if distribution is None:
        return
    if distribution.builds():
        distribution.configured = prepare_and_configure(root, options, environ)
    long_description(distribution, package)
    package_data(distribution, root, options)
    command_line.setup(distribution)


def check_modes(arguments: list[str], environ: Mapping[str, str]) -> Options:
    """Rejects modes that exclude each other, misspelt names and malformed values."""
    if ignored := options_table.ignored(environ):
        notices.defer(ignored)
    if arguments[:1] == ["options"]:
        # This command reports every wrong variable instead of the first one.
        return Options()
    return options_table.read(environ)


def base_requirements(root: Path, options: Options) -> "Metadata":
    """The metadata of this mode's package, with its requirements."""
    from bazel.pybuild.dist import metadata

    return metadata.for_wheel(root, options, "")


def prepare_and_configure(root: Path, options: Options, environ: Mapping[str, str]) -> "State":
    """Finds Bazel and writes .bazelrc.generated.

    A lone develop does this when it builds. Here it happens before setuptools starts, which would
    leave folders behind after an error.
    """
    from bazel.pybuild import configure

    return configure.ensure(root, options, environ)


def long_description(distribution: "Distribution", package: "Metadata") -> None:
    """Passes the README to setuptools."""
    distribution.metadata.long_description = package.description
    distribution.metadata.long_description_content_type = "text/markdown"


def package_data(distribution: "Distribution", root: Path, options: Options) -> None:
    """Tells setuptools' own commands which source files the package has in this mode."""
    from bazel.pybuild.dist import sources

    library = options.wheel_kind is WheelKind.LIBRARY
    distribution.packages, distribution.package_data = [], {}
    for file in [] if library else map(Path, sources.package_files(root)):
        package = ".".join(file.parent.parts)
        if package not in distribution.packages:
            distribution.packages.append(package)
        if file.suffix != ".py":
            distribution.package_data.setdefault(package, []).append(file.name)


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
