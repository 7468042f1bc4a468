"""What is said at the end of a build, to people and to programs."""

import json
from pathlib import Path

from bazel.pybuild import report
from bazel.pybuild.call import events
from bazel.pybuild.why import causes


def _report(**counts: int) -> report.Report:
    outcome = events.Outcome(
        exit_name="SUCCESS",
        outputs=(),
        ran={name: count for name, count in counts.items() if name.isalpha()},
        disk_hits=counts.get("disk_hits", 0),
        remote_hits=counts.get("remote_hits", 0),
        local_hits=None,
    )
    return report.Report(True, 1.3, outcome, {"p/_XLAC.so": "CppLink" in counts})


def test_a_build_says_what_was_compiled_linked_cached_and_replaced():
    assert _report(CppCompile=2, CppLink=1, CppArchive=1, disk_hits=5).line() == (
        "torch_xla_lite: built in 1.30 s; 2 compiled, 1 linked, 1 other; "
        "5 from a cache; replaced _XLAC.so"
    )


def test_a_build_with_nothing_to_do_says_so():
    assert _report().line() == (
        "torch_xla_lite: up to date in 1.30 s; 0 compiled, 0 linked, 0 other; "
        "0 from a cache; replaced no file"
    )


def test_remote_hits_are_reported_separately():
    assert "5 from a cache (3 remote)" in _report(disk_hits=2, remote_hits=3).line()


def test_many_files_are_counted_and_not_named():
    many = {f"p/{number}.h": True for number in range(20)}
    assert _report()._replace(changed=many).line().endswith("; replaced 20 files")


def test_a_wheel_replaces_nothing():
    done = _report()._replace(changed={"p/_XLAC.so": True}, installs=False)
    assert done.line() == (
        "torch_xla_lite: up to date in 1.30 s; 0 compiled, 0 linked, 0 other; 0 from a cache"
    )


def test_a_build_that_ran_more_than_its_edit_needed_says_so():
    action = causes.Action("CppCompile", "a.o", False, False, True, ())
    other = action._replace(same_result=False)
    cached = action._replace(cached=True)
    done = _report(CppCompile=2)._replace(executed=[action, other, cached])
    assert done.line().endswith(
        "; replaced no file; 1 of 2 actions rebuilt identical output (see: python setup.py explain)"
    )
    assert _report(CppCompile=1)._replace(executed=[other, cached]).line().endswith("no file")


def test_a_failed_build_says_so():
    assert _report()._replace(succeeded=False).line().startswith("torch_xla_lite: failed in ")


def test_the_file_has_the_same_in_stable_keys(tmp_path: Path):
    report.write(_report(CppCompile=2, CppLink=1, Genrule=1, disk_hits=5), tmp_path)
    assert json.loads((tmp_path / "build" / "report.json").read_text()) == {
        "succeeded": True,
        "wall_s": 1.3,
        "cuda": "",
        "actions": {"compile": 2, "link": 1, "other": 1},
        "cache_hits": {"local": None, "disk": 5, "remote": 0},
        "outputs": [{"path": "p/_XLAC.so", "changed": True}],
        "executed": [],
        "variables": {},
    }
