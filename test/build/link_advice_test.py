"""Who is told of USE_PRIORITIZED_TEXT_FOR_LD."""

import os
import types

import pytest

from bazel.pybuild import cuda, flow, notices
from bazel.pybuild.link_advice import advice
from bazel.pybuild.options import Options


@pytest.mark.parametrize("machine", ["aarch64", "arm64"])
def test_it_is_advised_on_arm_with_cuda(machine: str):
    text = advice(machine, cuda=True, wanted=None)
    assert text and "USE_PRIORITIZED_TEXT_FOR_LD=1" in text


@pytest.mark.parametrize("wanted", [True, False])
def test_who_has_decided_is_left_alone(wanted: bool):
    assert advice("aarch64", cuda=True, wanted=wanted) is None


def test_without_cuda_nothing_is_advised():
    assert advice("aarch64", cuda=False, wanted=None) is None


def test_on_other_machines_nothing_is_advised():
    assert advice("x86_64", cuda=True, wanted=None) is None


def test_the_advice_is_kept_for_the_end_in_a_box(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    # What this machine and its torch are not.
    monkeypatch.setattr(os, "uname", lambda: types.SimpleNamespace(machine="aarch64"))
    on = cuda.Cuda(packaged=True, toolkit=None, codes=("sm_90",), evidence="on")
    monkeypatch.setattr(cuda, "look", lambda options, environ: on)
    flow.platform_link_options(Options(), {})
    assert capsys.readouterr().err == ""
    notices.show()
    edge, *lines, last = capsys.readouterr().err.splitlines()
    assert edge == last and set(edge) == {"+", "-"}
    assert any("USE_PRIORITIZED_TEXT_FOR_LD=1" in line for line in lines)
