"""The PEP 517/660 hooks, through the same code as setup.py.

An editable install is what `develop` makes, in a wheel of its own. Wheels and source distributions
are made by setuptools, which calls setup.py and so our commands. No hook asks for further
requirements: an isolated build must not download another torch.
"""

import base64
import functools
import hashlib
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from bazel.pybuild import build, editable, metadata
from bazel.pybuild import options as options_table
from bazel.pybuild.errors import BuildError

_Settings = dict[str, Any] | None
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _explained(hook: Callable[_P, _R]) -> Callable[_P, _R]:
    """Ends the frontend's child process with the message of a BuildError, without a traceback."""

    @functools.wraps(hook)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return hook(*args, **kwargs)
        except BuildError as error:
            sys.exit(f"error: {error}")

    return call


@_explained
def build_editable(
    wheel_directory: str,
    config_settings: _Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds in place and writes the wheel whose installation is an editable install."""
    root = _root()
    report = build.build(root, options_table.read(os.environ), os.environ)
    print(report.line())
    described = metadata.read(root)
    contents = editable.files(root, described)
    record = f"{described.folder}/RECORD"
    lines = [f"{path},{_digest(text)},{len(text.encode())}\n" for path, text in contents.items()]
    contents[record] = "".join([*lines, f"{record},,\n"])
    name = f"{described.name}-{described.version}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w") as wheel:
        for path, text in contents.items():
            wheel.writestr(path, text)
    return name


def prepare_metadata_for_build_editable(
    metadata_directory: str, config_settings: _Settings = None
) -> str:
    """Writes the .dist-info folder; nothing is built for that."""
    root = _root()
    described = metadata.read(root)
    for path, text in editable.files(root, described).items():
        if path.startswith(described.folder):
            file = Path(metadata_directory) / path
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
    return described.folder


@_explained
def build_wheel(
    wheel_directory: str,
    config_settings: _Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds a wheel."""
    from setuptools import build_meta

    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: _Settings = None
) -> str:
    """Writes the .dist-info folder."""
    from setuptools import build_meta

    return build_meta.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_sdist(sdist_directory: str, config_settings: _Settings = None) -> str:
    """Packs the sources."""
    from setuptools import build_meta

    return build_meta.build_sdist(sdist_directory, config_settings)


def get_requires_for_build_editable(config_settings: _Settings = None) -> list[str]:
    """Nothing beyond pyproject.toml."""
    return []


def get_requires_for_build_wheel(config_settings: _Settings = None) -> list[str]:
    """Nothing beyond pyproject.toml."""
    return []


def get_requires_for_build_sdist(config_settings: _Settings = None) -> list[str]:
    """Nothing beyond pyproject.toml."""
    return []


def _root() -> Path:
    return Path(__file__).resolve().parents[2]


def _digest(text: str) -> str:
    """As RECORD wants it: URL-safe base64 without padding."""
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
