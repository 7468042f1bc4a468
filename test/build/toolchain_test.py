"""The part of a cache key that stands for compiler, assembler, linker and C library.

Each test copies a part of the real toolchain and changes it.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import toolchain
from test.build.shell import program

_GCC = shutil.which("gcc") or "gcc"


def _wrapper(folder: Path, options: str, before: str = "") -> dict[str, str]:
    """Variables that choose a compiler which adds options to those of gcc."""
    compiler = program(folder / "cc", f'{before}\nexec {_GCC} {options} "$@"')
    return {**os.environ, "CC": str(compiler)}


def _fingerprint(environ: dict[str, str]) -> str:
    return toolchain.inspect(environ).fingerprint


def _printed(name: str, kind: str) -> Path:
    command = [_GCC, f"-print-{kind}-name={name}"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return Path(shutil.which(said) or said)


def test_the_same_toolchain_has_the_same_fingerprint_wherever_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    here, there = _wrapper(tmp_path / "here", "-g"), _wrapper(tmp_path / "there", "-g")
    there |= {"TMPDIR": str(tmp_path), "LC_ALL": "tr_TR", "HOME": "/"}
    assert _fingerprint(here) == _fingerprint(there)


def test_a_wrapper_that_adds_another_option_has_another_fingerprint(tmp_path: Path):
    first, second = _wrapper(tmp_path / "one", "-O1"), _wrapper(tmp_path / "two", "-O2")
    assert _fingerprint(first) != _fingerprint(second)


def test_another_version_of_the_compiler_has_another_fingerprint(tmp_path: Path):
    # The program is the same: it reads what it says from a file.
    said = tmp_path / "said"
    environ = _wrapper(tmp_path, "", before=f'[ "$1" = -v ] && cat {said} && exit')
    found = []
    for version in ("gcc version 12.2.0", "gcc version 12.2.1"):
        said.write_text(f"COLLECT_GCC={tmp_path}\n{version}\n")
        found.append(toolchain.inspect(environ))
    assert found[0].fingerprint != found[1].fingerprint
    assert all(each.is_tested for each in found)


@pytest.mark.parametrize(
    ("name", "kind"), [("cc1plus", "prog"), ("as", "prog"), ("ld", "prog"), ("libc.so.6", "file")]
)
def test_another_part_of_the_compiler_has_another_fingerprint_and_is_watched(
    tmp_path: Path, name: str, kind: str
):
    environ = _wrapper(tmp_path, f"-B{tmp_path}")
    shutil.copy(_printed(name, kind), tmp_path / name)
    before = toolchain.inspect(environ)
    with (tmp_path / name).open("ab") as file:
        file.write(b"changed")
    assert _fingerprint(environ) != before.fingerprint
    assert {tmp_path / name, tmp_path / "cc"} <= set(before.files)


@pytest.mark.parametrize(("script", "reason"), [(None, "No such file"), ("exit 3", "exits with 3")])
@pytest.mark.parametrize("name", ["cc", "as"])
def test_nothing_is_built_with_a_program_that_cannot_be_run(
    tmp_path: Path, name: str, script: str | None, reason: str
):
    answer = f'[ "$1" = -print-prog-name={name} ] && echo {tmp_path / name} && exit'
    environ = _wrapper(tmp_path, "", before=answer)
    (tmp_path / name).unlink(missing_ok=True)
    if script is not None:
        program(tmp_path / name, script)
    with pytest.raises(BuildError, match=f"{name}, a part of .* cannot be run: .*{reason}"):
        toolchain.inspect(environ)


def test_bazel_watches_a_file_of_each_package_of_the_toolchain(tmp_path: Path):
    link = tmp_path / "gcc"
    link.symlink_to(_GCC)
    watched = toolchain.inspect({**os.environ, "CC": str(link)}).watched
    # The link itself, because an upgrade may give it another target.
    assert watched[0] == link
    # Some names begin with the target: x86_64-linux-gnu-as.
    assert [file.name.split("-")[-1] for file in watched[1:]] == ["as", "ld", "crti.o"]


def test_programs_on_path_are_found_without_starting_one(tmp_path: Path):
    environ = _wrapper(tmp_path, "", before="exit 3")
    assert tmp_path / "cc" in toolchain.files(environ)
