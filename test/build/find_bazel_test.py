"""Which Bazel is called."""

import subprocess
import sys
from pathlib import Path

import pytest

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine.find_bazel import cannot_start, find
from test.build.shell import program


def _program(folder: Path, name: str) -> Path:
    return program(folder / name, "")


def test_bazelisk_is_preferred_to_bazel(tmp_path: Path):
    _program(tmp_path, "bazel")
    launcher = _program(tmp_path, "bazelisk")
    assert find(None, str(tmp_path)) == launcher


def test_bazel_is_taken_where_there_is_no_bazelisk(tmp_path: Path):
    program = _program(tmp_path, "bazel")
    assert find(None, str(tmp_path)) == program


@pytest.mark.parametrize(("works", "found"), [(True, "bazelisk"), (False, "bazel")])
def test_a_shell_is_told_the_bazel_that_works(tmp_path: Path, works: bool, found: str):
    _program(tmp_path, "bazel")
    _program(tmp_path, "bazelisk").write_text(f"#!/bin/sh\nexit {int(not works)}\n")
    process = subprocess.run(
        [sys.executable, "-m", "bazel.pybuild.machine.find_bazel"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.splitlines()[0] == str(tmp_path / found)
    assert (len(process.stdout.splitlines()) == 3) is not works


def test_a_bazel_that_is_a_link_to_bazelisk_counts_as_bazelisk(tmp_path: Path):
    launcher = _program(tmp_path / "bazelisk-1.28", "launcher.js")
    (tmp_path / "bazel").symlink_to(launcher)
    error = cannot_start(find(None, str(tmp_path)), ["bazel", "help"], Path("/a"))
    assert "could not provide a Bazel" in error.problem


def _script(folder: Path) -> Path:
    """Debian's script."""
    script = _program(folder, "bazel")
    script.write_text('#!/bin/bash\nBAZEL_REAL=bazel-4\nexec "$BAZEL_REAL" "$@"\n')
    return script


def test_the_program_behind_the_script_of_debian_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("USE_BAZEL_VERSION", raising=False)
    script, program = _script(tmp_path), _program(tmp_path, "bazel-4")
    assert find(None, str(tmp_path)) == program
    assert find("bazel", str(tmp_path)) == script
    monkeypatch.setenv("USE_BAZEL_VERSION", "4.2.3")
    assert find(None, str(tmp_path)) == script


def test_the_script_chooses_among_several_versions(tmp_path: Path):
    script = _script(tmp_path)
    _program(tmp_path, "bazel-4")
    _program(tmp_path, "bazel-7")
    assert find(None, str(tmp_path)) == script


def test_the_variable_wins_over_path(tmp_path: Path):
    _program(tmp_path / "path", "bazelisk")
    mine = _program(tmp_path / "mine", "bazel-4")
    assert find(str(mine), str(tmp_path / "path")) == mine


def test_the_variable_may_be_a_name_on_path(tmp_path: Path):
    named = _program(tmp_path, "bazel-4")
    assert find("bazel-4", str(tmp_path)) == named


def test_a_variable_that_names_no_program_is_an_error(tmp_path: Path):
    with pytest.raises(BuildError, match="is not a program that can be run"):
        find(str(tmp_path / "missing"), str(tmp_path))


@pytest.mark.parametrize("wanted", [None, "bazelisk", "{folder}/bazelisk"])
def test_a_bazel_that_is_not_executable_is_named_with_the_command_that_helps(
    tmp_path: Path, wanted: str | None
):
    file = _program(tmp_path, "bazelisk")
    file.chmod(0o644)
    with pytest.raises(BuildError) as error:
        find(wanted and wanted.format(folder=tmp_path), str(tmp_path))
    assert str(error.value) == f"{file} is not executable.\nMake it executable:  chmod +x {file}"


def test_an_executable_bazel_is_preferred_to_one_that_is_not(tmp_path: Path):
    _program(tmp_path, "bazelisk").chmod(0o644)
    program = _program(tmp_path, "bazel")
    assert find(None, str(tmp_path)) == program


def test_without_any_the_message_ends_in_a_command_that_installs_one(tmp_path: Path):
    with pytest.raises(BuildError) as error:
        find(None, str(tmp_path))
    command = error.value.remedy.split(":  ")[-1]
    assert command.startswith(("sudo apt-get install bazel", "npm install --global @bazel/"))


@pytest.mark.parametrize("root", ["/home/my trees/a", "/home/ünï/a"])
def test_a_bazel_that_does_not_start_in_an_unusual_path_has_its_own_error(root: str):
    bazel = Path("/usr/bin/bazel")
    error = cannot_start(bazel, ["bazel", "help"], Path(root))
    assert error.problem.startswith(f"Bazel does not start in {root}")
    assert "move this tree" in error.remedy
    assert "move this tree" not in cannot_start(bazel, ["bazel", "help"], Path("/a")).remedy
