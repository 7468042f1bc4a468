"""A CMake project uses the libraries and headers of a wheel."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bazel.pybuild.dist import cmake, wheel_format
from bazel.pybuild.options import Options, WheelKind
from test.bazel.made import made
from test.build import tree

_PROJECT = """\
cmake_minimum_required(VERSION 3.18)
project(elements CXX)
find_package(torch_xla_lite {version} REQUIRED)
add_executable(elements elements.cc)
target_link_libraries(elements PRIVATE torch_xla_lite::torch_xla_lite)
"""
_PROGRAM = """\
#include <cstdio>

#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

int main() {
  using torch_xla_lite::ir::DType;
  std::printf("%ld", torch_xla_lite::ir::Shape::Of(DType{6}, {2, 3})->NumElements());
}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library wheel unpacked beside torch."""
    folder = tmp_path_factory.mktemp("site")
    root = tree.linked(tmp_path_factory.mktemp("tree"))
    package = Path("torch_xla_lite")
    files = [*package.glob("lib/*.so"), *made("torch_xla_lite/include").glob("**/*.h")]
    built = {str(file): file for file in files}
    name = wheel_format.write(root, Options(wheel_kind=WheelKind.LIBRARY), built, folder)
    with zipfile.ZipFile(folder / name) as archive:
        archive.extractall(folder)
    torch = next(Path(path) / "torch" for path in sys.path if (Path(path) / "torch").is_dir())
    (folder / "torch").symlink_to(torch)
    return folder


def _configure(site: Path, folder: Path, version: str = "") -> "subprocess.CompletedProcess[str]":
    """Runs cmake on a project in `folder` that asks for a version."""
    (folder / "CMakeLists.txt").write_text(_PROJECT.format(version=version))
    (folder / "elements.cc").write_text(_PROGRAM)
    prefix = f"-DCMAKE_PREFIX_PATH={site / 'torch_xla_lite'}"
    command = ["cmake", "-S", folder, "-B", folder / "build", prefix]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_program_compiles_links_and_runs(site: Path, tmp_path: Path):
    assert shutil.which("cmake"), "scripts/test.sh installs it"
    configured = _configure(site, tmp_path, "0.1")
    assert configured.returncode == 0, configured.stderr
    command = ["cmake", "--build", tmp_path / "build"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    program = tmp_path / "build" / "elements"
    # Where the loader looks is in the program.
    environ = {"PATH": os.defpath}
    said = subprocess.run([program], env=environ, capture_output=True, text=True, check=True)
    assert said.stdout == "6"


@pytest.mark.parametrize(("version", "accepted"), [("0.1.0 EXACT", True), ("0.2", False)])
def test_a_version_that_does_not_suit_is_refused(
    site: Path, tmp_path: Path, version: str, accepted: bool
):
    assert (_configure(site, tmp_path, version).returncode == 0) is accepted


def test_without_torch_it_says_what_is_missing(site: Path, tmp_path: Path):
    shutil.copytree(site / "torch_xla_lite", tmp_path / "alone" / "torch_xla_lite")
    (tmp_path / "project").mkdir()
    process = _configure(tmp_path / "alone", tmp_path / "project")
    assert process.returncode != 0
    assert f"there is no torch in {tmp_path}/alone/torch" in " ".join(process.stderr.split())


@pytest.mark.parametrize("version", ["0.1.0", "0.1.0+cu130", "0.1.0.dev5"])
def test_cmake_gets_the_numbers_of_a_version(version: str):
    (text,) = [text for name, text in cmake.files(version).items() if "version" in name]
    assert b'set(PACKAGE_VERSION "0.1.0")' in text
