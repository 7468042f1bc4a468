"""The part of a cache key that stands for compiler, assembler, linker and C library.

Each test copies a part of the real toolchain and changes it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import toolchain
from bazel.pytest_plugin import mostly_nightly
from test.build.shell import program

_GCC = shutil.which("gcc") or "gcc"
_LINKED = ["crti.o", "crtbeginS.o", "libgcc.a", "liblto_plugin.so", "libstdc++.so", "libc.so.6"]
_HERE = toolchain.inspect({**os.environ, "CC": _GCC})


def _wrapper(folder: Path, options: str, before: str = "") -> dict[str, str]:
    """Variables that choose a compiler which adds options to those of gcc."""
    compiler = program(folder / "cc", f'{before}\nexec {_GCC} {options} "$@"')
    return {**os.environ, "CC": str(compiler)}


def _with(folder: Path) -> dict[str, str]:
    """Variables that choose a compiler which takes its programs and files from a folder first."""
    # The options are in a file, so that the wrapper is always the same.
    return _wrapper(folder, f"-B{folder} -isystem {folder}/include")


def _fingerprint(environ: dict[str, str]) -> str:
    return toolchain.inspect(environ).fingerprint


def _printed(name: str, kind: str) -> Path:
    command = [_GCC, f"-print-{kind}-name={name}"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return Path(shutil.which(said) or said)


def test_the_same_toolchain_has_the_same_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    other = {**os.environ, "CC": _GCC, "TMPDIR": str(tmp_path), "LC_ALL": "tr_TR", "HOME": "/"}
    assert _fingerprint(other) == _HERE.fingerprint


def test_the_place_of_a_compiler_makes_no_difference(tmp_path: Path):
    here, there = _wrapper(tmp_path / "here", "-g"), _wrapper(tmp_path / "there", "-g")
    assert _fingerprint(here) == _fingerprint(there)


def test_a_wrapper_earlier_on_path_has_another_fingerprint(tmp_path: Path):
    program(tmp_path / "gcc", f'exec {_GCC} "$@"')
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    environ.pop("CC", None)
    assert _fingerprint(environ) != _HERE.fingerprint


@pytest.mark.nightly
def test_other_default_options_have_another_fingerprint(tmp_path: Path):
    # The wrapper is the same: it reads its options from a file that no fingerprint knows.
    environ = _wrapper(tmp_path, f"@{tmp_path}/options")
    (tmp_path / "options").write_text("-O2")
    before = _fingerprint(environ)
    (tmp_path / "options").write_text("-O2 -ffast-math")
    assert _fingerprint(environ) != before


_PROGRAMS = ["cc1", "cc1plus", "collect2", "as", "ld", "ld.bfd", "ld.gold"]


@pytest.mark.parametrize("name", mostly_nightly(_PROGRAMS, ["cc1plus"]))
def test_another_program_of_the_compiler_has_another_fingerprint(tmp_path: Path, name: str):
    program = _printed(name, "prog")
    if not program.exists():
        pytest.skip(f"there is no {name}")
    environ = _with(tmp_path)
    shutil.copy(program, tmp_path / name)
    before = _fingerprint(environ)
    with (tmp_path / name).open("ab") as file:
        file.write(b"changed")
    assert _fingerprint(environ) != before


def _loading(folder: Path, program: str, code: str) -> Path:
    """Makes a program of a compiler that loads a library of its own, libpart.so, and returns it."""
    folder.mkdir(exist_ok=True)
    library = folder / "libpart.so"
    (folder / "part.c").write_text(f"int part(void) {{ {code} }}")
    (folder / "main.c").write_text("int part(void); int main(void) { return part(); }")
    subprocess.run([_GCC, "-shared", folder / "part.c", "-o", library], check=True)
    options = [library, f"-Wl,-rpath,{folder}", "-o", folder.parent / program]
    subprocess.run([_GCC, folder / "main.c", *options], check=True)
    return library


@pytest.mark.nightly
def test_another_library_of_a_program_has_another_fingerprint(tmp_path: Path):
    # Most of `as` and `ld` is in libbfd, and arithmetic of the compiler is in libraries, too.
    environ = _with(tmp_path)
    library = _loading(tmp_path / "one", "mold", "return 0;")
    other = _loading(tmp_path / "two", "ld.lld", "int zero = 0; return zero;")
    before = toolchain.inspect(environ)
    assert {library, other} <= set(before.files)
    _loading(tmp_path / "two", "unused", "int zero = 0; return zero + zero;")
    assert _fingerprint(environ) != before.fingerprint


@pytest.mark.nightly
def test_libraries_of_one_name_have_no_order(tmp_path: Path):
    environ = _with(tmp_path)
    _loading(tmp_path / "one", "mold", "return 0;")
    _loading(tmp_path / "two", "ld.lld", "int zero = 0; return zero;")
    found = set()
    for seed in range(6):
        variables = {"PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-m", "bazel.pybuild.machine.toolchain"]
        found.add(subprocess.check_output(command, env={**environ, **variables}, text=True))
    assert len(found) == 1


@pytest.mark.parametrize("name", mostly_nightly(["ar", "dwp", "nm", "objcopy", "strip"], ["ar"]))
def test_another_tool_of_bazel_has_another_fingerprint(tmp_path: Path, name: str):
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name}")
    shutil.copy(found, tmp_path / name)
    with (tmp_path / name).open("ab") as file:
        file.write(b"changed")
    environ = {**os.environ, "CC": _GCC, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert _fingerprint(environ) != _HERE.fingerprint


@pytest.mark.parametrize("name", mostly_nightly(_LINKED, _LINKED[:1]))
def test_another_file_that_is_linked_has_another_fingerprint(tmp_path: Path, name: str):
    file = _printed(name, "file")
    if not file.is_file():
        # Newer versions of gcc do not print the place of a plugin.
        pytest.skip(f"there is no {name} to be found")
    environ = _with(tmp_path)
    shutil.copy(file, tmp_path / name)
    before = _fingerprint(environ)
    with (tmp_path / name).open("ab") as file:
        file.write(b"changed")
    assert _fingerprint(environ) != before


_CHANGES = ["inline int more() { return 1; }", "#define MORE 1"]


@pytest.mark.parametrize("change", mostly_nightly(_CHANGES, _CHANGES[:1]))
def test_another_standard_header_has_another_fingerprint(tmp_path: Path, change: str):
    environ = _with(tmp_path)
    (tmp_path / "include").mkdir()
    header = tmp_path / "include" / "vector"
    header.write_text("#include_next <vector>\n")
    before = _fingerprint(environ)
    header.write_text(f"#include_next <vector>\n{change}\n")
    assert _fingerprint(environ) != before


@pytest.mark.parametrize(("script", "reason"), [(None, "No such file"), ("exit 3", "exits with 3")])
def test_a_compiler_that_cannot_be_run_has_none(tmp_path: Path, script: str | None, reason: str):
    compiler = tmp_path / "cc"
    if script is not None:
        program(compiler, script)
    with pytest.raises(BuildError, match=f"{compiler}.*{reason}"):
        toolchain.inspect({**os.environ, "CC": str(compiler)})


@pytest.mark.parametrize(
    "name", mostly_nightly([name for name in _PROGRAMS if name != "ld.bfd"], ["as"])
)
def test_nothing_is_built_with_a_program_that_cannot_be_run(tmp_path: Path, name: str):
    environ = _with(tmp_path)
    program(tmp_path / name, "exit 3")
    with pytest.raises(BuildError, match=f"{tmp_path / name}.*exits with 3"):
        toolchain.inspect(environ)


@pytest.mark.parametrize("name", mostly_nightly(["ar", "nm", "objcopy", "strip"], ["nm"]))
def test_nothing_is_built_without_a_tool_of_bazel(tmp_path: Path, name: str):
    for part in {"ar", "nm", "objcopy", "strip"} - {name}:
        (tmp_path / part).symlink_to(shutil.which(part) or part)
    with pytest.raises(BuildError, match=f"^{name}, .*cannot be run: No such file"):
        toolchain.inspect({**os.environ, "CC": _GCC, "PATH": str(tmp_path)})


def test_all_that_the_fingerprint_reads_is_watched(tmp_path: Path):
    files = toolchain.inspect(_wrapper(tmp_path, "")).files
    assert tmp_path / "cc" in files
    assert {_printed("cc1plus", "prog").resolve(), _printed("as", "prog").resolve()} <= set(files)
    assert _printed("crti.o", "file").resolve() in files
    # Packages replace a header by a new file, which changes the time of its folder.
    assert any((folder / "vector").is_file() for folder in files)


def test_bazel_watches_a_file_of_each_package_of_the_toolchain(tmp_path: Path):
    link = tmp_path / "gcc"
    link.symlink_to(_GCC)
    watched = toolchain.inspect({**os.environ, "CC": str(link)}).watched
    # The link itself, because an upgrade may give it another target.
    assert watched[0] == link
    # Some names begin with the target: x86_64-linux-gnu-as.
    assert [file.name.split("-")[-1] for file in watched[1:]] == ["as", "ld", "crti.o"]


def test_an_assembler_that_is_named_after_its_target_is_watched(tmp_path: Path):
    # gcc 16 of Debian answers x86_64-linux-gnu-as.
    name = "x86_64-linux-gnu-as"
    (tmp_path / name).symlink_to(_printed("as", "prog"))
    answer = f'[ "$1" = -print-prog-name=as ] && echo {tmp_path / name} && exit'
    watched = toolchain.inspect(_wrapper(tmp_path, "", before=answer)).watched
    assert watched[1].name == name


def test_programs_on_path_are_watched_without_starting_one(tmp_path: Path):
    environ = _wrapper(tmp_path, "", before="exit 3")
    assert tmp_path / "cc" in toolchain.files(environ)
