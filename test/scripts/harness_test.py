"""scripts/bench/harness.py: what it makes of times, and what it writes."""

import json
from pathlib import Path

from scripts.bench import harness


def test_a_ratio_is_the_median_of_neighbouring_runs():
    # A load that grows affects both.
    times = {"ours": [1.0, 2.0, 9.0], "other": [2.0, 4.0, 6.0]}
    row = harness.compare("build", times, "ms", against="other", scale=1000)
    assert (row.values, row.ratio) == ({"ours": 2000, "other": 4000}, 0.5)


def test_the_contenders_take_turns():
    calls: list[str] = []

    def contender(name: str) -> harness.Contender:
        return lambda: calls.append(name) or 1.0

    contenders = {name: contender(name) for name in ("a", "b")}
    harness.interleave(contenders, 2)
    assert calls == ["a", "b", "b", "a"]


def test_the_file_has_the_machine_and_all_rows(tmp_path: Path, capsys):
    report = harness.Report(harness.machine(jobs=2))
    report.add("Build", [harness.Row("null", "s", {"ours": 0.25}, 0.25, 0.2, "a note")])
    report.write(tmp_path / "result.json")
    written = json.loads((tmp_path / "result.json").read_text())
    assert written["machine"]["jobs"] == 2
    assert written["sections"]["Build"][0]["values"] == {"ours": 0.25}
    assert "<= 0.2" in capsys.readouterr().out
