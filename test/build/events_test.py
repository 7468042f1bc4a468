"""What Bazel did, read from files that Bazel 4.2.3 and 7.7.1 wrote.

Both recorded the same build: after `clean` and an edit of one source, with all else in the disk
cache.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from bazel.pybuild.call import events
from test.build import logs

_TARGET = "//torch_xla_lite:outputs"
_RECORDED = Path(__file__).parent / "testdata"


def _read(folder: Path) -> events.Outcome:
    return events.read([_TARGET], folder / "events.json", folder / "execution.bin")


def _recorded(folder: Path, version: str) -> events.Outcome:
    shutil.copy(_RECORDED / f"bazel-{version}" / "events.json", folder)
    logs.unpack(version, "execution", folder / "execution.bin")
    return _read(folder)


@pytest.fixture(params=["4.2.3", "7.7.1"])
def outcome(request: pytest.FixtureRequest, tmp_path: Path) -> events.Outcome:
    return _recorded(tmp_path, request.param)


def test_the_build_succeeded(outcome: events.Outcome):
    assert outcome.exit_name == "SUCCESS"


def test_the_outputs_are_named_by_their_places_in_the_tree(outcome: events.Outcome):
    assert [output.path for output in outcome.outputs] == [
        "torch_xla_lite/_build_info.py",
        "torch_xla_lite/lib/libtorch_xla_lite.so",
    ]
    assert all(output.file.is_absolute() for output in outcome.outputs)


def test_archives_and_links_are_counted_separately(outcome: events.Outcome):
    assert outcome.ran == {"CppCompile": 1, "CppArchive": 1, "CppLink": 1}


def test_hits_are_counted(outcome: events.Outcome):
    assert (outcome.disk_hits, outcome.remote_hits) == (12, 0)


def test_local_hits_are_unknown_where_bazel_does_not_say(tmp_path: Path):
    assert _recorded(tmp_path, "4.2.3").local_hits is None
    assert _recorded(tmp_path, "7.7.1").local_hits == 0


def test_files_that_are_missing_count_as_nothing(tmp_path: Path):
    assert _read(tmp_path) == events.Outcome("", (), {}, 0, 0, None)


def test_a_file_that_a_killed_bazel_left_is_read_as_far_as_it_goes(tmp_path: Path):
    _recorded(tmp_path, "4.2.3")
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert _read(tmp_path).exit_name == ""


def _write(folder: Path, entries: list[dict[str, Any]], spawns: list[dict[str, Any]]) -> None:
    (folder / "events.json").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    logs.write(folder / "execution.bin", spawns)


def test_sets_of_files_within_sets_are_followed_and_no_file_is_named_twice(tmp_path: Path):
    def file(name: str) -> dict[str, str]:
        return {"name": name, "uri": f"file:///out/with%20space/{name}"}

    entries = [
        {"id": {"namedSet": {"id": "0"}}, "namedSetOfFiles": {"files": [file("a"), file("b")]}},
        {
            "id": {"namedSet": {"id": "1"}},
            "namedSetOfFiles": {"files": [file("c"), file("a")], "fileSets": [{"id": "0"}]},
        },
        {
            "id": {"targetCompleted": {"label": _TARGET}},
            "completed": {
                "success": True,
                "outputGroup": [{"name": "default", "fileSets": [{"id": "1"}]}],
            },
        },
    ]
    _write(tmp_path, entries, [])
    outputs = _read(tmp_path).outputs
    assert [output.path for output in outputs] == ["c", "a", "b"]
    assert outputs[0].file == Path("/out/with space/c")


def _hit(digest: str) -> dict[str, Any]:
    return {
        "mnemonic": "CppCompile",
        "runner": "remote cache hit",
        "remoteCacheHit": True,
        "actualOutputs": [{"path": "a.o", "digest": {"hash": digest}}],
    }


def test_hits_of_bazel_4_count_as_remote_where_both_caches_are_in_use(tmp_path: Path):
    caches = [f"--disk_cache={tmp_path / 'disk'}", "--remote_cache=http://cache"]
    entries = [
        {"id": {"optionsParsed": {}}, "optionsParsed": {"cmdLine": caches}},
    ]
    _write(tmp_path, entries, [_hit("aa11"), _hit("bb22")])
    outcome = _read(tmp_path)
    assert (outcome.disk_hits, outcome.remote_hits) == (0, 2)


def test_without_a_disk_cache_all_hits_are_remote(tmp_path: Path):
    entries = [
        {"id": {"optionsParsed": {}}, "optionsParsed": {"cmdLine": ["--remote_cache=http://cache"]}}
    ]
    _write(tmp_path, entries, [_hit("aa11")])
    assert _read(tmp_path).remote_hits == 1


@pytest.mark.parametrize(
    ("name", "kind"), [("libx.a", "CppArchive"), ("libx.lo", "CppArchive"), ("x.so", "CppLink")]
)
def test_archives_are_no_links_although_bazel_4_calls_them_so(tmp_path: Path, name: str, kind: str):
    _write(tmp_path, [], [{"mnemonic": "CppLink", "listedOutputs": [f"out/{name}"]}])
    assert _read(tmp_path).ran == {kind: 1}
