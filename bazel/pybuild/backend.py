"""The PEP 517/660 hooks, which call the same code as setup.py.

The editable install is the same as that of `develop`, packed into a wheel. No hook needs
setuptools. pyproject.toml does not require torch, so that front ends do not download it: the build
uses the torch of the environment that the wheel is for, which front ends hide from an isolated
build; the error names the option that switches isolation off.
"""

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from bazel.pybuild import build, interrupts, notices, wheel
from bazel.pybuild import options as options_table
from bazel.pybuild.dist import archive, metadata, sdist, wheel_format
from bazel.pybuild.errors import BuildError, message
from bazel.pybuild.files import replace
from bazel.pybuild.install import editable
from bazel.pybuild.machine.preflight import PackagesMissing

_ISOLATION = """\
If they are installed in your environment, the front end hides it from this build. Do not isolate:
  pip install --no-build-isolation .    (also: uv pip install, pip wheel, with -e)
  python -m build --no-isolation"""
_Settings = dict[str, Any] | None
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _explained(hook: Callable[_P, _R]) -> Callable[_P, _R]:
    """Ends the process of a hook with the message of a BuildError, without a traceback."""

    @functools.wraps(hook)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        interrupts.handle()
        try:
            return hook(*args, **kwargs)
        except PackagesMissing as error:
            sys.exit(f"error: {message(error)}\n{_ISOLATION}")
        except (BuildError, OSError) as error:
            sys.exit(f"error: {message(error)}")
        except KeyboardInterrupt as interrupt:
            sys.exit(f"error: {interrupts.name()}. {interrupt}")
        finally:
            notices.show()

    return call


@_explained
def build_editable(
    wheel_directory: str,
    config_settings: _Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds in place and writes the wheel whose installation is an editable install."""
    root, options = _root(), _options(config_settings)
    report = build.build(root, options, os.environ)
    editable.link(root)
    print(report.line())
    described = metadata.read(root, options.version)
    name = f"{described.name}-{described.version}-{editable.TAG}.whl"
    wheel_format.write_archive(
        Path(wheel_directory) / name, editable.files(root, described), described
    )
    return name


@_explained
def prepare_metadata_for_build_editable(
    metadata_directory: str, config_settings: _Settings = None
) -> str:
    """Writes the .dist-info folder, without a build.

    There is no such hook for wheels, because their version depends on the toolkit that they are
    built with. Front ends build the wheel and read its metadata.
    """
    root = _root()
    described = metadata.read(root, _options(config_settings).version)
    for path, source in editable.files(root, described).items():
        if path.startswith(described.folder):
            replace(Path(metadata_directory) / path, archive.read(source))
    return described.folder


@_explained
def build_wheel(
    wheel_directory: str,
    config_settings: _Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds the wheel that variables and settings describe."""
    return wheel.make(_root(), _options(config_settings), os.environ, Path(wheel_directory))


@_explained
def build_sdist(sdist_directory: str, config_settings: _Settings = None) -> str:
    """Writes the source distribution."""
    return sdist.make(_root(), _options(config_settings), Path(sdist_directory))


@_explained
def get_requires_for_build_wheel(config_settings: _Settings = None) -> list[str]:
    """Nothing is required; wrong settings are errors."""
    options_table.from_settings(config_settings)
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel


def _options(settings: _Settings) -> options_table.Options:
    """The options, as flow.py reads them. Settings override variables: each hook runs in its own
    process, so the settings become variables of this process and of those that it starts."""
    os.environ |= options_table.from_settings(settings)
    return options_table.with_platform_defaults(options_table.read(os.environ))


def _root() -> Path:
    return Path(__file__).resolve().parents[2]
