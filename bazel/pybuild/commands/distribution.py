"""Describes the package to setuptools, and the command line to the commands.

distribution.verbosity()      # 1 after -v, -1 after -q
distribution.builds()         # whether a command calls Bazel to build
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import setuptools

from bazel.pybuild.configure import State
from bazel.pybuild.dist import sources
from bazel.pybuild.dist.metadata import Metadata
from bazel.pybuild.options import Options, WheelKind

# setuptools' own commands that work together with ours. The others rely on its own bdist_wheel,
# sdist and install, and fail, some of them after they have installed something.
SETUPTOOLS_COMMANDS = frozenset({"build", "build_py", "check", "egg_info"})

_USAGE = """\
Common commands: (see '--help-commands' for more)

  setup.py develop        build what changed; Python imports it from this tree
  setup.py bdist_wheel    make a wheel in dist/
  setup.py clean          remove what was built; downloads and caches stay
  setup.py options        show the environment variables of the build
"""


class Distribution(setuptools.Distribution):
    """The package as setuptools knows it, with the attributes that our commands need.

    Attributes:
      root: of the tree.
      started_in: the working directory of the caller.
      variables: options from the environment, changed by -q and -v.
      environ: the environment.
      configured: the configuration of the tree; None if no command builds.
    """

    common_usage: ClassVar[str] = _USAGE
    # Older setuptools have a dry run of all commands; ours do not support it.
    global_options: ClassVar[list[Any]] = [
        option for option in setuptools.Distribution.global_options if option[0] != "dry-run"
    ]

    root: Path
    started_in: Path
    variables: Options
    environ: Mapping[str, str]
    configured: State | None = None
    dry_run = 0

    def describe(self, package: Metadata, root: Path, options: Options) -> None:
        """Sets the metadata, and which source files the package has in this mode."""
        self.metadata.name = package.name
        self.metadata.version = package.version
        # Newer setuptools store the expression in another field, which --license does not print.
        self.metadata.license = package.license
        self.metadata.long_description = package.description
        self.metadata.long_description_content_type = "text/markdown"
        library = options.wheel_kind is WheelKind.LIBRARY
        self.packages, self.package_data = [], {}
        for file in [] if library else map(Path, sources.package_files(root)):
            name = ".".join(file.parent.parts)
            if name not in self.packages:
                self.packages.append(name)
            if file.suffix != ".py":
                self.package_data.setdefault(name, []).append(file.name)

    def has_ext_modules(self) -> bool:
        """True: the package has compiled parts, although setuptools compiles nothing."""
        return True

    def run_commands(self) -> None:
        """Runs the commands of the command line."""
        if not SETUPTOOLS_COMMANDS.isdisjoint(self.commands):
            # These need it. Commands with errors must not write anything.
            (self.root / "build").mkdir(exist_ok=True)
        super().run_commands()

    def print_commands(self) -> None:
        """Lists the commands."""
        self.print_command_list(
            sorted({*self.cmdclass, *SETUPTOOLS_COMMANDS}), "Commands", len("bdist_wheel")
        )

    def builds(self) -> bool:
        """Whether a command will call Bazel to build."""
        return any(
            name == "build" or getattr(self.get_command_class(name), "builds", False)
            for name in self.commands
        )

    def verbosity(self) -> int:
        """-1 after a -q, 1 after a -v, else 0; before the commands or behind one."""
        found = [self.get_option_dict(name).get("verbose") for name in self.commands]
        given = [value for _, value in filter(None, found)]
        if not self.verbose or 0 in given:
            return -1
        return int(self.verbose > 1 or bool(given))
