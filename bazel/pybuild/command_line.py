"""The command line of setup.py, as setuptools reads it, but for a lone `develop`, which has none.

    distribution = parse(root, ["build_ext", "--inplace"], package, options, environ)
    setup(distribution)

All of it is read before the first command runs, with the options of each command, so that a wrong
word costs no build.
"""

import contextlib
import io
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import setuptools
import setuptools.logging
from setuptools import errors

from bazel.pybuild import commands
from bazel.pybuild.errors import BuildError
from bazel.pybuild.metadata import Metadata
from bazel.pybuild.options import Options

# Commands of setuptools' own that go with ours. Its others count on its own bdist_wheel, sdist and
# install: they fail half-way, some of them after they have installed something.
_THEIRS = frozenset({"build", "build_py", "check", "egg_info"})

_USAGE = """\
Common commands: (see '--help-commands' for more)

  setup.py develop        build what changed, and import the package from this tree
  setup.py bdist_wheel    make a wheel in dist/
  setup.py clean          remove what was built; downloads and caches stay
  setup.py options        show the environment variables that steer the build
"""


class Distribution(setuptools.Distribution):
    """What setuptools knows of the package, and what our commands need beside it.

    Attributes:
      root: of the tree.
      started_in: the working directory of whoever called.
      variables: options from the environment, after the command line had its word.
      environ: where they came from.
    """

    common_usage: ClassVar[str] = _USAGE
    # Older setuptools have a dry run of their own.
    global_options: ClassVar[list[Any]] = [
        *(option for option in setuptools.Distribution.global_options if option[0] != "dry-run"),
        ("dry-run", "n", "print the commands that would be run, and do nothing"),
    ]

    root: Path
    started_in: Path
    variables: Options
    environ: Mapping[str, str]
    dry_run = 0

    def has_ext_modules(self) -> bool:
        """Says that the package has compiled parts: setuptools knows only of extensions that it
        compiles itself."""
        return True

    def run_commands(self) -> None:
        """Runs those of the command line."""
        if set(self.commands) - set(commands.COMMANDS):
            # Where setuptools' own put their files; here, because what fails before writes nothing.
            (self.root / "build").mkdir(exist_ok=True)
        super().run_commands()

    def print_commands(self) -> None:
        """Lists the commands that there are."""
        self.print_command_list(
            sorted({*commands.COMMANDS, *_THEIRS}), "Commands", len("bdist_wheel")
        )

    def builds(self) -> bool:
        """Whether a command will call Bazel to build."""
        return any(
            name == "build" or getattr(self.get_command_class(name), "builds", False)
            for name in self.commands
        )

    def is_dry_run(self) -> bool:
        """Whether -n was given, before the commands or behind one."""
        return bool(self.dry_run) or any(self._given("dry_run"))

    def verbosity(self) -> int:
        """-1 after a -q, 1 after a -v, else 0; before the commands or behind one."""
        given = list(self._given("verbose"))
        if not self.verbose or 0 in given:
            return -1
        return int(self.verbose > 1 or bool(given))

    def _given(self, option: str) -> list[Any]:
        """Values of a global option that stands behind a command."""
        found = [self.get_option_dict(name).get(option) for name in self.commands]
        return [value for _, value in filter(None, found)]


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
      package: what `--name` and `--version` are answered with.
      options: from the environment.
      environ: usually os.environ.

    Returns:
      What is to be run; None when the command line asked a question, which is answered by now.

    Raises:
      BuildError: there is no such command, or it has no such option.
    """
    started_in = Path.cwd()
    # Where setuptools looks for pyproject.toml, and what it takes paths relative to.
    os.chdir(root)
    setuptools.logging.configure()
    distribution = Distribution(
        {
            "script_name": "setup.py",
            "script_args": arguments,
            "cmdclass": dict(commands.COMMANDS),
            # Everything that setuptools writes goes where git does not look and `clean` does.
            "options": {
                "egg_info": {"egg_base": "build"},
                "build": {"build_base": "build/setuptools"},
                "bdist": {"bdist_base": "build/setuptools/bdist"},
            },
        }
    )
    distribution.parse_config_files()
    distribution.metadata.name = package.name
    distribution.metadata.version = package.version
    # Newer setuptools keep the expression elsewhere, where --license does not look.
    distribution.metadata.license = package.license
    try:
        if not distribution.parse_command_line():
            return None
    except (errors.BaseError, SystemExit) as error:
        raise BuildError(
            f"{error}.", "See what there is:  python setup.py --help-commands"
        ) from None
    for name in set(distribution.commands) - {*commands.COMMANDS, *_THEIRS}:
        raise BuildError(
            f"{name} is a command of setuptools' own that does not know how this package is made.",
            "See what there is:  python setup.py --help-commands",
        )
    if distribution.verbosity() < 1:
        # What setuptools is doing is of interest to those who ask; its warnings stay.
        logging.getLogger().setLevel(logging.WARNING)
    distribution.root, distribution.started_in = root, started_in
    distribution.environ = environ
    distribution.variables = _after_verbosity(options, distribution.verbosity())
    return distribution


def _after_verbosity(options: Options, verbosity: int) -> Options:
    if verbosity < 0:
        return options._replace(build_options=("--noshow_progress", *options.build_options))
    return options._replace(verbose=options.verbose or verbosity > 0)


def print_plan(distribution: Distribution) -> None:
    """Prints the commands that would be run, as a shell takes them.

    Raises:
      BuildError: for a command of setuptools' own, which only acts.
    """
    import shlex

    for name in distribution.commands:
        if not hasattr(distribution.get_command_class(name), "plan"):
            able = [name for name, command in commands.COMMANDS.items() if hasattr(command, "plan")]
            raise BuildError(
                f"{name} has no dry run; those that have one are {', '.join(able)}.",
                f"To run it:  python setup.py {name}",
            )
    plan = [
        command
        for name in distribution.commands
        for command in distribution.get_command_obj(name).plan()
    ]
    if distribution.started_in != distribution.root:
        plan.insert(0, ["cd", str(distribution.root)])
    print("\n".join(shlex.join(command) for command in plan))


def setup(distribution: Distribution) -> None:
    """Runs the commands: what is left to do for setuptools.setup() after the command line was read.

    Raises:
      BuildError: one has failed.
    """
    quiet = distribution.verbosity() < 0
    try:
        with contextlib.redirect_stdout(io.StringIO() if quiet else sys.stdout):
            distribution.run_commands()
    except (errors.BaseError, errors.CCompilerError) as error:
        shown = " ".join(distribution.commands)
        raise BuildError(
            f"{error}.", f"See what the command takes:  {sys.executable} setup.py {shown} --help"
        ) from error
