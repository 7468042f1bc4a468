"""examples/accelerator_report.py: one JSON, also where a part of it fails."""

import json

import jax
import pytest
import torch

from torch_xla_lite.examples import accelerator_report


@pytest.mark.nightly
def test_compiled_for_the_cpu_few_cases_differ_from_torch():
    found = accelerator_report.of_cases()
    differ = {name: x for name, x in found.items() if x != "equal" and not _is_small(x)}
    assert differ.keys() == {"subnormal numbers", "an index out of range"}
    ours, theirs = found["an index out of range"]
    assert ours.startswith("IndexError: ")
    assert theirs.startswith("IndexError: ")


def _is_small(difference: str | list) -> bool:
    return isinstance(difference, str) and float(difference) < 1e-5


def test_differences_are_told_as_a_part_of_the_largest_number():
    found = accelerator_report._compared(lambda on: torch.arange(3.0).to(on) + (on.type == "jax"))
    assert found == "5.0e-01"


def test_the_report_is_one_json_and_has_the_errors(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def fails() -> dict:
        raise RuntimeError("no such chip")

    monkeypatch.setattr(accelerator_report, "STEPS", 2)
    parts = {"mesh": accelerator_report.of_mesh, "cases": fails}
    monkeypatch.setattr(accelerator_report, "PARTS", parts)
    assert accelerator_report.main() == 1
    report = json.loads(capsys.readouterr().out)
    assert "no such chip" in report["cases"]["error"]
    assert report["devices"] == [f"{x.platform} {x.device_kind}" for x in jax.devices()]
    one_device = accelerator_report.train("cpu", torch.float32, 8)
    assert report["mesh"]["losses"] == pytest.approx(one_device["losses"], abs=1e-3)
