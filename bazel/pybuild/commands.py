"""The setuptools commands: thin, because what they do is in the other files.

setuptools parses the whole command line before it runs the first of them, so a bad argument costs
no build.
"""

import os
from pathlib import Path
from typing import ClassVar

import setuptools
from setuptools.command.build_ext import build_ext

from bazel.pybuild import build, clean, develop, sdist, wheel
from bazel.pybuild import options as options_table


def root() -> Path:
    """The root of this tree."""
    return Path(__file__).resolve().parents[2]


class Distribution(setuptools.Distribution):
    """Says that the package has compiled parts: setuptools knows only of extensions that it
    compiles itself."""

    def has_ext_modules(self) -> bool:
        return True

    def run_commands(self) -> None:
        # Here and not earlier: `--help` and `--version` write nothing.
        (root() / "build").mkdir(exist_ok=True)
        super().run_commands()


class BuildExt(build_ext):
    """`build_ext`: everything compiled, by one call of Bazel."""

    def run(self) -> None:
        into = None if self.inplace or self.editable_mode else Path(self.build_lib)
        report = build.build(root(), options_table.read(os.environ), os.environ, into=into)
        print(report.line())
        self._built = list(report.changed)

    def get_outputs(self) -> list[str]:
        return [str(Path(self.build_lib) / path) for path in getattr(self, "_built", [])]

    def get_source_files(self) -> list[str]:
        return []


class _Command(setuptools.Command):
    user_options: ClassVar[list[tuple[str, str | None, str]]] = []

    def initialize_options(self) -> None:
        pass

    def finalize_options(self) -> None:
        pass


class Develop(_Command):
    """`develop`, where it stands with other commands; alone it runs without setuptools."""

    description = "build what changed, and import the package from this tree"

    def run(self) -> None:
        develop.develop(root(), options_table.read(os.environ))


class _DistCommand(_Command):
    user_options: ClassVar[list[tuple[str, str | None, str]]] = [
        ("dist-dir=", "d", "folder to write it to (default: dist)")
    ]

    def initialize_options(self) -> None:
        self.dist_dir = "dist"


class BdistWheel(_DistCommand):
    """`bdist_wheel`: the file that the PEP 517 hook gives."""

    description = "make a wheel; BUILD_LIB_WHL and BUILD_PYTHON_ONLY make one of its halves"

    def run(self) -> None:
        folder = Path(self.dist_dir).resolve()
        name = wheel.make(root(), options_table.read(os.environ), os.environ, folder)
        print(f"torch_xla_lite: wrote {folder / name}")


class Sdist(_DistCommand):
    """`sdist`: the file that the PEP 517 hook gives."""

    description = "make a source distribution"

    def run(self) -> None:
        folder = Path(self.dist_dir).resolve()
        print(f"torch_xla_lite: wrote {folder / sdist.make(root(), folder)}")


class Clean(_Command):
    """`clean`."""

    description = "remove what was built; downloads and caches stay"

    def run(self) -> None:
        removed = clean.clean(root(), options_table.read(os.environ), os.environ)
        print(f"torch_xla_lite: removed {', '.join(removed)}")


COMMANDS = {
    "bdist_wheel": BdistWheel,
    "build_ext": BuildExt,
    "clean": Clean,
    "develop": Develop,
    "sdist": Sdist,
}
