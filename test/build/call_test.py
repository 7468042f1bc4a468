"""Tests Bazel's command line and the filter of its output."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from bazel.pybuild.call import run
from bazel.pybuild.call.command import Command, build_command
from bazel.pybuild.options import Mode, Options, WheelKind

_BAZEL = Path("/usr/bin/bazel")


def _arguments(options: Options, *, terminal: bool = True) -> tuple[str, ...]:
    return build_command(_BAZEL, options, Path("/tree/build"), terminal).arguments


def test_startup_options_stand_before_the_command_and_build_options_before_the_target():
    options = Options(startup_options=("--batch",), build_options=("--keep_going",))
    arguments = _arguments(options)
    assert arguments[:3] == ("/usr/bin/bazel", "--batch", "build")
    assert arguments[-2:] == ("--keep_going", "//torch_xla_lite:outputs")


def test_release_adds_no_flag_that_a_bare_bazel_build_has_not():
    assert not [flag for flag in _arguments(Options()) if "mode" in flag or "copt" in flag]


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        (Options(mode=Mode.DEBUG), "--compilation_mode=dbg"),
        (Options(mode=Mode.RELEASE_WITH_DEBUG_INFO), "--copt=-g"),
        (Options(debug_files=True), "--copt=-g"),
        (Options(max_jobs=3), "--jobs=3"),
        (Options(prioritized_text=True), "--define=link_order=on"),
        (Options(verbose=True), "--subcommands"),
    ],
)
def test_an_option_becomes_a_flag(options: Options, flag: str):
    assert flag in _arguments(options)
    assert flag not in _arguments(Options())


@pytest.mark.parametrize("kind", list(WheelKind))
def test_the_cuda_library_is_built_with_the_other_libraries(kind: WheelKind):
    targets = build_command(
        _BAZEL, Options(wheel_kind=kind), Path("/tree/build"), cuda=True
    ).targets
    assert ("//torch_xla_lite:cuda_outputs" in targets) == (kind is not WheelKind.PYTHON)


def test_a_declined_link_order_is_like_an_unset_one():
    assert _arguments(Options(prioritized_text=False)) == _arguments(Options())


def test_outputs_have_local_paths_with_a_cache_by_grpc():
    """Otherwise they are bytestream://HOST/blobs/..., which cannot be copied into the package."""
    assert "--nobuild_event_json_file_path_conversion" in _arguments(Options())


def test_progress_is_rare_without_a_terminal():
    rare = "--show_progress_rate_limit=5"
    assert rare in _arguments(Options(), terminal=False)
    assert rare not in _arguments(Options(), terminal=True)


def test_with_a_remote_cache_max_jobs_limits_the_processes_only():
    command = build_command(
        _BAZEL, Options(max_jobs=3), Path("/b"), caching=["--config=remote-cache"]
    )
    assert "--local_cpu_resources=3" in command.arguments
    assert "--jobs=3" not in command.arguments
    assert "--config=remote-cache" not in command.without_cache().arguments


@pytest.mark.parametrize("what", ["Reading from ", "Writing to ", ""])
def test_messages_about_a_cache_are_left_to_the_one_line_at_the_end(
    what: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
):
    said = f"WARNING: {what}Remote Cache:\\n401\\n<html>\\nERROR: a\\nin b\\n"
    _run(tmp_path, f"printf '{said}' >&2")
    assert capfdbinary.readouterr().err == b"ERROR: a\nin b\n"


def _run(tmp_path: Path, script: str, *, filtered: bool = True) -> int:
    command = Command(("/bin/sh", "-c", script), (), tmp_path / "b", filtered)
    return run.run(command, tmp_path, Options(), os.environ)[0]


def test_files_of_an_earlier_build_are_gone_when_bazel_starts(tmp_path: Path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "events.json").write_text("old")
    assert _run(tmp_path, "test ! -e b/events.json") == 0


def test_the_exit_status_is_that_of_bazel(tmp_path: Path):
    assert _run(tmp_path, "exit 37") == 37


@pytest.mark.parametrize(("code", "calls"), [(0, 1), (1, 2)])
def test_a_call_is_repeated_for_incomplete_results_only_if_it_failed(
    code: int, calls: int, tmp_path: Path
):
    event = {"id": {"progress": {}}, "progress": {"stderr": "output 'a.o' was not created"}}
    (tmp_path / "said").write_text(json.dumps(event))
    assert _run(tmp_path, f"echo >> calls; cp said b/events.json; exit {code}") == code
    assert (tmp_path / "calls").read_text() == calls * "\n"


def test_messages_reach_a_log_without_the_phases_that_every_build_goes_through(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
):
    _run(tmp_path, "printf 'Loading: 1\\nWARNING: a\\nAnalyzing: b\\nERROR: c\\n' >&2")
    assert capfdbinary.readouterr().err == b"WARNING: a\nERROR: c\n"


def test_all_messages_are_shown_on_request(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
):
    _run(tmp_path, "echo Loading: >&2", filtered=False)
    assert capfdbinary.readouterr().err == b"Loading:\n"


def test_bazel_goes_on_where_its_messages_find_no_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # More than waits in a pipe.
    script = "timeout 20 sh -c 'yes | head --lines=100000 >&2'"
    with open("/dev/full", "wb", buffering=0) as full:
        monkeypatch.setattr(sys, "stderr", SimpleNamespace(buffer=full))
        assert _run(tmp_path, script) == 0


_BUILD = """
import os
import sys
from pathlib import Path
from bazel.pybuild.call import run
from bazel.pybuild.call.command import Command
from bazel.pybuild.options import Options
folder = Path(sys.argv[1])
command = Command(("/bin/sh", "-c", sys.argv[2]), (), folder, True)
try:
    run.run(command, folder, Options(), os.environ)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_of_setup_py_alone_is_forwarded_to_bazel(tmp_path: Path):
    # As Bazel, which ends its actions before itself.
    script = "trap 'sleep 0.2; touch ended; exit 8' INT; kill -INT $PPID"
    script += "; for i in $(seq 100); do sleep 0.1; done"
    process = subprocess.run(
        [sys.executable, "-c", _BUILD, tmp_path, script],
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert process.stdout == "interrupted\n"
    assert (tmp_path / "ended").exists()
