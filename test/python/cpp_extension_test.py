"""utils.cpp_extension: what it refuses, and what it says then. test/extension builds with it."""

from pathlib import Path

import pytest

from torch_xla_lite.utils import cpp_extension


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed torch_xla_lite of which only the Python code is there; also where setup.py
    runs."""
    folder = tmp_path / "site-packages" / "torch_xla_lite"
    folder.mkdir(parents=True)
    monkeypatch.setattr(cpp_extension, "_PACKAGE", folder)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "handlers.cc").write_text("")
    (tmp_path / "handlers.cu").write_text("")
    return folder


def _add_headers(package: Path) -> None:
    (package / "include").mkdir()


def _add_library(package: Path) -> None:
    (package / "lib").mkdir()
    (package / "lib" / "libtorch_xla_lite.so").write_text("")


def test_without_headers_it_says_where_they_come_from(package: Path):
    _add_library(package)
    with pytest.raises(RuntimeError, match=r"has no headers.\n.*pip install .*torch_xla_lite_lib"):
        cpp_extension.XLAExtension("example._handlers", ["handlers.cc"])


def test_without_libraries_it_says_where_they_come_from(package: Path):
    _add_headers(package)
    with pytest.raises(
        RuntimeError, match=r"has no libraries.\n.*pip install .*torch_xla_lite_lib"
    ):
        cpp_extension.XLAExtension("example._handlers", ["handlers.cc"])


def test_in_a_tree_that_is_not_built_it_says_how_to_build_it(package: Path):
    (package.parent / "setup.py").write_text("")
    with pytest.raises(RuntimeError, match=r"Build it:  python setup.py develop"):
        cpp_extension.library_paths()


def test_in_an_editable_install_the_sources_are_the_headers(package: Path):
    (package / "csrc" / "ir").mkdir(parents=True)
    (package / "csrc" / "ir" / "shape.h").write_text("")
    assert cpp_extension.include_paths()[0] == str(package.parent)


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ([], "has no sources"),
        (["missing.cc"], r"there is no missing.cc in .*\nName `sources` relative to setup.py"),
        (["kernel.f90"], r"kernel.f90 is neither C\+\+ .* nor CUDA"),
        (["handlers.cc", "handlers.cu"], r"both C\+\+ and CUDA .*\nMake two extensions"),
    ],
)
def test_wrong_sources_are_named(package: Path, sources: list[str], message: str):
    with pytest.raises(ValueError, match=message):
        cpp_extension.XLAExtension("example._handlers", sources)


def test_what_the_user_adds_comes_beside_ours_and_wins(package: Path):
    _add_headers(package)
    _add_library(package)
    extension = cpp_extension.XLAExtension(
        "example._handlers",
        ["handlers.cc"],
        include_dirs=["mine"],
        libraries=["m"],
        extra_compile_args=["-O3"],
    )
    assert extension.include_dirs == ["mine", str(package / "include")]
    assert extension.libraries == ["m", "torch_xla_lite"]
    flags = extension.extra_compile_args
    assert (flags[0], flags[-1]) == ("-std=c++20", "-O3")


@pytest.fixture
def toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the parts of a CUDA toolkit that an extension asks for; nvcc tells its name."""
    folder = tmp_path / "toolkit"
    (folder / "bin").mkdir(parents=True)
    nvcc = folder / "bin" / "nvcc"
    nvcc.write_text(f"#!/bin/sh\necho '#$ TOP={folder}' >&2\n")
    nvcc.chmod(0o755)
    (folder / "lib64").mkdir()
    (folder / "lib64" / "libcudart_static.a").write_text("")
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("CUDA_HOME", str(folder))
    return folder


def test_cuda_sources_without_nvcc_are_refused_with_a_remedy(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "missing"))
    with pytest.raises(RuntimeError, match=r"no nvcc.\nName the CUDA toolkit in CUDA_HOME"):
        cpp_extension.XLAExtension("example._cuda_handlers", ["handlers.cu"])


def test_nvcc_may_be_a_script_beside_no_toolkit(
    package: Path, toolkit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    _add_headers(package)
    _add_library(package)
    script = tmp_path / "scripts" / "nvcc"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {toolkit}/bin/nvcc "$@"\n')
    script.chmod(0o755)
    monkeypatch.delenv("CUDA_HOME")
    monkeypatch.setenv("PATH", str(script.parent), prepend=":")
    extension = cpp_extension.XLAExtension("example._cuda_handlers", ["handlers.cu"])
    assert str(toolkit / "lib64") in extension.library_dirs


@pytest.mark.parametrize(
    ("given", "variable", "expected"),
    [
        ([], "", ["-arch=all-major"]),
        (["-G"], "", ["-arch=all-major"]),
        (["-arch=sm_90"], "8.0", ["-arch=sm_90"]),
        ([], "8.0", ["-gencode=arch=compute_80,code=sm_80"]),
    ],
)
def test_the_user_may_name_the_gpu_architectures(
    package: Path,
    toolkit: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: list[str],
    variable: str,
    expected: list[str],
):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", variable)
    _add_headers(package)
    _add_library(package)
    extension = cpp_extension.XLAExtension(
        "example._cuda_handlers", ["handlers.cu"], extra_compile_args=given
    )
    assert [flag for flag in extension.extra_compile_args if "arch" in flag] == expected


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("handlers", "$ORIGIN/torch_xla_lite/lib"),
        ("example.xla.handlers", "$ORIGIN/../../torch_xla_lite/lib"),
    ],
)
def test_the_run_path_leads_from_the_extension_to_us(package: Path, name: str, folder: str):
    _add_headers(package)
    _add_library(package)
    extension = cpp_extension.XLAExtension(name, ["handlers.cc"])
    assert extension.extra_link_args == [f"-Wl,-rpath,{folder}"]


def test_a_library_that_was_not_built_is_named():
    with pytest.raises(ImportError, match=r"torch_xla_lite.no_such has not been built.\nBuild it:"):
        cpp_extension.register_ffi_library("torch_xla_lite.no_such", {})


def test_a_file_that_is_no_library_is_named(tmp_path: Path):
    file = tmp_path / "handlers.so"
    file.write_text("no library")
    with pytest.raises(ImportError, match=r"handlers.so does not load .*\nBuild it again:"):
        cpp_extension.register_ffi_library(file, {})


def test_a_handler_that_the_library_has_not_is_named():
    with pytest.raises(ImportError, match=r"has no symbol NoSuchHandler.\nDefine it in C"):
        cpp_extension.register_ffi_library("torch_xla_lite._XLAC", {"target": "NoSuchHandler"})
