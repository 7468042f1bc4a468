"""Prints the share of results that came from a cache, and fails below a minimum.

    python scripts/ci/hit_rate.py build/report.json --minimum 90     # the last build by setup.py
    python scripts/ci/hit_rate.py EVENTS                             # a call of `bazel test`

EVENTS is what Bazel's --build_event_json_file wrote. The exit code is 1 below the minimum (in
percent), and also if a minimum is given and there was nothing to build or test.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import NamedTuple


class Counts(NamedTuple):
    """Results of a build.

    Attributes:
      what: they are.
      cached: number of those that came from a cache.
      total: of all.
    """

    what: str
    cached: int
    total: int

    def percent(self) -> float:
        """The hit rate."""
        return 100 * self.cached / self.total if self.total else 0.0


def read(text: str) -> Counts:
    """Counts the results in the content of a report or of an event file."""
    lines = text.splitlines()
    # Bazel leaves an empty file if it fails early.
    if not lines or '"id"' in lines[0]:
        return _tests([json.loads(line) for line in lines])
    report = json.loads(text)
    hits = sum(report["cache_hits"][kind] or 0 for kind in ("disk", "remote"))
    return Counts("actions", hits, hits + sum(report["actions"].values()))


def _tests(events: list[dict]) -> Counts:
    results = [event["testResult"] for event in events if "testResult" in event]
    cached = [
        result
        for result in results
        if result.get("cachedLocally") or result.get("executionInfo", {}).get("cachedRemotely")
    ]
    return Counts("test results", len(cached), len(results))


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--minimum", type=float, default=0, metavar="PERCENT")
    arguments = parser.parse_args()
    counts = read(arguments.file.read_text(encoding="utf-8"))
    percent = counts.percent()
    print(f"from a cache: {counts.cached} of {counts.total} {counts.what} ({percent:.1f} %)")
    if percent < arguments.minimum:
        print(f"error: less than {arguments.minimum:g} % came from a cache.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
