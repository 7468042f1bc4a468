"""Parses the command line of setup.py with setuptools, and runs its commands.

    distribution = parse(root, ["build_ext", "--inplace"], package, options, environ)
    setup(distribution)

The whole line is parsed before the first command runs, so that a wrong word is found before a
build.
"""

import contextlib
import io
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import setuptools.logging
from setuptools import errors

from bazel.pybuild.commands import command_classes
from bazel.pybuild.commands.distribution import SETUPTOOLS_COMMANDS, Distribution
from bazel.pybuild.dist.metadata import Metadata
from bazel.pybuild.errors import BuildError
from bazel.pybuild.options import Options


def parse(
    root: Path,
    arguments: list[str],
    package: Metadata,
    options: Options,
    environ: Mapping[str, str],
) -> Distribution | None:
    """Reads the command line.

    Args:
      root: of the tree.
      arguments: those after `setup.py`.
      package: for `--name`, `--version` and the like.
      options: from the environment.
      environ: usually os.environ.

    Returns:
      The commands to run; None for an option such as --version, whose answer was printed.

    Raises:
      BuildError: an unknown command or option.
    """
    started_in = Path.cwd()
    # setuptools reads pyproject.toml and resolves paths in the working directory.
    os.chdir(root)
    setuptools.logging.configure()
    distribution = Distribution(
        {
            "script_name": "setup.py",
            "script_args": arguments,
            "cmdclass": dict(command_classes.COMMANDS),
            # setuptools writes only to build/, which git ignores and `clean` removes.
            "options": {
                "egg_info": {"egg_base": "build"},
                "build": {"build_base": "build/setuptools"},
                "bdist": {"bdist_base": "build/setuptools/bdist"},
            },
        }
    )
    distribution.parse_config_files()
    distribution.describe(package, root, options)
    try:
        if not distribution.parse_command_line():
            return None
    except (errors.BaseError, SystemExit) as error:
        raise BuildError(
            f"{error}.", "List the commands:  python setup.py --help-commands"
        ) from None
    for name in set(distribution.commands) - {*command_classes.COMMANDS, *SETUPTOOLS_COMMANDS}:
        raise BuildError(
            f"{name} is a command of setuptools' own, which cannot build this package.",
            "List the commands:  python setup.py --help-commands",
        )
    verbosity = distribution.verbosity()
    if verbosity < 1:
        # Without -v, setuptools prints only warnings.
        logging.getLogger().setLevel(logging.WARNING)
    distribution.root, distribution.started_in = root, started_in
    distribution.environ = environ
    if verbosity < 0:
        options = options._replace(build_options=("--noshow_progress", *options.build_options))
    distribution.variables = options._replace(verbose=options.verbose or verbosity > 0)
    return distribution


def setup(distribution: Distribution) -> None:
    """Runs the commands, as setuptools.setup() does after it has parsed the command line.

    Raises:
      BuildError: a command failed.
    """
    quiet = distribution.verbosity() < 0
    try:
        with contextlib.redirect_stdout(io.StringIO() if quiet else sys.stdout):
            distribution.run_commands()
    except (errors.BaseError, errors.CCompilerError) as error:
        names = " ".join(distribution.commands)
        raise BuildError(
            f"{error}.", f"List its options:  {sys.executable} setup.py {names} --help"
        ) from error
