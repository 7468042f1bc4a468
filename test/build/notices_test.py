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
