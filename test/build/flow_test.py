"""Steps of setup.py that this machine never takes; command_line_test.py has the others."""

import os
from types import SimpleNamespace

import pytest

from bazel.pybuild import cuda, flow, notices
from bazel.pybuild.options import Options


@pytest.mark.parametrize(
    ("machine", "wanted", "boxes"),
    [("aarch64", None, 1), ("aarch64", False, 0), ("aarch64", True, 0), ("x86_64", None, 0)],
)
def test_advice_about_linking_waits_for_the_end(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    machine: str,
    wanted: bool | None,
    boxes: int,
):
    # Neither such a machine nor a torch for CUDA is at hand.
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine=machine))
    monkeypatch.setattr(cuda, "look", lambda options, environ: SimpleNamespace(packaged=True))
    flow.platform_link_options(Options(prioritized_text=wanted), {})
    assert capsys.readouterr().err == ""
    notices.show()
    assert capsys.readouterr().err.count("    USE_PRIORITIZED_TEXT_FOR_LD=1 ") == boxes
