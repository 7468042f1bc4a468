"""The commands of setup.py: each class has the options of a command and calls other files.

`builds` says whether a command calls Bazel to build.
"""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import setuptools
from setuptools.command.build_ext import build_ext

from bazel.pybuild import build, develop, report, wheel
from bazel.pybuild.commands import clean, pip_install, show_options
from bazel.pybuild.dist import sdist
from bazel.pybuild.why import explanation

if TYPE_CHECKING:
    from bazel.pybuild.commands.distribution import Distribution


class _Command(setuptools.Command):
    """A command without options."""

    distribution: "Distribution"
    user_options: ClassVar[list[tuple[str, str | None, str]]] = []

    def initialize_options(self) -> None:
        pass

    def finalize_options(self) -> None:
        pass


class BuildExt(build_ext):
    """`build_ext`: builds all compiled files with one call of Bazel."""

    description = "build the compiled files into build/, or with --inplace here"
    # setuptools' other options are compiler flags, which are in BUILD files here.
    user_options: ClassVar[list[tuple[str, str | None, str]]] = [
        ("build-lib=", "b", "folder for the built files"),
        ("inplace", "i", "install them into this tree instead"),
    ]
    boolean_options: ClassVar[list[str]] = ["inplace"]
    help_options: ClassVar[list[tuple[str, str | None, str]]] = []
    builds = True
    distribution: "Distribution"

    def run(self) -> None:
        tree = self.distribution
        into = None if self.inplace or self.editable_mode else Path(self.build_lib)
        configured = tree.configured
        done = build.build(
            tree.root, tree.variables, tree.environ, into=into, configured=configured
        )
        print(done.line())
        self._built = list(done.changed)

    def get_outputs(self) -> list[str]:
        return [str(Path(self.build_lib) / path) for path in getattr(self, "_built", [])]

    def get_source_files(self) -> list[str]:
        return []


class Develop(_Command):
    """`develop` with other words on the command line; alone it runs without setuptools."""

    description = "build what changed, and import the package from this tree"
    builds = True

    def run(self) -> None:
        tree = self.distribution
        develop.develop(tree.root, tree.variables, tree.environ, configured=tree.configured)


class Rebuild(_Command):
    """`rebuild`: the full rebuild, which reads no cache."""

    description = "remove what was built, and compile everything again"
    builds = True

    def run(self) -> None:
        tree = self.distribution
        clean.clean(tree.root, tree.variables, tree.environ)
        fresh = ("--config=rebuild", *tree.variables.build_options)
        # With a remote cache, the option would not apply to the disk cache.
        variables = tree.variables._replace(build_options=fresh, remote_cache=None)
        develop.develop(tree.root, variables, tree.environ, configured=tree.configured)


class _DistCommand(_Command):
    user_options: ClassVar[list[tuple[str, str | None, str]]] = [
        ("dist-dir=", "d", "folder to write it to (default: dist)")
    ]

    def initialize_options(self) -> None:
        self.dist_dir = None

    def folder(self) -> Path:
        """The folder; an option is relative to the caller's working directory."""
        if self.dist_dir is None:
            return self.distribution.root / "dist"
        return self.distribution.started_in / self.dist_dir


class BdistWheel(_DistCommand):
    """`bdist_wheel`: writes the same file as the PEP 517 hook."""

    description = "make a wheel, or with BUILD_LIB_WHL or BUILD_PYTHON_ONLY half"
    builds = True

    def run(self) -> None:
        tree = self.distribution
        folder = self.folder()
        name = wheel.make(tree.root, tree.variables, tree.environ, folder, tree.configured)
        print(f"torch_xla_lite: wrote {folder / name}")


class Sdist(_DistCommand):
    """`sdist`: writes the same file as the PEP 517 hook."""

    description = "make a source distribution"

    def run(self) -> None:
        folder, tree = self.folder(), self.distribution
        name = sdist.make(tree.root, tree.variables, folder)
        print(f"torch_xla_lite: wrote {folder / name}")


class Install(_Command):
    """`install`."""

    description = "install a wheel of this tree with pip, whose command is printed"
    builds = True

    def run(self) -> None:
        tree = self.distribution
        pip_install.install(tree.root, tree.variables.wheel_kind, tree.verbosity())


class Clean(_Command):
    """`clean`."""

    description = "remove what was built; downloads and caches stay"
    user_options: ClassVar[list[tuple[str, str | None, str]]] = [
        ("dry-run", "n", "print the commands that do the same, and do nothing"),
    ]
    boolean_options: ClassVar[list[str]] = ["dry-run"]

    def initialize_options(self) -> None:
        self.dry_run = False

    def run(self) -> None:
        tree = self.distribution
        if not self.dry_run:
            removed = clean.clean(tree.root, tree.variables, tree.environ)
            print(f"torch_xla_lite: removed {', '.join(removed)}")
            return
        for command in clean.plan(tree.root, tree.variables, tree.environ):
            print(shlex.join(command))


class ShowOptions(_Command):
    """`options`."""

    description = "show the environment variables of the build, and errors in them"
    user_options: ClassVar[list[tuple[str, str | None, str]]] = [
        ("markdown", None, "print the table of docs/build.md instead"),
    ]
    boolean_options: ClassVar[list[str]] = ["markdown"]

    def initialize_options(self) -> None:
        self.markdown = False

    def run(self) -> None:
        if self.markdown:
            print(show_options.markdown())
        else:
            show_options.show(self.distribution.environ)


class Doctor(_Command):
    """`doctor`."""

    description = "check the package and what builds need"

    def run(self) -> None:
        # The package's command line works without the package being built.
        command = [sys.executable, "-m", "torch_xla_lite", "doctor"]
        code = subprocess.run(command, cwd=self.distribution.root, check=False).returncode
        if code:
            raise SystemExit(code)


class Explain(_Command):
    """`explain`."""

    description = "say why the last build's actions ran"

    def run(self) -> None:
        print(explanation.text(report.last(self.distribution.root)))


COMMANDS = {
    "bdist_wheel": BdistWheel,
    "build_ext": BuildExt,
    "clean": Clean,
    "develop": Develop,
    "doctor": Doctor,
    "explain": Explain,
    "install": Install,
    "options": ShowOptions,
    "rebuild": Rebuild,
    "sdist": Sdist,
}
