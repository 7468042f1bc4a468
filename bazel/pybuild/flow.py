"""What happens on `python setup.py ...`, step by step, in the order of PyTorch's setup.py.

The order matters: what can be found wrong at once is said before a long build, nothing is written
before all of it was looked at, and the last thing on the screen is what the user has to read.
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
    from bazel.pybuild.dist.metadata import Metadata

# The first that takes a license expression. A new environment may have an older one.
_SETUPTOOLS = 77


def main(arguments: list[str], since: float | None = None) -> int:
    """Runs setup.py.

    Args:
      arguments: those after its name.
      since: time.perf_counter() at the start of the process.

    Returns:
      The exit status: 0, or another one after a message on standard error.
    """
    root = Path(__file__).resolve().parents[2]
    problem, status = "", 0
    try:
        run(root, arguments, os.environ, since)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the output has gone, as `head` does.
        status = 128 + signal.SIGPIPE
    except (BuildError, OSError) as error:
        problem, status = message(error), 1
    except KeyboardInterrupt as interrupt:
        state = str(interrupt) or "What is finished stays; the same command does the rest."
        problem, status = f"interrupted. {state}", 128 + signal.SIGINT
    try:
        # Before the messages below, also where the output is not a terminal.
        sys.stdout.flush()
    except OSError:
        # Python tries once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    notices.show()
    if problem:
        print(f"error: {problem}", file=sys.stderr)
    return status


def run(
    root: Path, arguments: list[str], environ: Mapping[str, str], since: float | None = None
) -> None:
    """The steps.

    A lone `develop`, the everyday command, needs neither setuptools nor pip. Importing setuptools
    would double its time when there is nothing to do, so its steps are those that need none of it.

    Raises:
      BuildError: whatever the user has to mend.
    """
    lone_develop = arguments == ["develop"]
    options = check_modes(arguments, environ)
    package = None if lone_develop else base_requirements(root, options)
    options = options_table.platform_link_options(options)
    if package is None:
        from bazel.pybuild import develop

        # Prepares, configures and builds; requirements and metadata are those of the editable
        # install, which is seldom made anew.
        develop.develop(root, options, environ, since=since)
        return
    command_line = _setuptools_half()
    distribution = command_line.parse(root, arguments, package, options, environ)
    if distribution is None:
        return
    if distribution.builds():
        prepare_and_configure(root, options, environ)
    long_description(distribution, package)
    package_data(distribution, root, options)
    command_line.setup(distribution)


def check_modes(arguments: list[str], environ: Mapping[str, str]) -> Options:
    """Modes that exclude each other, misspelt names, malformed values."""
    if said := options_table.ignored(environ):
        notices.keep(said)
    if arguments[:1] == ["options"]:
        # The command tells all that is wrong with them, and not only the first thing.
        return Options()
    return options_table.read(environ)


def base_requirements(root: Path, options: Options) -> "Metadata":
    """What is to be packaged in this mode, and what it requires when it is installed."""
    from bazel.pybuild.dist import metadata

    return metadata.for_wheel(root, options, "")


def prepare_and_configure(root: Path, options: Options, environ: Mapping[str, str]) -> None:
    """Looks for Bazel, Python's headers, torch and jax, and writes what Bazel must know of them.

    Every build does it itself. Here it is done before setuptools begins, which would leave
    half of its folders behind.
    """
    from bazel.pybuild.machine import configure, find_bazel

    bazel = find_bazel.find(options.bazel, environ.get("PATH", os.defpath))
    configure.ensure(root, bazel, options, environ)


def long_description(distribution: "Distribution", package: "Metadata") -> None:
    """The README."""
    distribution.metadata.long_description = package.description
    distribution.metadata.long_description_content_type = "text/markdown"


def package_data(distribution: "Distribution", root: Path, options: Options) -> None:
    """The files of the package that are not built, by mode, for setuptools' own commands; wheel.py
    takes the same."""
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
    get_it = f"{sys.executable} -m pip install 'setuptools>={_SETUPTOOLS}'"
    try:
        import setuptools
    except ModuleNotFoundError as error:
        if error.name != "setuptools":
            raise
        raise BuildError(
            f"setuptools is not installed for {sys.executable}; every command but a lone develop "
            "needs it.",
            f"Install it:  {get_it}",
        ) from None
    if int(setuptools.__version__.partition(".")[0]) < _SETUPTOOLS:
        raise BuildError(
            f"setuptools {setuptools.__version__} of {sys.executable} is too old: it cannot read "
            "our pyproject.toml.",
            f"Get a newer one:  {get_it}",
        )
    from bazel.pybuild.commands import command_line

    return command_line
