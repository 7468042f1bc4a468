"""An isolated build finds the interpreter that it was made by, or says what to do."""

import sys
import venv
from pathlib import Path

from bazel.pybuild import isolation


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


def test_the_message_names_the_option_of_each_front_end():
    message = str(isolation.cannot_see_torch())
    assert "--no-build-isolation" in message
    assert "--no-isolation" in message


def test_here_torch_is_seen():
    assert not isolation.hides_torch()
