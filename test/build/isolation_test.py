"""An isolated build finds the interpreter that it was made by, or says what to do."""

import os
import sys
import venv
from pathlib import Path

import pytest

from bazel.pybuild.dist import isolation
from bazel.pybuild.machine import packages


def test_an_environment_made_by_venv_tells_its_maker(tmp_path: Path):
    venv.create(tmp_path, with_pip=False)
    assert isolation.maker(tmp_path) == Path(sys.executable)


def test_an_environment_of_another_tool_tells_none(tmp_path: Path):
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nuv = 0.13.9\n")
    assert isolation.maker(tmp_path) is None


def test_a_maker_that_is_gone_is_none(tmp_path: Path):
    (tmp_path / "pyvenv.cfg").write_text("command = /gone/bin/python -m venv /x\n")
    assert isolation.maker(tmp_path) is None


def test_no_environment_tells_none(tmp_path: Path):
    assert isolation.maker(tmp_path) is None


def _isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *path: Path) -> Path:
    """Makes this an environment that tells nothing, as uv makes them; returns a tree."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "isolated"))
    here = tmp_path / "isolated" / "bin"
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, [here, *path, "/usr/bin"])))
    _python(here.parent, packages.own_folders())
    return tmp_path / "tree"


def _python(environment: Path, sees: list[str]) -> Path:
    """An interpreter that sees packages in some folders; all that is asked of it is where."""
    python = environment / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n" + "".join(f"echo '{folder}'\n" for folder in sees))
    python.chmod(0o755)
    return python


def test_the_next_interpreter_on_path_is_that_of_the_active_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    active = _python(tmp_path / "active", packages.own_folders())
    tree = _isolated(monkeypatch, tmp_path, active.parent)
    assert isolation.outside(tree) == active


def test_an_environment_in_the_tree_is_taken_though_it_is_not_active(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    other = _python(tmp_path / "other", [])
    tree = _isolated(monkeypatch, tmp_path, other.parent)
    assert isolation.outside(tree) is None
    python = _python(tree / ".venv", packages.own_folders())
    assert isolation.outside(tree) == python


def test_the_message_names_the_option_of_each_front_end():
    message = str(isolation.cannot_see_torch())
    assert "--no-build-isolation" in message
    assert "--no-isolation" in message


def test_here_torch_is_seen():
    assert not isolation.hides_torch()
