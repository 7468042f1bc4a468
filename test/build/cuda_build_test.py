"""CUDA builds with a real Bazel and a real nvcc, on a machine that needs no GPU."""

import os
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bazel.pybuild.machine import cuda_toolkits, toolchain
from test.build.cuda_tree import CudaTree
from test.build.environments import environment
from test.build.nvidia import codes, toolkit

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Iterator[CudaTree]:
    nvcc = toolkit() / "bin" / "nvcc"
    _, problems = cuda_toolkits.find([(nvcc, "this test")], toolchain.compiler(os.environ), None)
    if "unsupported" in "".join(problems):
        pytest.skip(problems[0])
    tree = CudaTree(tmp_path_factory.mktemp("nested"), shared)
    yield tree
    tree.close()


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Iterator[CudaTree]:
    """The same tree at another place, of another length."""
    tree = CudaTree(tmp_path_factory.mktemp("at") / "another" / "place", shared)
    yield tree
    tree.close()


@pytest.fixture
def built(tree: CudaTree) -> CudaTree:
    """The tree after a build with CUDA, whatever the test before did to it."""
    tree.write("factor.h", "#pragma once\nconstexpr int kFactor = 2;\n")
    tree.develop(USE_CUDA="1")
    return tree


_NOTHING = {"compile": 0, "link": 0, "other": 0}
_CODES = "toolkit 13.0.88; sm_80 sm_90 compute_90"
_EVIDENCE = f"torch 2.13.0+cu130 is built for CUDA 13.0; {_CODES}"


def test_without_a_gpu_the_library_is_built_for_each_requested_architecture(built: CudaTree):
    assert codes(built.library) == {"sm_80", "sm_90", "compute_90"}


def test_the_library_needs_nothing_of_cuda_to_be_loaded(built: CudaTree):
    process = built.run("readelf", "--dynamic", "--wide", built.library)
    needed = [line for line in process.stdout.splitlines() if "(NEEDED)" in line]
    assert needed
    assert not [line for line in needed if "cuda" in line]


def test_the_evidence_is_recorded_in_the_package_and_printed_once(built: CudaTree):
    # The first build has said that there are CUDA kernels, and another reason is no other decision.
    assert "CUDA kernels" not in built.setup("develop").stdout
    recorded = (built.root / "torch_xla_lite" / "_build_info.py").read_text()
    assert _EVIDENCE in recorded
    assert str(built.root) not in recorded


def test_a_header_that_is_not_declared_is_an_error_that_names_it(built: CudaTree):
    built.write("hidden.h", "#pragma once\nconstexpr int kFactor = 3;\n")
    built.write("factor.h", '#pragma once\n#include "torch_xla_lite/hidden.h"\n')
    before = built.library.read_bytes()
    process = built.setup("develop")
    assert process.returncode == 1
    assert "torch_xla_lite/hidden.h is included, but no target in deps has it" in process.stderr
    assert built.library.read_bytes() == before


def test_options_of_the_host_compiler_arrive_as_they_are(built: CudaTree):
    text = r'"a, b\\"'
    built.write(
        "factor.h",
        f"constexpr int kFactor = SUM(1, 2);\nstatic_assert(sizeof(TEXT) == sizeof({text}));\n",
    )
    options = ["--copt=-DSUM(a,b)=(a+b)", f"--cxxopt=-DTEXT={text}"]
    built.bazel("build", *options, "//torch_xla_lite:scale", check=True)


def test_another_clone_without_a_cache_builds_the_same_bytes(built: CudaTree, clone: CudaTree):
    options = "--disk_cache="
    report = clone.develop(USE_CUDA="1", TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS=options)
    assert report["actions"]["compile"] == 4
    for file in ("lib/libtorch_xla_lite_cuda.so", "_build_info.py"):
        paths = [tree.root / "torch_xla_lite" / file for tree in (built, clone)]
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_toolkit_of_conda_forge_builds_the_same(built: CudaTree, tmp_path: Path):
    # It has headers and libraries below one folder, beside those of other packages.
    prefix, given = tmp_path / "conda", toolkit()
    for folder in ("bin", "nvvm"):
        shutil.copytree(given / folder, prefix / folder, symlinks=True)
    for folder in ("include", "lib"):
        (prefix / "targets" / "x86_64-linux").mkdir(parents=True, exist_ok=True)
        (prefix / "targets" / "x86_64-linux" / folder).symlink_to(given / folder)
    before = built.library.read_bytes()
    report = built.develop(USE_CUDA="1", CUDA_HOME="", CONDA_PREFIX=str(prefix))
    assert _EVIDENCE in report["cuda"]
    assert built.library.read_bytes() == before


def test_off_takes_the_library_out_of_the_package(built: CudaTree):
    report = built.develop(USE_CUDA="0")
    assert report["cuda"] == "off: USE_CUDA=0"
    assert not built.library.exists()


def test_one_beside_a_torch_for_cpus_builds_the_library(tree: CudaTree, tmp_path: Path):
    python = environment(tmp_path / "cpu")
    process = tree.run(python, "setup.py", "develop", check=True, USE_CUDA="1")
    assert f"CUDA kernels: built (USE_CUDA=1; {_CODES}" in process.stdout
    assert codes(tree.library) == {"sm_80", "sm_90", "compute_90"}


def test_a_wheel_with_the_library_has_the_version_of_cuda(built: CudaTree, tmp_path: Path):
    built.must("bdist_wheel", "-d", str(tmp_path))
    (made,) = tmp_path.glob("*.whl")
    assert made.name.startswith("torch_xla_lite-0.1.0+cu130-cp3")


def test_pip_installs_a_source_distribution_though_its_wheel_has_the_library(
    built: CudaTree, tmp_path: Path
):
    # pip refuses a wheel of another version than the name of the source distribution says.
    built.must("sdist", "-d", str(tmp_path / "index"))
    pip = (sys.executable, "-m", "pip", "--python", str(built.python), "wheel", "--no-index")
    wishes = ("--no-deps", "--no-build-isolation", "--find-links", str(tmp_path / "index"))
    built.run(*pip, *wishes, "-w", str(tmp_path / "made"), "torch_xla_lite==0.1.0", check=True)
    (wheel,) = (tmp_path / "made").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "torch_xla_lite/lib/libtorch_xla_lite_cuda.so" in archive.namelist()


def test_a_bare_build_of_all_works_without_a_toolkit(tree: CudaTree):
    tree.develop(USE_CUDA="0")
    tree.bazel("build", "//...", check=True)
