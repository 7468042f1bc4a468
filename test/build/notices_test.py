"""What is kept for the end."""

import pytest

from bazel.pybuild import notices


def test_what_was_kept_is_shown_once_and_in_order(capsys: pytest.CaptureFixture[str]):
    for text in ("one", "two", "one"):
        notices.defer(text)
    assert capsys.readouterr().err == ""
    notices.show()
    notices.show()
    assert capsys.readouterr().err == "one\ntwo\n"


def test_a_box_is_as_wide_as_its_longest_line():
    assert notices.box("a\nlonger") == "+--------+\n| a      |\n| longer |\n+--------+"
