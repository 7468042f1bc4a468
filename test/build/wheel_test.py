"""What is in a wheel, for whom it is, and that nothing of the machine gets into it."""

import base64
import fcntl
import hashlib
import os
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.utils import parse_wheel_filename

from bazel.pybuild import backend, build, configure, report, wheel
from bazel.pybuild.call import client, events
from bazel.pybuild.dist import metadata, wheel_format
from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine.cuda import Cuda
from bazel.pybuild.machine.cuda_toolkits import Toolkit
from bazel.pybuild.options import Options, WheelKind
from test.build.shell import program

_PYPROJECT = """
[project]
name = "torch_xla_lite"
version = "0.1.0"
description = "What it is"
readme = "README.md"
requires-python = ">=3.11"
license = "MIT"
license-files = ["LICENSE"]
dependencies = ["torch==2.13.0"]
classifiers = ["Programming Language :: C++"]
scripts = { torch-xla-lite = "torch_xla_lite.cli:main" }
"""
_CUDA = Cuda(True, Toolkit(Path("/none"), "13.0.88", "a test"), (), "on: for a test")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    for name, content in {
        "pyproject.toml": _PYPROJECT,
        "README.md": "# Title\n\nText.\n",
        "LICENSE": "Do what you like.\n",
        "torch_xla_lite/__init__.py": "",
        "torch_xla_lite/device/autoload.py": "def register(): ...\n",
        "torch_xla_lite/py.typed": "",
        "torch_xla_lite/_build_info.py": "of an editable install",
        "torch_xla_lite/_XLAC.so": "of an editable install",
        "torch_xla_lite/inner/module.py": "x = 1\n",
        "torch_xla_lite/csrc/code.h": "int one();\n",
        "torch_xla_lite/BUILD.bazel": "",
    }.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return folder


@pytest.fixture
def built(tmp_path: Path) -> dict[str, Path]:
    """What Bazel has made for the whole package."""
    return {
        path: _file(tmp_path / "bazel-out" / Path(path).name, path)
        for path in (
            "torch_xla_lite/_XLAC.so",
            "torch_xla_lite/_build_info.py",
            "torch_xla_lite/include/torch_xla_lite/one.h",
            "torch_xla_lite/lib/libtorch_xla_lite.so",
        )
    }


def _file(file: Path, content: str) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(content)
    return file


def _write(root: Path, built: dict[str, Path], kind: WheelKind, folder: Path) -> Path:
    half = {
        WheelKind.ALL: lambda path: True,
        WheelKind.LIBRARY: lambda path: "/lib/" in path or "/include/" in path,
        WheelKind.PYTHON: lambda path: "/lib/" not in path and "/include/" not in path,
    }[kind]
    files = {path: file for path, file in built.items() if half(path)}
    return folder / wheel_format.write(root, Options(wheel_kind=kind), files, folder)


def _members(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _package(file: Path) -> dict[str, bytes]:
    return {name: text for name, text in _members(file).items() if ".dist-info/" not in name}


@pytest.fixture
def whole(root: Path, built: dict[str, Path], tmp_path: Path) -> Path:
    return _write(root, built, WheelKind.ALL, tmp_path)


@pytest.fixture
def library(root: Path, built: dict[str, Path], tmp_path: Path) -> Path:
    return _write(root, built, WheelKind.LIBRARY, tmp_path)


@pytest.fixture
def python_only(root: Path, built: dict[str, Path], tmp_path: Path) -> Path:
    return _write(root, built, WheelKind.PYTHON, tmp_path)


def _metadata(file: Path) -> list[str]:
    (text,) = [text for name, text in _members(file).items() if name.endswith("/METADATA")]
    return text.decode().splitlines()


def test_a_wheel_holds_the_python_sources_and_what_bazel_has_built(whole: Path):
    assert sorted(_package(whole)) == [
        "torch_xla_lite/_XLAC.so",
        "torch_xla_lite/__init__.py",
        "torch_xla_lite/_build_info.py",
        "torch_xla_lite/device/autoload.py",
        "torch_xla_lite/include/torch_xla_lite/one.h",
        "torch_xla_lite/inner/module.py",
        "torch_xla_lite/lib/libtorch_xla_lite.so",
        "torch_xla_lite/py.typed",
        "torch_xla_lite_autoload.py",
    ]


def test_the_module_that_torch_calls_is_beside_the_package(
    whole: Path, python_only: Path, library: Path
):
    assert _members(whole)["torch_xla_lite_autoload.py"] == b"def register(): ...\n"
    assert "torch_xla_lite_autoload.py" in _members(python_only)
    assert "torch_xla_lite_autoload.py" not in _members(library)


def test_what_an_editable_install_has_put_into_the_tree_is_not_taken(whole: Path):
    assert b"of an editable install" not in _members(whole).values()


def test_the_whole_is_the_sum_of_its_halves(whole: Path, library: Path, python_only: Path):
    assert not _package(library).keys() & _package(python_only).keys()
    assert _package(whole) == _package(library) | _package(python_only)


@pytest.mark.parametrize(("gpu", "version"), [(None, "0.1.0"), (_CUDA, "0.1.0+cu130")])
def test_the_python_code_requires_the_library_of_its_own_version(
    root: Path, tmp_path: Path, gpu: Cuda | None, version: str
):
    options = Options(wheel_kind=WheelKind.PYTHON)
    made = tmp_path / wheel_format.write(root, options, {}, tmp_path, gpu)
    assert f"Requires-Dist: torch_xla_lite_lib=={version}" in _metadata(made)


def test_the_whole_and_the_library_require_no_other_half(whole: Path, library: Path):
    assert [line for line in _metadata(whole) if line.startswith("Requires-Dist")] == [
        "Requires-Dist: torch==2.13.0"
    ]
    assert not [line for line in _metadata(library) if line.startswith("Requires-Dist")]


def test_each_has_its_name_and_the_library_is_for_every_python_and_the_rest_for_this_one(
    whole: Path, library: Path, python_only: Path
):
    this = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert whole.name.startswith(f"torch_xla_lite-0.1.0-{this}-{this}{sys.abiflags}-linux_")
    assert library.name.startswith("torch_xla_lite_lib-0.1.0-py3-none-linux_")
    assert python_only.name.startswith(f"torch_xla_lite_python-0.1.0-{this}-")


@pytest.mark.parametrize(
    ("options", "gpu", "version"),
    [
        (Options(), None, "0.1.0"),
        (Options(), _CUDA._replace(packaged=False), "0.1.0"),
        (Options(), _CUDA, "0.1.0+cu130"),
        (Options(version="0.2.0.dev1"), None, "0.2.0.dev1"),
        (Options(version="0.2.0"), _CUDA, "0.2.0+cu130"),
        (Options(version="0.2.0+mine"), _CUDA, "0.2.0+mine"),
    ],
)
@pytest.mark.parametrize("kind", WheelKind)
def test_an_index_can_hold_wheels_with_and_without_cuda_and_of_any_version(
    root: Path,
    tmp_path: Path,
    kind: WheelKind,
    options: Options,
    gpu: Cuda | None,
    version: str,
):
    options = options._replace(wheel_kind=kind)
    made = tmp_path / wheel_format.write(root, options, {}, tmp_path, gpu)
    assert made.name.split("-")[1] == version
    assert f"Version: {version}" in _metadata(made)


def test_a_build_number_is_in_the_name_and_in_the_wheel(root: Path, tmp_path: Path):
    made = tmp_path / wheel_format.write(root, Options(build_number=3), {}, tmp_path)
    assert parse_wheel_filename(made.name)[2] == (3, "")
    (text,) = [text for name, text in _members(made).items() if name.endswith("/WHEEL")]
    assert "\nBuild: 3\n" in text.decode()


def test_a_tree_from_a_source_distribution_has_the_version_of_that(root: Path):
    (root / "PKG-INFO").write_text("Name: torch_xla_lite\nVersion: 0.2.0.dev1\n")
    # pip refuses any other, even one with a local part alone.
    assert metadata.for_wheel(root, Options(), "13.0.88").version == "0.2.0.dev1"


def test_the_tag_inside_is_the_one_in_the_name(whole: Path):
    (text,) = [text for name, text in _members(whole).items() if name.endswith("/WHEEL")]
    tag = whole.stem.removeprefix("torch_xla_lite-0.1.0-")
    assert f"Tag: {tag}\n" in text.decode()
    assert "Root-Is-Purelib: false\n" in text.decode()


def test_the_record_has_size_and_hash_of_every_file(whole: Path):
    members = _members(whole)
    (record,) = [name for name in members if name.endswith("/RECORD")]
    rows = dict(line.split(",", 1) for line in members.pop(record).decode().splitlines())
    assert rows.pop(record) == ","
    assert rows == {
        name: "sha256={},{}".format(
            base64.urlsafe_b64encode(hashlib.sha256(text).digest()).decode().rstrip("="), len(text)
        )
        for name, text in members.items()
    }


def test_the_dist_info_folder_stands_last(whole: Path):
    names = list(_members(whole))
    at_the_end = [name for name in names if ".dist-info/" in name]
    assert names[-len(at_the_end) :] == at_the_end


def test_readme_licence_classifiers_and_commands_reach_the_user(whole: Path):
    assert {"License-Expression: MIT AND BSD-3-Clause AND NCSA", "License-File: LICENSE"} < set(
        _metadata(whole)
    )
    assert "Classifier: Programming Language :: C++" in _metadata(whole)
    assert _metadata(whole)[-3:] == ["# Title", "", "Text."]
    members = _members(whole)
    licence = members["torch_xla_lite-0.1.0.dist-info/licenses/LICENSE"]
    assert licence.startswith(b"Do what you like.\n")
    commands = members["torch_xla_lite-0.1.0.dist-info/entry_points.txt"].decode()
    assert commands == "[console_scripts]\ntorch-xla-lite = torch_xla_lite.cli:main\n"


@pytest.mark.parametrize(
    ("module", "step"), [(wheel_format, "write"), (client, "remove_bazel_files")]
)
def test_no_other_build_has_the_tree_while_a_wheel_is_packed_and_bazels_files_go(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, step: str
):
    done, taken = getattr(module, step), []

    def check(*arguments: Any) -> Any:
        with (root / "build" / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                taken.append(True)
        return done(*arguments)

    # The tree is that of a source distribution, and Bazel, which takes long, has done its part.
    (root / "PKG-INFO").touch()
    (root / configure.FILE).touch()
    nothing = report.Report(True, 0, events.Outcome("", (), {}, 0, 0, 0), {})
    monkeypatch.setattr(build, "build", lambda *arguments, into, configured: nothing)
    monkeypatch.setattr(module, step, check)
    wheel.make(root, Options(), {"PATH": str(tmp_path)}, tmp_path / "dist")
    assert taken


def test_a_build_that_is_not_worth_starting_starts_no_bazel_to_remove_its_files(
    root: Path, tmp_path: Path
):
    (root / "PKG-INFO").touch()
    (root / "requirements.txt").touch()
    project = root / "pyproject.toml"
    text = project.read_text().replace("torch==2.13.0", "torch>=0.0,<0.2")
    project.unlink()
    project.write_text(text)
    bazel = program(tmp_path / "bazel", f"echo $1 >> {tmp_path}/asked")
    with pytest.raises(BuildError, match="torch"):
        wheel.make(root, Options(bazel=str(bazel)), dict(os.environ), tmp_path / "dist")
    assert not (tmp_path / "asked").exists()


def test_all_files_have_the_time_of_source_date_epoch(root: Path, tmp_path: Path):
    name = wheel_format.write(root, Options(archive_time_s=1700000001), {}, tmp_path)
    with zipfile.ZipFile(tmp_path / name) as archive:
        # A zip archive has an even number of seconds.
        assert {entry.date_time for entry in archive.infolist()} == {(2023, 11, 14, 22, 13, 20)}


def test_shared_objects_are_executable_and_sources_are_not(whole: Path):
    with zipfile.ZipFile(whole) as archive:
        modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
    assert modes["torch_xla_lite/_XLAC.so"] == 0o100755
    assert modes["torch_xla_lite/__init__.py"] == 0o100644


def test_an_isolated_build_has_nothing_to_download():
    with Path("pyproject.toml").open("rb") as file:
        requires = tomllib.load(file)["build-system"]["requires"]
    asked = (
        backend.get_requires_for_build_wheel()
        + backend.get_requires_for_build_sdist()
        + backend.get_requires_for_build_editable()
    )
    assert requires + asked == []


def test_the_version_of_an_editable_install_can_be_a_setting(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(backend, "_root", lambda: root)
    monkeypatch.setenv("TORCH_XLA_LITE_BUILD_VERSION", "")
    folder = backend.prepare_metadata_for_build_editable(str(tmp_path), {"build-version": "0.9"})
    assert folder == "torch_xla_lite-0.9.dist-info"
    assert "\nVersion: 0.9\n" in (tmp_path / folder / "METADATA").read_text()
