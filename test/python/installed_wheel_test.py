"""A wheel of the libraries that Bazel has built, installed with pip."""

import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from bazel.pybuild.dist import wheel_format
from bazel.pybuild.dist.strip import strip
from bazel.pybuild.options import Options
from test.build.tree import ROOT
from third_party import elf

_BUILT = (
    "torch_xla_lite/_XLAC.so",
    "torch_xla_lite/_build_info.py",
    "torch_xla_lite/lib/libtorch_xla_lite.so",
    "torch_xla_lite/lib/libtorch_xla_lite_ffi.so",
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = strip({path: Path(path) for path in _BUILT}, folder / "stripped")
    return folder / wheel_format.write(ROOT, Options(), built, folder)


@pytest.fixture(scope="module")
def programs(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment with the wheel. It also sees the packages of the test's
    environment."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    site = _site(folder / "bin")
    python = folder / "bin" / "python"
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "--python", python, "install", *options, file]
    subprocess.run(command, check=True)
    ours = [path for path in sys.path if path.endswith("site-packages")]
    (site / "ours.pth").write_text("".join(f"{path}\n" for path in ours))
    return folder / "bin"


def _site(programs: Path) -> Path:
    (site,) = programs.parent.glob("lib/python3*/site-packages")
    return site


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    # Outside the tree, because its package would be found first.
    return subprocess.run(command, cwd="/", env={}, capture_output=True, text=True, check=False)


@pytest.mark.nightly
def test_the_doctor_finds_no_problem(programs: Path):
    result = _run(programs / "torch-xla-lite", "doctor")
    assert result.returncode == 0, result.stdout + result.stderr
    lines = result.stdout.splitlines()
    assert lines[-1] == "All is well."
    assert all(line.startswith("ok ") for line in lines[:-1])
    assert any("a small graph is compiled and gives the right numbers" in line for line in lines)


@pytest.mark.nightly
def test_who_gets_the_wheel_can_follow_the_page_in_a_bare_environment(file: Path, tmp_path: Path):
    page = (ROOT / "docs" / "packaging.md").read_text()
    (commands,) = re.findall(r"## Give it to somebody\n.*?```sh\n(.*?)```", page, re.DOTALL)
    (tmp_path / file.name).symlink_to(file)
    # Stands for the index: the packages that pip would fetch, but not this one.
    packages = tmp_path / "packages"
    packages.mkdir()
    for site in (Path(path) for path in sys.path if path.endswith("site-packages")):
        for entry in site.iterdir():
            if "torch_xla_lite" not in entry.name:
                (packages / entry.name).symlink_to(entry)
    done = subprocess.run(
        ["bash", "-e", "-c", commands],
        cwd=tmp_path,
        env={"PATH": f"{Path(sys.executable).parent}:{os.defpath}", "PYTHONPATH": str(packages)}
        | {"PIP_NO_INDEX": "1", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "All is well."


def test_the_version_is_that_of_the_wheel(file: Path, programs: Path):
    result = _run(programs / "python", "-c", "import torch_xla_lite as t; print(t.__version__)")
    assert f"-{result.stdout.strip()}-" in file.name, result.stderr


@pytest.mark.nightly
def test_import_torch_is_enough(programs: Path):
    program = "import torch; print(torch.arange(3, device='jax').tolist())"
    result = _run(programs / "python", "-c", program)
    assert result.stdout == "[0, 1, 2]\n", result.stderr


def test_with_another_torch_the_error_asks_for_another_wheel(programs: Path):
    other = _site(programs) / "torch"
    other.mkdir()
    (other / "__init__.py").write_text("__version__ = '2.12.1+cpu'\n")
    try:
        result = _run(programs / "python", "-c", "import torch_xla_lite")
    finally:
        (other / "__init__.py").unlink()
        other.rename(other.with_name("gone"))
    assert result.returncode == 1
    problem, remedy = result.stderr.splitlines()[-2:]
    assert problem.endswith("was built for torch 2.13.0 but torch 2.12.1 is installed.")
    assert remedy.startswith("Install a wheel that was built for this torch")


def test_the_wheel_is_small(file: Path):
    assert file.stat().st_size < 3_000_000


def test_the_libraries_are_stripped(file: Path, tmp_path: Path):
    with zipfile.ZipFile(file) as archive:
        library = Path(archive.extract("torch_xla_lite/_XLAC.so", tmp_path))
    listed = _run("/usr/bin/env", "PATH=/usr/bin:/bin", "nm", library)
    assert listed.stdout == ""
    assert "no symbols" in listed.stderr


def test_the_wheel_contains_the_stub_and_py_typed(programs: Path):
    package = _site(programs) / "torch_xla_lite"
    assert (package / "py.typed").exists()
    assert (package / "_XLAC.pyi").exists()


def test_the_licence_covers_the_code_that_is_compiled_in(programs: Path):
    (licence,) = _site(programs).glob("torch_xla_lite-*.dist-info/licenses/LICENSE")
    text = licence.read_text()
    assert text.startswith("BSD 3-Clause License")
    for title in ("PyTorch (", "XLA (", "pybind11 (", "{fmt} ("):
        assert f"\n  - {title}" in text


def test_stripping_keeps_the_exported_symbols(file: Path, tmp_path: Path):
    with zipfile.ZipFile(file) as archive:
        for path in _BUILT:
            if path.endswith(".so"):
                extracted = Path(archive.extract(path, tmp_path))
                assert elf.exported_symbols(extracted) == elf.exported_symbols(Path(path))
