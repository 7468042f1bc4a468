"""Bazel's command line, and what a call of it does."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bazel.pybuild.call import failure, run
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


def test_progress_is_shown_on_a_terminal_alone():
    assert "--noshow_progress" in _arguments(Options(), terminal=False)
    assert "--noshow_progress" not in _arguments(Options(), terminal=True)


def test_with_a_remote_cache_max_jobs_limits_the_processes_only():
    command = build_command(
        _BAZEL, Options(max_jobs=3), Path("/b"), caching=["--config=remote-cache"]
    )
    assert "--local_cpu_resources=3" in command.arguments
    assert "--jobs=3" not in command.arguments
    again = command.without_caches().arguments
    assert "--config=remote-cache" not in again
    assert again[-2:] == ("--disk_cache=", "//torch_xla_lite:outputs")


def _run(tmp_path: Path, script: str, *caching: str) -> int:
    command = Command(("/bin/sh", "-c", script, *caching), (), tmp_path / "b", caching)
    return run.run(command, tmp_path, Options(), os.environ)[0]


def test_files_of_an_earlier_build_are_gone_when_bazel_starts(tmp_path: Path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "events.json").write_text("old")
    assert _run(tmp_path, "test ! -e b/events.json") == 0


def test_the_exit_status_is_that_of_bazel(tmp_path: Path):
    assert _run(tmp_path, "exit 37") == 37


_MISSING = {"id": {"progress": {}}, "progress": {"stderr": "output 'a.o' was not created"}}


@pytest.mark.parametrize(
    ("code", "said", "caching", "calls"),
    [
        (0, [_MISSING], [], 1),
        (1, [_MISSING], [], 2),
        (1, [], ["--config=remote-cache"], 1),
        (34, [], ["--config=remote-cache"], 2),
        (34, [], [], 1),
    ],
)
def test_a_call_that_a_cache_has_ended_is_repeated_once(
    code: int, said: list[object], caching: list[str], calls: int, tmp_path: Path
):
    # Bazel writes it as compactly.
    lines = [json.dumps(event, separators=(",", ":")) for event in said]
    (tmp_path / "said").write_text("\n".join(lines))
    script = f"echo >> calls; cp said b/events.json; exit {code}"
    assert _run(tmp_path, script, *caching) == code
    assert (tmp_path / "calls").read_text() == calls * "\n"


_BUILD = """
import os
import sys
from pathlib import Path
from bazel.pybuild import interrupts
from bazel.pybuild.call import failure, run
from bazel.pybuild.call.command import Command
from bazel.pybuild.options import Options
folder = Path(sys.argv[1])
interrupts.handle()
try:
    run.run(Command(("/bin/sh", "-c", sys.argv[2])), folder, Options(), os.environ)
except KeyboardInterrupt:
    sys.exit(interrupts.status())
"""
# It ends its actions before itself, as Bazel does, and starts other processes, as bazelisk does.
_SLOW = "trap 'sleep 0.2; touch ended; exit 8' INT; {}; for i in $(seq 100); do sleep 0.1; done"


def _build(tmp_path: Path, script: str, *before: str) -> int:
    return subprocess.run(
        [*before, sys.executable, "-c", _BUILD, tmp_path, script],
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        timeout=60,
        check=False,
    ).returncode


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT"])
def test_a_signal_interrupts_bazel_is_waited_for_and_makes_the_exit_code(tmp_path: Path, name: str):
    number = getattr(signal, f"SIG{name}")
    script = _SLOW.format(f"kill -{name} $PPID")
    assert _build(tmp_path, f"({script})") == 128 + number
    assert (tmp_path / "ended").exists()


def test_a_signal_that_nohup_has_switched_off_ends_nothing(tmp_path: Path):
    assert _build(tmp_path, "kill -HUP $PPID; sleep 0.2; touch ended", "nohup") == 0
    assert (tmp_path / "ended").exists()


def test_a_full_disk_is_named_by_the_folder_of_the_build_that_is_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    command = build_command(_BAZEL, Options(), tmp_path)
    (tmp_path / "events.json").write_text("{}")
    monkeypatch.setattr("bazel.pybuild.files.is_full", lambda folder: folder == tmp_path)
    for folder in (tmp_path / "root", tmp_path):
        error = failure.of(folder, _BAZEL, command, 1, "BUILD_FAILURE", Options(), {})
        is_named = f"No space left on device: {tmp_path}\n" in str(error)
        assert is_named == (folder == tmp_path)
