"""The commands of setup.py: thin, because what they do is in the other files.

A class has `run`; `plan`, the commands that would be run, where there is a dry run; and `builds`,
whether it calls Bazel to build.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import setuptools
from setuptools.command.build_ext import build_ext

from bazel.pybuild import build, develop, wheel
from bazel.pybuild.commands import clean, pip_install, show_options
from bazel.pybuild.dist import sdist
from bazel.pybuild.machine import configure, find_bazel

if TYPE_CHECKING:
    from bazel.pybuild.commands.distribution import Distribution


class _Command(setuptools.Command):
    """A command without options of its own."""

    distribution: "Distribution"
    user_options: ClassVar[list[tuple[str, str | None, str]]] = []
    # That of the distribution counts, wherever it stood; setuptools wants a place for it here.
    dry_run = 0

    def initialize_options(self) -> None:
        pass

    def finalize_options(self) -> None:
        pass


def _bazel_plan(distribution: "Distribution", *, headers: bool = False) -> list[list[str]]:
    """The call of Bazel, after what it needs in a tree that was never built, or for another
    environment."""
    root, options, environ = distribution.root, distribution.variables, distribution.environ
    command = build.bazel_command(root, options, environ, headers=headers)
    bazel = find_bazel.find(options.bazel, environ.get("PATH", os.defpath))
    plan = []
    if not configure.is_right(root, bazel, options, environ):
        plan.append([sys.executable, "-m", "bazel.pybuild.machine.configure"])
    if not (root / "build").exists() or "clean" in distribution.commands:
        plan.append(["mkdir", "build"])
    return [*plan, list(command.arguments)]


class BuildExt(build_ext):
    """`build_ext`: everything compiled, by one call of Bazel."""

    description = "build what is compiled, into build/; into this tree with --inplace"
    # setuptools has more: flags for compilers, which are in BUILD files here.
    user_options: ClassVar[list[tuple[str, str | None, str]]] = [
        ("build-lib=", "b", "folder for what is built"),
        ("inplace", "i", "put it into this tree instead"),
    ]
    boolean_options: ClassVar[list[str]] = ["inplace"]
    help_options: ClassVar[list[tuple[str, str | None, str]]] = []
    builds = True
    distribution: "Distribution"
    dry_run = 0

    def run(self) -> None:
        tree = self.distribution
        into = None if self.inplace or self.editable_mode else Path(self.build_lib)
        report = build.build(tree.root, tree.variables, tree.environ, into=into)
        print(report.line())
        self._built = list(report.changed)

    def plan(self) -> list[list[str]]:
        inplace = "inplace" in self.distribution.get_option_dict("build_ext")
        return _bazel_plan(self.distribution, headers=not inplace)

    def get_outputs(self) -> list[str]:
        return [str(Path(self.build_lib) / path) for path in getattr(self, "_built", [])]

    def get_source_files(self) -> list[str]:
        return []


class Develop(_Command):
    """`develop`, where it stands with other words; alone it runs without setuptools."""

    description = "build what changed, and import the package from this tree"
    builds = True

    def run(self) -> None:
        tree = self.distribution
        develop.develop(tree.root, tree.variables, tree.environ)

    def plan(self) -> list[list[str]]:
        return _bazel_plan(self.distribution)


class _DistCommand(_Command):
    user_options: ClassVar[list[tuple[str, str | None, str]]] = [
        ("dist-dir=", "d", "folder to write it to (default: dist)")
    ]

    def initialize_options(self) -> None:
        self.dist_dir = None

    def folder(self) -> Path:
        """As an option it is meant from where the caller is, which may be another folder."""
        if self.dist_dir is None:
            return self.distribution.root / "dist"
        return self.distribution.started_in / self.dist_dir


class BdistWheel(_DistCommand):
    """`bdist_wheel`: the file that the PEP 517 hook gives."""

    description = "make a wheel; BUILD_LIB_WHL and BUILD_PYTHON_ONLY make one of its halves"
    builds = True

    def run(self) -> None:
        tree = self.distribution
        folder = self.folder()
        name = wheel.make(tree.root, tree.variables, tree.environ, folder)
        print(f"torch_xla_lite: wrote {folder / name}")

    def plan(self) -> list[list[str]]:
        return _bazel_plan(self.distribution, headers=True)


class Sdist(_DistCommand):
    """`sdist`: the file that the PEP 517 hook gives."""

    description = "make a source distribution"

    def run(self) -> None:
        folder, tree = self.folder(), self.distribution
        name = sdist.make(tree.root, tree.variables, folder)
        print(f"torch_xla_lite: wrote {folder / name}")


class Install(_Command):
    """`install`."""

    description = "install a wheel of this tree, by a call of pip that is printed"
    builds = True

    def run(self) -> None:
        tree = self.distribution
        pip_install.install(tree.root, tree.variables.content, tree.verbosity())

    def plan(self) -> list[list[str]]:
        return [pip_install.command(self.distribution.verbosity())]


class Clean(_Command):
    """`clean`."""

    description = "remove what was built; downloads and caches stay"

    def run(self) -> None:
        tree = self.distribution
        removed = clean.clean(tree.root, tree.variables, tree.environ)
        print(f"torch_xla_lite: removed {', '.join(removed)}")

    def plan(self) -> list[list[str]]:
        tree = self.distribution
        return clean.plan(tree.root, tree.variables, tree.environ)


class ShowOptions(_Command):
    """`options`."""

    description = "show the environment variables that steer the build, and what is wrong with them"
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


COMMANDS = {
    "bdist_wheel": BdistWheel,
    "build_ext": BuildExt,
    "clean": Clean,
    "develop": Develop,
    "install": Install,
    "options": ShowOptions,
    "sdist": Sdist,
}
