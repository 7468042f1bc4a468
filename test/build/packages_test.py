"""Installed packages are found without importing them, and a change of one is noticed."""

import subprocess
import sys
from pathlib import Path

import pytest

from bazel.pybuild.machine import packages
from test.build.tree import ROOT


def _install(site: Path, name: str, version: str, record: str = "") -> Path:
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "RECORD").write_text(record)
    return info


def test_a_package_is_found_by_its_dist_info_folder(tmp_path: Path):
    info = _install(tmp_path, "torch", "2.13.0+cpu")
    found = packages.installed(["torch", "jax"], [str(tmp_path)])
    assert found == {"torch": packages.Package("torch", "2.13.0+cpu", info)}


def test_the_first_folder_wins_as_for_imports(tmp_path: Path):
    _install(tmp_path / "first", "jax", "1.0")
    _install(tmp_path / "second", "jax", "2.0")
    folders = [str(tmp_path / "first"), str(tmp_path / "second")]
    assert packages.installed(["jax"], folders)["jax"].version == "1.0"


def test_a_package_whose_name_only_starts_alike_is_another(tmp_path: Path):
    _install(tmp_path, "torch_geometric", "1.0")
    assert packages.installed(["torch"], [str(tmp_path)]) == {}


def test_a_folder_whose_name_only_begins_like_the_environment_is_not_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    other = tmp_path / "venv-2" / "site-packages"
    _install(other, "torch", "1.0")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "venv"))
    monkeypatch.setattr(sys, "path", [str(other)])
    assert packages.environment() == []


def test_the_packages_inside_setuptools_are_not_part_of_the_environment():
    script = (
        "from bazel.pybuild.machine import packages; before = packages.environment();"
        "import setuptools; print(before == packages.environment())"
    )
    command = [sys.executable, "-c", script]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"True\n"


def test_packages_of_the_base_installation_are_part_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folders = [tmp_path / "venv" / "site-packages", tmp_path / "base" / "dist-packages"]
    _install(folders[0], "numpy", "2.4.6")
    _install(folders[1], "rich", "14.0")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "base"))
    monkeypatch.setattr(sys, "path", [str(folder) for folder in folders])
    assert packages.environment() == ["numpy-2.4.6.dist-info", "rich-14.0.dist-info"]


def test_a_local_part_of_a_version_makes_no_other_release():
    versions = packages.Versions((2, 13), (2, 16))
    assert str(versions) == "2.13 to 2.15"
    assert all(versions.contain(version) for version in ("2.13.0", "2.14.1+cu130", "2.15.0rc1"))
    assert not any(versions.contain(version) for version in ("2.12.9", "2.16.0", "3.13", "main"))


def test_the_fingerprint_differs_when_a_file_of_the_package_does(tmp_path: Path):
    old = _install(tmp_path / "old", "torch", "2.13.0", "torch/lib/libc10.so,sha256=a,1\n")
    new = _install(tmp_path / "new", "torch", "2.13.0", "torch/lib/libc10.so,sha256=b,1\n")
    prints = [
        packages.fingerprint({"torch": packages.Package("torch", "2.13.0", info)})
        for info in (old, new)
    ]
    assert prints[0] != prints[1]


def test_the_fingerprint_does_not_depend_on_who_installed_the_package(tmp_path: Path):
    record = "torch/a.py,sha256=a,1\n"
    installer = "torch/__pycache__/a.cpython-311.pyc,,\ntorch-2.13.0.dist-info/INSTALLER,,\n"
    infos = [
        _install(tmp_path / "pip", "torch", "2.13.0", record + installer),
        _install(tmp_path / "uv", "torch", "2.13.0", record),
    ]
    prints = {
        packages.fingerprint({"torch": packages.Package("torch", "2.13.0", info)}) for info in infos
    }
    assert len(prints) == 1


def test_what_is_wanted_is_what_requirements_txt_pins(tmp_path: Path):
    (tmp_path / "requirements.txt").write_text("# Why.\ntorch==2.13.0  # of the bridge\nrich\n")
    assert packages.wanted(tmp_path) == {"torch": "2.13.0"}


def test_requirements_txt_pins_all_that_the_code_is_built_against():
    assert set(packages.BUILT_AGAINST) <= set(packages.wanted(ROOT))
