"""The steps of continuous integration: the hit rate that they print, and the check of a wheel for
CUDA."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.ci import check_cuda_wheel, hit_rate, nvidia
from test.build.tree import ROOT


def test_the_hit_rate_of_a_build_counts_both_caches():
    report = '{"actions": {"compile": 1, "link": 0, "other": 1}, %s}'
    hits = '"cache_hits": {"local": null, "disk": 2, "remote": 4}'
    assert hit_rate.read(report % hits) == ("actions", 6, 8)


def test_the_hit_rate_of_tests_counts_local_and_remote_results():
    results = ('{"cachedLocally": true}', '{"executionInfo": {"cachedRemotely": true}}', "{}")
    events = [f'{{"id": {{"testResult": {{}}}}, "testResult": {result}}}' for result in results]
    assert hit_rate.read("\n".join(events)) == ("test results", 2, 3)


@pytest.mark.parametrize(("minimum", "code"), [("75", 0), ("76", 1)])
def test_a_hit_rate_below_the_minimum_is_an_error(tmp_path: Path, minimum: str, code: int):
    report = tmp_path / "report.json"
    report.write_text(
        '{"actions": {"compile": 1}, "cache_hits": {"local": 0, "disk": 0, "remote": 3}}'
    )
    script = [sys.executable, ROOT / "scripts" / "ci" / "hit_rate.py", report, "--minimum", minimum]
    process = subprocess.run(script, capture_output=True, text=True, check=False)
    assert process.returncode == code
    assert process.stdout == "from a cache: 3 of 4 actions (75.0 %)\n"


def test_an_installed_wheel_without_the_cuda_library_is_an_error(tmp_path: Path):
    with pytest.raises(check_cuda_wheel.Failure, match=r"has no lib\.so: setup\.py says above why"):
        check_cuda_wheel.check_codes(tmp_path / "lib.so", {"sm_90"})


def test_code_for_another_architecture_is_an_error_that_names_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "lib.so").touch()
    monkeypatch.setattr(nvidia, "codes", lambda library: {"sm_75", "sm_90"})
    with pytest.raises(check_cuda_wheel.Failure, match=r"code for sm_75 sm_90, not for sm_90$"):
        check_cuda_wheel.check_codes(tmp_path / "lib.so", {"sm_90"})
