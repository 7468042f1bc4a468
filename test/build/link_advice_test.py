"""Who is told of USE_PRIORITIZED_TEXT_FOR_LD."""

import pytest

from bazel.pybuild.link_advice import advice


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
