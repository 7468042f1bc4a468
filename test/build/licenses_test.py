"""Licences of others reach the users of a wheel."""

import sys
from pathlib import Path

import pytest
from packaging.licenses import canonicalize_license_expression

from bazel.pybuild.dist import licenses
from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import packages
from test.build.tree import ROOT, source_files
from third_party import elf

_LIBRARIES = [f"torch_xla_lite/lib/libtorch_xla_lite{name}.so" for name in ("", "_ffi")]
_BUILT = ["torch_xla_lite/_XLAC.so", *_LIBRARIES]
_CUDA = "torch_xla_lite/lib/libtorch_xla_lite_cuda.so"
_PARTS = [part for parts in licenses.SHIPPED.values() for part in parts]


def test_every_folder_of_third_party_says_what_of_it_is_shipped():
    folders = {file.parts[1] for file in source_files("third_party") if len(file.parts) > 2}
    assert folders == licenses.SHIPPED.keys() | licenses.NOT_SHIPPED.keys()


def test_our_own_licence_stands_first():
    ours = (ROOT / "LICENSE").read_text()
    assert licenses.text(ROOT, _BUILT).startswith(ours)
    assert "Copyright (c) 2026, torch_xla_lite developers" in ours


@pytest.mark.parametrize("part", _PARTS, ids=lambda part: part.name)
def test_the_licence_of_what_is_compiled_in_is_appended(part: licenses.Part):
    package = packages.installed([part.package], sys.path)[part.package]
    original = (package.info / "licenses" / part.file).read_text()
    appended = licenses.text(ROOT, _BUILT).partition(f"\n{part.name} (")[2]
    # The first of many licences in jaxlib's file.
    beginning = original.strip("-\n")[:1000]
    assert beginning in appended


def test_xla_has_its_own_licence_and_not_those_of_all_of_jaxlib():
    appended = licenses.text(ROOT, _BUILT).partition("\nXLA (")[2].partition("\npybind11 (")[0]
    assert "Apache License" in appended
    assert "OpenSSL" not in appended


def test_the_licence_of_cuda_comes_with_its_library_only(tmp_path: Path):
    (tmp_path / "EULA.txt").write_text("What NVIDIA permits.\n")
    assert "What NVIDIA permits." in licenses.text(ROOT, [*_BUILT, _CUDA], tmp_path)
    assert "NVIDIA CUDA" not in licenses.text(ROOT, _BUILT, tmp_path)


def test_a_licence_that_is_missing_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch):
    gone = licenses.Part(
        "Other", "torch", "third_party/other/LICENSE", "all of it", "MIT", ("_XLAC.so",)
    )
    monkeypatch.setitem(licenses.SHIPPED, "other", (gone,))
    with pytest.raises(BuildError, match=r"licence of Other.*third_party/other/LICENSE is missing"):
        licenses.text(ROOT, _BUILT)


@pytest.mark.parametrize("library", _BUILT)
def test_the_libraries_of_the_compiler_are_not_linked_in(library: str):
    # If they were, their licence and its exception would have to be with ours.
    with elf.opened(Path(library)) as file:
        assert {"libstdc++.so.6", "libgcc_s.so.1"} <= set(file.needed)


def test_the_notice_that_llvms_containers_in_pytorchs_headers_ask_for_is_there():
    assert "University of Illinois at Urbana-Champaign" in licenses.text(ROOT, _BUILT)


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        ([], "BSD-3-Clause"),
        (["torch_xla_lite/_XLAC.so"], "BSD-3-Clause AND MIT AND NCSA"),
        (_LIBRARIES, "BSD-3-Clause AND Apache-2.0 AND MIT AND NCSA"),
        (_BUILT, "BSD-3-Clause AND Apache-2.0 AND MIT AND NCSA"),
        (
            [*_BUILT, _CUDA],
            "BSD-3-Clause AND Apache-2.0 AND LicenseRef-NVIDIA-Proprietary AND MIT AND NCSA",
        ),
    ],
)
def test_the_expression_names_the_licences_of_what_is_in_the_wheel(built: list[str], expected: str):
    assert licenses.expression("BSD-3-Clause", built) == expected
    assert canonicalize_license_expression(expected) == expected


def test_a_wheel_without_a_part_does_not_contain_its_licence():
    assert "pybind11 (its headers" not in licenses.text(ROOT, _LIBRARIES)
    assert "XLA (the headers" not in licenses.text(ROOT, ["torch_xla_lite/_XLAC.so"])


@pytest.mark.parametrize("library", _BUILT)
@pytest.mark.parametrize(
    ("project", "namespace"),
    [("XLA", b"N3xla"), ("pybind11", b"N8pybind11"), ("PyTorch", b"N3c10")],
)
def test_a_project_is_compiled_into_the_libraries_that_the_table_says(
    project: str, namespace: bytes, library: str
):
    (part,) = [part for part in _PARTS if part.name == project]
    assert (namespace in Path(library).read_bytes()) == (Path(library).name in part.libraries)
