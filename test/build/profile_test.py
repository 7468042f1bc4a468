"""Times of actions, read from profiles of Bazel 4.2.3 and 7.7.1.

Both are recorded, without events that are not read: one compilation, and a chain of two genrules
that slept 0.3 s and 0.2 s.
"""

import gzip
from pathlib import Path

import pytest

from bazel.pybuild.why import profile

_RECORDED = Path(__file__).parent / "testdata"
_SHAPE = "bazel-out/k8-opt/bin/torch_xla_lite/csrc/ir/_objs/shape/shape.pic.o"


def _read(version: str, folder: Path) -> profile.Profile:
    file = folder / "profile.gz"
    file.write_bytes(gzip.compress((_RECORDED / f"bazel-{version}/profile.json").read_bytes()))
    return profile.read(file)


def test_an_action_has_the_time_of_its_process_and_not_of_its_wait(tmp_path: Path):
    assert _read("4.2.3", tmp_path).spans[_SHAPE] == profile.Span(0.147515, 1.198086)


def test_bazel_7_calls_the_process_by_another_name(tmp_path: Path):
    spans = _read("7.7.1", tmp_path).spans
    assert {
        output.rpartition("/")[2]: (span.start, span.seconds) for output, span in spans.items()
    } == {
        "stable-status.txt": (1.795041, 0.054186),
        "a.out": (2.011753, 0.32799),
        "b.out": (2.368913, 0.213407),
    }


def test_the_critical_path_is_without_actions_that_were_up_to_date(tmp_path: Path):
    assert _read("4.2.3", tmp_path).critical_path == (
        ("Compiling torch_xla_lite/csrc/ir/shape.cc", 1.207093),
    )
    assert [name for name, _ in _read("7.7.1", tmp_path).critical_path] == [
        "Executing genrule //:a",
        "Executing genrule //:b",
    ]


@pytest.mark.parametrize("content", [b"", b"text", gzip.compress(b"{}" * 99)[:20]])
def test_a_profile_that_a_killed_bazel_left_is_empty(tmp_path: Path, content: bytes):
    (tmp_path / "profile.gz").write_bytes(content)
    assert profile.read(tmp_path / "profile.gz") == profile.Profile()


def test_a_missing_profile_is_empty(tmp_path: Path):
    assert profile.read(tmp_path / "none") == profile.Profile()
