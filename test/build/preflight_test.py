"""Tests the errors of preflight."""

import os
import re
import shutil
from pathlib import Path

import pytest

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import packages, preflight
from bazel.pybuild.machine.packages import Package
from test.build.shell import program

_ACCEPTED = {
    "torch": packages.Versions((2, 13), (2, 16)),
    "jax": packages.Versions((0, 10), (0, 13)),
}
_WANTED = {"torch": "2.13.0", "jax": "0.10.2", "jaxlib": "0.10.2", "pybind11": "3.1.0"}


def _installed(**versions: str) -> dict[str, Package]:
    versions = {**_WANTED, **versions}
    return {
        name: Package(name, version, Path("/site") / f"{name}-{version}.dist-info")
        for name, version in versions.items()
    }


@pytest.mark.parametrize("name", ["torch", "jaxlib"])
def test_a_missing_package_is_named_and_the_message_ends_in_the_command(name: str):
    installed = _installed()
    del installed[name]
    with pytest.raises(BuildError) as error:
        preflight.check_packages(_WANTED, installed)
    assert error.value.problem.startswith(f"{name} is not installed for ")
    assert error.value.remedy.endswith(f"-m pip install {name}=={_WANTED[name]}")


def test_one_command_installs_all_that_is_missing():
    installed = _installed()
    del installed["torch"], installed["jax"]
    with pytest.raises(BuildError) as error:
        preflight.check_packages(_WANTED, installed)
    assert error.value.remedy.endswith(" install torch==2.13.0 jax==0.10.2")


@pytest.mark.parametrize("versions", [{}, {"torch": "2.14.1+cu130"}, {"torch": "2.15.0"}])
def test_accepted_versions_pass(versions: dict[str, str]):
    preflight.check_versions(_ACCEPTED, _installed(**versions))


@pytest.mark.parametrize(
    ("name", "version", "accepted"),
    [("torch", "2.11.0+cu128", "torch 2.13 to 2.15"), ("jax", "0.9.2", "jax 0.10 to 0.12")],
)
def test_another_version_is_named_beside_the_accepted_ones(name: str, version: str, accepted: str):
    with pytest.raises(BuildError) as error:
        preflight.check_versions(_ACCEPTED, _installed(**{name: version}))
    assert f"{name} {version}, in " in error.value.problem
    assert error.value.problem.endswith(f"built with: {accepted}.")
    # Nothing advises to replace a torch for CUDA.
    assert "install" not in error.value.remedy
    assert error.value.remedy.endswith("export TORCH_XLA_LITE_ANY_VERSION=1")


def test_packages_where_only_the_shell_leads_are_refused():
    with pytest.raises(BuildError, match=r"torch is in /site, which is .* because of PYTHONPATH"):
        preflight.check_places(_installed(), ["/environment/site-packages"])


def test_missing_c_headers_are_reported_with_the_package_that_has_them(tmp_path: Path):
    with pytest.raises(BuildError) as error:
        preflight.check_python("cpython", tmp_path)
    assert f"there is no {tmp_path / 'Python.h'}" in error.value.problem
    assert "apt-get install python3." in error.value.remedy


def test_a_cache_folder_may_be_one_that_is_made_later(tmp_path: Path):
    preflight.check_cache(tmp_path / "cache" / "bazel", "It is in")


def test_a_cache_folder_that_cannot_be_made_is_named_with_the_variables_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # Root may write anywhere.
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(BuildError) as error:
        preflight.check_cache(tmp_path / "cache" / "bazel", "The build cache is in")
    assert f"cache is in {tmp_path / 'cache' / 'bazel'}" in error.value.problem
    assert error.value.problem.endswith(f"may not write to {tmp_path}.")
    assert "XDG_CACHE_HOME" in error.value.remedy


def test_another_kind_of_python_is_refused(tmp_path: Path):
    with pytest.raises(BuildError, match="is pypy, and torch exists for CPython only"):
        preflight.check_python("pypy", tmp_path)


_LIBRARY = Package("torch-xla-lite-lib", "0.1.0", Path("/site/torch_xla_lite_lib-0.1.0.dist-info"))


def test_the_library_of_the_same_version_passes():
    preflight.check_library("0.1.0", _LIBRARY)


@pytest.mark.parametrize(
    ("installed", "message"),
    [
        (None, "torch_xla_lite_lib 0.2.0 is not installed for "),
        (_LIBRARY, "is version 0.2.0, but torch_xla_lite_lib 0.1.0 is installed"),
    ],
)
def test_another_or_no_library_is_reported_with_the_command_that_builds_it(
    installed: Package | None, message: str
):
    with pytest.raises(BuildError) as error:
        preflight.check_library("0.2.0", installed)
    assert message in error.value.problem
    assert "BUILD_LIB_WHL=1 " in error.value.remedy
    assert error.value.remedy.endswith("dist/torch_xla_lite_lib-0.2.0-*.whl")


def _package(site: Path, name: str, version: str) -> Package:
    for file in preflight._FILES[name]:
        (site / name / file).parent.mkdir(parents=True, exist_ok=True)
        (site / name / file).touch()
    return Package(name, version, site / f"{name}-{version}.dist-info")


@pytest.mark.parametrize(
    "file",
    ["version.py", "include/torch/library.h", "lib/libtorch_cpu.so", "lib/libtorch_python.so"],
)
def test_a_package_without_its_files_is_to_be_installed_again(tmp_path: Path, file: str):
    found = {name: _package(tmp_path, name, _WANTED[name]) for name in preflight._FILES}
    preflight.check_files(found)
    (tmp_path / "torch" / file).unlink()
    with pytest.raises(BuildError, match=f"torch 2.13.0 is damaged: .* has no {file}") as error:
        preflight.check_files(found)
    assert error.value.remedy.endswith("--force-reinstall --no-deps torch==2.13.0")


def test_a_torch_whose_headers_have_other_names_is_refused_in_one_line(tmp_path: Path):
    torch = Package("torch", "2.99.0", tmp_path / "torch-2.99.0.dist-info")
    with pytest.raises(BuildError, match=r"torch 2\.99\.0 has no header c10/core/Generat") as error:
        preflight.check_headers(torch)
    assert "third_party/torch/layers.py" in error.value.remedy


def test_a_user_without_a_name_gets_an_error_with_the_remedy():
    with pytest.raises(BuildError, match="uid 54321 has no passwd entry") as error:
        preflight.check_user(54321, {})
    assert "export USER=user54321" in error.value.remedy
    preflight.check_user(54321, {"USER": "builder"})


def test_the_compiler_of_this_machine_compiles_a_line():
    preflight.check_compiler(dict(os.environ))


@pytest.mark.parametrize(
    ("script", "output"),
    [
        (None, "No such file"),
        ("echo 'cannot execute cc1plus' >&2; exit 1", "it said:\n  cannot execute cc1plus"),
        ("exit 1", "it exits with 1, without a message.\nIt has to be gcc 11, clang 14 or newer."),
    ],
)
def test_a_missing_or_broken_compiler_is_named_with_its_output(
    tmp_path: Path, script: str | None, output: str
):
    compiler = tmp_path / "g++"
    if script:
        program(compiler, script)
    with pytest.raises(BuildError, match=rf"{re.escape(str(compiler))} cannot compile") as error:
        preflight.check_compiler({**os.environ, "CC": str(compiler)})
    assert output in error.value.problem
    assert error.value.remedy.endswith("unset CC")


def test_a_relative_compiler_is_refused_because_bazel_cannot_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gcc").symlink_to(str(shutil.which("gcc")))
    with pytest.raises(BuildError, match="CC=bin/gcc is a relative path") as error:
        preflight.check_compiler({**os.environ, "CC": "bin/gcc"})
    assert error.value.remedy == f"Make it absolute:  export CC={tmp_path}/bin/gcc"


def test_a_compiler_behind_another_command_is_told_the_recipe():
    with pytest.raises(BuildError, match="is a command with arguments") as error:
        preflight.check_compiler({**os.environ, "CC": "ccache gcc"})
    assert "docs/build.md#ccache" in error.value.remedy
    script = error.value.remedy.partition(":  ")[2]
    assert script == """printf '#!/bin/sh\\nexec ccache gcc "$@"\\n' > cc && chmod +x cc"""


def test_without_cc_the_remedy_installs_a_compiler():
    with pytest.raises(BuildError, match="gcc cannot compile") as error:
        preflight.check_compiler({"PATH": "/nowhere"})
    assert error.value.remedy == "Install one:  sudo apt-get install g++"
