"""An isolated build that cannot see torch says what to do."""

import sys
from pathlib import Path

import pytest

from bazel.pybuild.dist import isolation
from bazel.pybuild.errors import BuildError


def test_the_message_names_the_option_of_each_front_end(monkeypatch: pytest.MonkeyPatch):
    isolation.check()
    monkeypatch.setattr("bazel.pybuild.machine.packages.search_path", lambda: ["/nowhere"])
    with pytest.raises(BuildError, match=sys.executable) as error:
        isolation.check()
    for command in ("pip install --no-build-isolation", "python -m build --wheel --no-isolation"):
        assert command in error.value.remedy


def test_pybind11_is_asked_for_where_the_wanted_version_is_missing(tmp_path: Path):
    (tmp_path / "requirements.txt").write_text("pybind11==0.0.1\n")
    assert isolation.missing_headers(tmp_path) == ["pybind11==0.0.1"]
