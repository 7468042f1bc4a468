"""The real package in wheels: what users and indexes get, made of what Bazel has built for this
test."""

import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bazel.pybuild.dist import sdist, wheel_format
from bazel.pybuild.options import Options, WheelKind
from test.build.environments import environment
from test.build.tree import ROOT, linked
from third_party import elf

_TOOLS = Path(sys.executable).parent
_LIBRARY = ("torch_xla_lite/lib/", "torch_xla_lite/include/")


@pytest.fixture(scope="module")
def built() -> dict[str, Path]:
    """Path in a wheel -> file, as Bazel gives them."""
    patterns = ("*.so", "_build_info.py", "*.pyi", "lib/*.so", "include/**/*.h")
    package = Path("torch_xla_lite")
    return {str(file): file for pattern in patterns for file in package.glob(pattern)}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return linked(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def whole(root: Path, built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    return folder / wheel_format.write(root, Options(), built, folder)


@pytest.fixture(scope="module")
def archives(
    root: Path, whole: Path, built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> list[Path]:
    """All that can be uploaded: the wheel, its halves and the source distribution."""
    folder = tmp_path_factory.mktemp("archives")
    library = {path: file for path, file in built.items() if path.startswith(_LIBRARY)}
    python = {path: file for path, file in built.items() if path not in library}
    (folder / "python").mkdir()
    return [
        whole,
        folder / wheel_format.write(root, Options(wheel_kind=WheelKind.LIBRARY), library, folder),
        folder
        / "python"
        / wheel_format.write(root, Options(wheel_kind=WheelKind.PYTHON), python, folder / "python"),
        folder / sdist.make(root, Options(), folder),
    ]


def _members(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _run(*command: str | Path, folder: Path | None = None) -> str:
    # Tools are found beside the interpreter, as in an activated environment; what this test imports
    # by its PYTHONPATH is not for them.
    environ = {**os.environ, "PATH": f"{_TOOLS}:{os.environ['PATH']}", "PYTHONPATH": ""}
    process = subprocess.run(
        command,
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def _compute(file: Path, folder: Path) -> str:
    """Installs a wheel into an environment of its own, and computes with it."""
    python = environment(folder / "environment")
    _run(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", file)
    script = (
        "import torch, torch_xla_lite; from pathlib import Path\n"
        "assert 'environment' in Path(torch_xla_lite.__file__).parts, torch_xla_lite.__file__\n"
        "print((torch.arange(4.0, device='jax') * 2).sum().item())"
    )
    return _run(python, "-P", "-c", script, folder=folder).strip()


def test_everything_that_bazel_builds_for_it_is_in_the_wheel(whole: Path, built: dict[str, Path]):
    assert {"torch_xla_lite/_XLAC.so", "torch_xla_lite/lib/libtorch_xla_lite.so"} < built.keys()
    assert built.keys() < _members(whole).keys()


@pytest.mark.nightly
def test_an_index_accepts_each_of_them(archives: list[Path]):
    _run(_TOOLS / "twine", "check", "--strict", *archives)


def test_there_is_nothing_unusual_in_the_wheels(archives: list[Path]):
    wheels = [file for file in archives if file.suffix == ".whl"]
    command = [_TOOLS / "check-wheel-contents", "--no-config", *wheels]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [line.strip() for line in done.stdout.splitlines() if not line.endswith(": OK")]
    # What `import torch` calls is a module of its own, and the file of the package is the same.
    twice = ["torch_xla_lite/device/autoload.py", "torch_xla_lite_autoload.py"]
    beside = ["torch_xla_lite/", "torch_xla_lite_autoload.py"]
    with_package = [line for line in found if ": W" in line]
    assert {line.rpartition(".whl: ")[2][:4] for line in with_package} == {"W002", "W009"}
    assert sorted({*found} - {*with_package}) == sorted({*twice, *beside})


def test_the_wheel_has_at_most_three_megabytes(whole: Path):
    assert whole.stat().st_size <= 3_000_000


def test_no_file_holds_a_path_of_this_machine(whole: Path):
    package = Path("torch_xla_lite/_XLAC.so").resolve().parent
    # Bazel's outputs are in <output base>/execroot/<workspace>/bazel-out/...
    bases = [folder.parent for folder in package.parents if folder.name == "execroot"]
    paths = {ROOT, Path(sys.prefix), *bases, Path.home()}
    found = [
        (name, path)
        for name, content in _members(whole).items()
        for path in paths
        if f"{path}/".encode() in content
    ]
    assert not found


def test_libraries_are_looked_for_relative_to_the_file_alone(built: dict[str, Path]):
    folders = set()
    for path, file in built.items():
        if path.endswith(".so"):
            with elf.opened(file) as opened:
                folders |= set(opened.search_path)
    assert folders == {"$ORIGIN/lib", "$ORIGIN/../torch/lib", "$ORIGIN/../../torch/lib"}


@pytest.mark.nightly
def test_it_computes_where_it_was_installed(whole: Path, tmp_path: Path):
    assert _compute(whole, tmp_path) == "12.0"


@pytest.mark.nightly
@pytest.mark.skipif(
    tuple(map(int, platform.libc_ver()[1].split("."))) > (2, 41),
    reason="the C library of this system is newer than any tag that auditwheel knows",
)
def test_with_a_manylinux_tag_it_computes_too(whole: Path, tmp_path: Path):
    _run(ROOT / "scripts" / "ci" / "manylinux.sh", "--wheel-dir", tmp_path, whole)
    (repaired,) = tmp_path.glob("*.whl")
    assert "-manylinux_2_" in repaired.name
    libraries = [name for name in _members(repaired) if ".so" in name]
    assert sorted(libraries) == sorted(name for name in _members(whole) if ".so" in name)
    assert _compute(repaired, tmp_path) == "12.0"
