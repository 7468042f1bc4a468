"""What is kept for the end."""

import pytest

from bazel.pybuild import notices


@pytest.fixture(autouse=True)
def nothing_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """Shows what other tests have kept."""
    notices.show()
    capsys.readouterr()


def test_what_was_kept_is_shown_once_and_in_order(capsys: pytest.CaptureFixture[str]):
    for text in ("one", "two", "one"):
        notices.defer_line(text)
    assert capsys.readouterr().err == ""
    notices.show()
    notices.show()
    assert capsys.readouterr().err == "one\ntwo\n"


def test_what_is_said_of_one_subject_is_one_line(capsys: pytest.CaptureFixture[str]):
    for text in ("was not used", "is slow", "was not used"):
        notices.defer_detail("the cache", text)
        notices.defer_line("another")
    notices.show()
    assert capsys.readouterr().err == "the cache was not used; is slow\nanother\n"
