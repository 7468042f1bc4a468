"""Which Bazel is called."""

from pathlib import Path

import pytest

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine.find_bazel import cannot_start, find
from test.build.shell import program


def _program(folder: Path, name: str) -> Path:
    return program(folder / name, "")


@pytest.mark.parametrize(
    ("programs", "wanted", "found"),
    [
        ("bazel bazelisk", None, "bazelisk"),
        ("bazel", None, "bazel"),
        # The script chooses among several versions.
        ("script bazel-4 bazel-7", None, "bazel"),
        # The variable is a path, or a name.
        ("bazelisk mine/bazel-4", "{folder}/mine/bazel-4", "mine/bazel-4"),
        ("bazelisk bazel-4", "bazel-4", "bazel-4"),
        ("unexecutable bazel", None, "bazel"),
    ],
)
def test_a_bazel_is_found_by_the_variable_or_else_on_path(
    tmp_path: Path, programs: str, wanted: str | None, found: str
):
    for name in programs.split():
        if name == "script":
            _script(tmp_path)
        elif name == "unexecutable":
            _program(tmp_path, "bazelisk").chmod(0o644)
        else:
            _program(tmp_path, name)
    assert find(wanted and wanted.format(folder=tmp_path), str(tmp_path)) == tmp_path / found


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
