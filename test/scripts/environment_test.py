"""Setting a machine up: environments are made and never removed, and scripts find their tree."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import environment, run_tests

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree that needs no package, as the current folder."""
    (tmp_path / "requirements.txt").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.nightly
def test_an_environment_without_pip_gets_it_and_keeps_all_else(
    tree: Path, capsys: pytest.CaptureFixture[str]
):
    venv = [sys.executable, "-m", "venv", "--without-pip", ".venv"]
    subprocess.run(venv, check=True, timeout=120)
    notes = tree / ".venv" / "notes.txt"
    notes.write_text("mine")
    environment._make_environment()
    assert "Installing pip into .venv" in capsys.readouterr().out
    assert notes.read_text() == "mine"
    assert list(tree.glob(".venv/lib/python3*/site-packages/pip"))
    assert (tree / ".venv" / ".requirements.txt").exists()


@pytest.mark.parametrize("kind", ["broken", "link"])
def test_what_is_no_environment_is_refused_and_kept(tree: Path, kind: str):
    if kind == "broken":
        (tree / ".venv" / "bin").mkdir(parents=True)
        (tree / ".venv" / "bin" / "python").symlink_to("/nowhere/python")
    else:
        (tree / ".venv").symlink_to("elsewhere")
    with pytest.raises(SystemExit) as raised:
        environment._make_environment()
    assert str(raised.value) == (
        "error: .venv has no Python that works.\nMove it away, then try again:  mv .venv .venv.old"
    )
    assert (tree / ".venv").is_symlink() or (tree / ".venv" / "bin" / "python").is_symlink()


def test_a_package_is_missing_where_no_place_has_what_it_installs(tmp_path: Path):
    there = str(tmp_path / "there.h")
    Path(there).touch()
    wanted = {
        "all": ["sh"],
        "one-of-two": ["/nowhere/file.h", there],
        "no-file": ["/nowhere/file.h"],
        "no-program": ["no-such-program"],
    }
    assert [*environment._missing(wanted)] == ["no-file", "no-program"]


def test_without_apt_the_message_names_the_packages(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SystemExit, match=r"Packages are missing .*: g\+\+ git\nInstall them with"):
        environment._install(["g++", "git"])


@pytest.mark.parametrize(
    ("words", "variables", "expected"),
    [
        ([], {}, ["//test/..."]),
        (["--all"], {}, ["--config=nightly", "//test/..."]),
        (["//test/csrc/...", "-t-"], {}, ["//test/csrc/...", "-t-"]),
        ([], {"CI": "true"}, ["--config=ci", "//test/..."]),
        ([], {"CI": "false"}, ["//test/..."]),
        (
            [],
            {"TORCH_XLA_LITE_REMOTE_CACHE": "http://127.0.0.1:1"},
            ["--config=remote-cache", "//test/..."],
        ),
    ],
)
def test_arguments_of_bazel_test(words: list[str], variables: dict[str, str], expected: list[str]):
    assert run_tests.options(words, variables) == ["--keep_going", *expected]


def test_words_of_older_versions_are_refused_before_anything_is_installed():
    with pytest.raises(SystemExit, match=r"docs/build\.md"):
        run_tests.main(["--python", "3.12"])


# Prints words where an interpreter starts, as a company's settings may.
_NOISY = '#!/bin/sh\necho a company says hello\nexec {} "$@"\n'


@pytest.mark.parametrize("script", ["bootstrap.sh", "test.sh", "python.sh"])
def test_scripts_run_their_own_tree_wherever_they_are_started(tmp_path: Path, script: str):
    # `cd scripts` would go to the tree of CDPATH, and print its name.
    for name in ("own", "other"):
        scripts = tmp_path / name / "scripts"
        scripts.mkdir(parents=True)
        package = tmp_path / name / "bazel" / "pybuild"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        for module in ("environment", "run_tests"):
            (scripts / f"{module}.py").write_text("import os; print('ran in', os.getcwd())\n")
    for each in ("bootstrap.sh", "test.sh", "python.sh"):
        shutil.copy(ROOT / "scripts" / each, tmp_path / "own" / "scripts")  # with their modes
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3").write_text(_NOISY.format(sys.executable))
    (programs / "python3").chmod(0o755)
    done = subprocess.run(
        [f"scripts/{script}", *(["-m", "scripts.environment"] if script == "python.sh" else [])],
        cwd=tmp_path / "own",
        env={
            "CDPATH": str(tmp_path / "other"),
            "HOME": str(tmp_path),
            "PATH": f"{programs}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == f"ran in {tmp_path / 'own'}"
