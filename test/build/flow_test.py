"""What setup.py does on machines that are not at hand; command_line_test.py has the other steps."""

import os
from types import SimpleNamespace

import pytest

from bazel.pybuild import flow
from bazel.pybuild.options import Options


@pytest.mark.parametrize(
    ("machine", "said", "taken"),
    [
        ("aarch64", None, None),
        ("arm64", None, None),
        ("x86_64", None, False),
        ("x86_64", True, True),
        ("aarch64", True, True),
        ("aarch64", False, False),
    ],
)
def test_whether_hot_functions_come_first_is_open_only_where_it_can_pay(
    monkeypatch: pytest.MonkeyPatch, machine: str, said: bool | None, taken: bool | None
):
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine=machine))
    assert flow.platform_link_options(Options(prioritized_text=said)).prioritized_text is taken
