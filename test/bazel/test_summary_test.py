"""The last line of scripts/test.sh, computed from Bazel's build events."""

import json
from pathlib import Path
from typing import Any

from bazel import test_summary

_REPORT = """<testsuites><testsuite>
<testcase name="a"/>
<testcase name="b"/>
<testcase name="c"><skipped/></testcase>
<testcase name="d" status="notrun"/>
{more}
</testsuite></testsuites>"""
_FAILURE = '<testcase name="e"><failure message="1 != 2"/></testcase>'


def _configured(label: str) -> dict[str, Any]:
    return {
        "id": {"targetConfigured": {"label": label}},
        "configured": {"targetKind": "_lite_py_test rule"},
    }


def _result(label: str, report: Path, text: str, attempt: int = 1) -> dict[str, Any]:
    report.write_text(text)
    return {
        "id": {"testResult": {"label": label, "run": 1, "attempt": attempt}},
        "testResult": {"testActionOutput": [{"name": "test.xml", "uri": report.as_uri()}]},
    }


def _summary(label: str, status: str) -> dict[str, Any]:
    return {
        "id": {"testSummary": {"label": label}},
        "testSummary": {"overallStatus": status},
    }


def _finished(name: str) -> dict[str, Any]:
    return {"id": {"buildFinished": {}}, "finished": {"exitCode": {"name": name}}}


def _cases(*events: dict[str, Any]) -> test_summary.Cases:
    return test_summary.cases("".join(json.dumps(event) + "\n" for event in events))


def test_cases_are_counted_and_skipped_ones_are_not(tmp_path: Path):
    report = _REPORT.format(more=_FAILURE)
    assert _cases(
        _configured("//:t"),
        _result("//:t", tmp_path / "test.xml", report),
        _summary("//:t", "FAILED"),
    ) == (2, 1)


def test_a_target_that_did_not_build_counts_as_failed():
    assert _cases(_configured("//:t")) == (0, 1)


def test_a_skipped_target_does_not_count():
    skipped = {
        "id": {"targetCompleted": {"label": "//:t"}},
        "aborted": {"reason": "SKIPPED"},
    }
    assert _cases(_configured("//:t"), skipped, _finished("SUCCESS")) == (0, 0)


def test_a_target_that_was_killed_counts_as_failed(tmp_path: Path):
    assert _cases(
        _configured("//:t"),
        _result("//:t", tmp_path / "test.xml", _REPORT.format(more="")),
        _summary("//:t", "TIMEOUT"),
    ) == (2, 1)


def test_the_last_attempt_counts(tmp_path: Path):
    assert _cases(
        _configured("//:t"),
        _result("//:t", tmp_path / "first.xml", _REPORT.format(more=_FAILURE)),
        _result("//:t", tmp_path / "second.xml", _REPORT.format(more=""), attempt=2),
        _summary("//:t", "FLAKY"),
        _finished("SUCCESS"),
    ) == (2, 0)


def test_a_package_that_cannot_be_loaded_counts_as_failed(tmp_path: Path):
    assert _cases(
        _configured("//:t"),
        _result("//:t", tmp_path / "test.xml", _REPORT.format(more="")),
        _summary("//:t", "PASSED"),
        _finished("BUILD_FAILURE"),
    ) == (2, 1)


def test_events_that_end_before_the_build_count_as_failed():
    assert _cases() == (0, 1)


def test_the_last_line_and_the_exit_status(tmp_path: Path, capsys):
    events = tmp_path / "events.json"
    events.write_text(json.dumps(_configured("//:t")))
    assert test_summary.main([str(events)]) == 1
    assert capsys.readouterr().out == "0 passed, 1 failed\n"
