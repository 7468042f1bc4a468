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


def _timed(label: str, milliseconds: int, **result: Any) -> str:
    result["testAttemptDurationMillis"] = str(milliseconds)
    return json.dumps({"id": {"testResult": {"label": label}}, "testResult": result}) + "\n"


def test_the_slowest_targets_are_those_that_ran_longest_with_all_their_shards():
    events = (
        _timed("//:a", 1000)
        + _timed("//:b", 1500)
        + _timed("//:a", 1000)
        + _timed("//:c", 9000, cachedLocally=True)
        + _timed("//:d", 9000, executionInfo={"cachedRemotely": True})
    )
    found = [(target.seconds, target.label) for target in test_summary.slowest(events)]
    assert found == [(2.0, "//:a"), (1.5, "//:b")]
    assert [target.label for target in test_summary.slowest(events, number=1)] == ["//:a"]


def test_each_of_them_has_the_name_of_its_longest_case(tmp_path: Path):
    events = ""
    for name, longest in (("b", "3"), ("c", "4.25")):
        report = _REPORT.replace('name="b"', f'name="{name}" time="{longest}"').format(more="")
        result = _result("//:a", tmp_path / f"{name}.xml", report)["testResult"]
        events += _timed("//:a", 6000, **result)
    assert [str(target) for target in test_summary.slowest(events)] == [
        "   12.0 s  //:a (4.2 s: c)"
    ]


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
