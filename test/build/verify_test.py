"""What verify says of shared objects that are really broken, each linked to be so."""

import subprocess
from pathlib import Path

import pytest

from bazel.pybuild.call.events import Output
from bazel.pybuild.errors import BuildError
from bazel.pybuild.install import verify
from test.build.tree import ROOT

_TORCH = verify.installed_torch().info.parent / "torch" / "lib"


def link(folder: Path, code: str, *arguments: str | Path, name: str = "libours.so") -> Path:
    """A shared object of `code`, in the lib folder of a package."""
    source = folder / f"{name}.cc"
    source.write_text(code)
    library = folder / "torch_xla_lite" / "lib" / name
    library.parent.mkdir(parents=True, exist_ok=True)
    command = ["g++", "-shared", "-fPIC", source, "-o", library, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return library


def said_of(library: Path, root: Path = ROOT) -> str:
    """What is wrong with a library; empty if nothing is."""
    output = Output(f"torch_xla_lite/lib/{library.name}", library)
    try:
        verify.check([output], [output], root)
    except BuildError as error:
        return error.problem
    return ""


_CALLS_C10 = """
#include <string>
namespace c10 { struct Warning; namespace detail {
[[noreturn]] void torchCheckFail(const char*, const char*, unsigned, const std::string&);
} }
void fail(const std::string& why) { c10::detail::torchCheckFail("f", "g", 1, why + "!"); }
"""


def test_a_library_that_uses_torch_as_it_is_passes(tmp_path: Path):
    library = link(tmp_path, _CALLS_C10, _TORCH / "libc10.so", "-Wl,-rpath,$ORIGIN/../../torch/lib")
    assert said_of(library) == ""


def test_a_library_that_users_have_not_is_named(tmp_path: Path):
    link(tmp_path, "int f() { return 1; }", "-Wl,-soname,libstray.so.3", name="libstray.so")
    library = link(
        tmp_path,
        "int f(); int g() { return f(); }",
        tmp_path / "torch_xla_lite" / "lib" / "libstray.so",
    )
    assert "lib/libours.so needs libstray.so.3, which it must not be linked to" in said_of(library)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (f"-Wl,--no-as-needed {_TORCH}/libtorch_python.so", "needs libtorch_python.so"),
        ("-Wl,--enable-new-dtags,-rpath,$ORIGIN:/opt", "looks for libraries in '/opt'"),
        ("-Wl,--disable-new-dtags,-rpath,$ORIGIN:/opt", "looks for libraries in '/opt'"),
        # The current folder.
        ("-Wl,-rpath,$ORIGIN:", "looks for libraries in ''"),
        ("-Wl,-rpath,$ORIGIN/../../../bin", "libraries in $ORIGIN/../../../bin, outside of"),
    ],
)
def test_a_library_that_is_linked_to_what_users_have_not_is_named(
    tmp_path: Path, options: str, said: str
):
    assert said in said_of(link(tmp_path, "int f() { return 1; }", *options.split()))


def test_an_undefined_symbol_is_named(tmp_path: Path):
    library = link(tmp_path, "int nobody(int); int f() { return nobody(2); }")
    assert "uses _Z6nobodyi, which none of its libraries has" in said_of(library)


def test_an_undefined_weak_symbol_is_accepted(tmp_path: Path):
    library = link(
        tmp_path, "__attribute__((weak)) int nobody(); int f() { return nobody ? 1 : 0; }"
    )
    assert said_of(library) == ""


def test_python_code_alone_is_held_against_the_libraries_that_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    soname = "-Wl,-soname,libtorch_xla_lite.so"
    bridge = link(tmp_path, "int ours() { return 1; }", soname, name="libtorch_xla_lite.so")
    (tmp_path / "torch_xla_lite_lib-0.1.0.dist-info").mkdir()
    code = "int ours(); int others(); int f() { return ours() + others(); }"
    module = link(tmp_path, code, bridge, "-Wl,-soname,_XLAC.so", name="_XLAC.so")
    monkeypatch.syspath_prepend(tmp_path)
    said = said_of(module)
    assert "uses _Z6othersv" in said
    assert "_Z4oursv" not in said


def test_strings_from_before_gcc_5_are_named(tmp_path: Path):
    library = link(
        tmp_path, "#include <string>\nstd::string f() { return {}; }\nvoid g(std::string s) {}",
        "-D_GLIBCXX_USE_CXX11_ABI=0",
    )  # fmt: skip
    assert "of another C++ ABI than torch's (_GLIBCXX_USE_CXX11_ABI=1)" in said_of(library)


def test_a_path_of_the_checkout_is_named(tmp_path: Path):
    library = link(tmp_path, "const char* where() { return __FILE__; }")
    own = tmp_path / "torch_xla_lite"
    library = link(own.parent, f'const char* where() {{ return "{own}/csrc/f.cc"; }}')
    assert f"contains the path of this tree, {own}" in said_of(library, root=tmp_path)


def test_a_file_that_is_no_shared_object_is_named(tmp_path: Path):
    library = tmp_path / "libours.so"
    library.write_text("INPUT(-lours)")
    assert "is not a 64-bit little-endian ELF file" in said_of(library)


def test_all_errors_are_reported_together(tmp_path: Path):
    library = link(tmp_path, "int nobody(); int f() { return nobody(); }", "-Wl,-rpath,/opt")
    assert len(said_of(library).splitlines()) == 3


def test_a_record_of_another_torch_is_named(tmp_path: Path):
    info = tmp_path / "_build_info.py"
    info.write_text('TORCH_VERSION = "2.12.1"\n')
    output = Output("torch_xla_lite/_build_info.py", info)
    with pytest.raises(BuildError, match=r"says torch 2\.12\.1, but torch 2\.\d+\.\d+\S* is inst"):
        verify.check([output], [output], ROOT)
