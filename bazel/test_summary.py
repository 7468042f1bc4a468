"""Sums a call of `bazel test` up, for the last line of scripts/test.sh.

    python -m bazel.test_summary EVENTS     # "412 passed, 0 failed"

EVENTS is the file that `--build_event_json_file` wrote. The cases are in the XML report of
each target. A target without results (because it did not build, or was killed) counts as one failed
case, and so does any other failure of Bazel, such as a package that it cannot read. A target that
Bazel skips on this machine counts as none. The exit status is 1 unless all cases passed.
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, NamedTuple


class Cases(NamedTuple):
    passed: int
    failed: int

    def __add__(self, other: "Cases") -> "Cases":
        return Cases(self.passed + other.passed, self.failed + other.failed)


def cases(events: str) -> Cases:
    """The cases of all tests in a file of events."""
    exit_name = ""
    expected: set[str] = set()
    skipped: set[str] = set()
    passed_targets: dict[str, bool] = {}
    reports: dict[tuple[str, int, int], Path] = {}
    for line in events.splitlines():
        event = json.loads(line)
        identity = event["id"]
        if "targetConfigured" in identity:
            if event.get("configured", {}).get("targetKind", "").endswith("_test rule"):
                expected.add(identity["targetConfigured"]["label"])
        elif "targetCompleted" in identity:
            if event.get("aborted", {}).get("reason") == "SKIPPED":
                skipped.add(identity["targetCompleted"]["label"])
        elif "finished" in event:
            exit_name = event["finished"].get("exitCode", {}).get("name", "")
        elif "testSummary" in event:
            status = event["testSummary"]["overallStatus"]
            passed_targets[identity["testSummary"]["label"]] = status in ("PASSED", "FLAKY")
        elif "testResult" in event:
            result = identity["testResult"]
            part = result["label"], result.get("run", 0), result.get("shard", 0)
            if path := _report(event["testResult"]):
                reports[part] = path  # The last of several attempts counts.
    total = Cases(0, 0)
    for label in sorted(expected - skipped | set(passed_targets)):
        counted = Cases(0, 0)
        for (reported, _, _), path in reports.items():
            if reported == label:
                counted += _cases_of_report(path)
        if not passed_targets.get(label, False) and not counted.failed:
            counted += Cases(0, 1)
        total += counted
    if exit_name != "SUCCESS" and not total.failed:
        total += Cases(0, 1)
    return total


def _report(result: dict[str, Any]) -> Path | None:
    """The JUnit report of a result."""
    for output in result.get("testActionOutput", []):
        if output["name"] == "test.xml":
            return Path(urllib.parse.unquote(urllib.parse.urlsplit(output["uri"]).path))
    return None


def _cases_of_report(path: Path) -> Cases:
    """The cases of one JUnit report without those that were skipped."""
    try:
        found = list(ElementTree.parse(path).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return Cases(0, 0)
    failed = sum(
        case.find("failure") is not None or case.find("error") is not None for case in found
    )
    skipped = sum(
        case.find("skipped") is not None or case.get("status") == "notrun" for case in found
    )
    return Cases(len(found) - failed - skipped, failed)


def main(arguments: list[str]) -> int:
    total = cases(Path(arguments[0]).read_text(encoding="utf-8"))
    print(f"{total.passed} passed, {total.failed} failed")
    return 0 if total.passed and not total.failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
