"""`setup.py develop --watch`, in a small copy of this tree."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from test.build.nested import Nested


@pytest.fixture
def watching(nested: Nested) -> Iterator["subprocess.Popen[str]"]:
    """A `develop --watch` that has built and waits; both streams are in its stdout."""
    command = (nested.python, "setup.py", "develop", "--watch")
    with nested.start(*command, stderr=subprocess.STDOUT) as process:
        _read_to(process, "torch_xla_lite: waits for changes")
        yield process
        process.kill()


def _read_to(process: "subprocess.Popen[str]", start: str) -> list[str]:
    """Reads the output up to a line that starts so."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith(start):
            return lines
    pytest.fail(f"no line starts with {start!r}:\n{''.join(lines)}")


def test_a_saved_source_is_built_and_an_error_ends_nothing(
    nested: Nested, watching: "subprocess.Popen[str]"
):
    nested.write("one.cc", f"int one() {{ return {time.time_ns() % 2**30 + 8}; }}\n")
    line = _read_to(watching, "torch_xla_lite: ")[-1]
    assert "1 compiled, 1 linked" in line
    nested.write("one.cc", "int one() { return unknown_name; }\n")
    lines = _read_to(watching, "To see every command")
    assert any("int one() { return unknown_name; }" in line for line in lines)
    nested.write("one.cc", "int one() { return 7; }\n")
    line = _read_to(watching, "torch_xla_lite: ")[-1]
    assert "1 compiled, 1 linked" in line
    watching.send_signal(signal.SIGINT)
    assert watching.stdout.read() == ""
    assert watching.wait() == 0


@pytest.mark.nightly
def test_what_the_build_itself_writes_starts_no_build(
    nested: Nested, watching: "subprocess.Popen[str]"
):
    for output in nested.outputs:
        output.write_bytes(b"damaged")
    nested.write("two.cc", "int one();\nint two() { return one() + 2; }\n")
    assert "1 compiled, 1 linked" in _read_to(watching, "torch_xla_lite: ")[-1]
    # If that has started a build of nothing, its line comes before the next.
    time.sleep(1)
    nested.write("two.cc", "int one();\nint two() { return one() + 3; }\n")
    assert "1 compiled, 1 linked" in _read_to(watching, "torch_xla_lite: ")[-1]
    watching.send_signal(signal.SIGINT)
    assert watching.stdout.read() == ""


@pytest.mark.nightly
def test_ctrl_c_during_a_build_ends_it_and_leaves_the_library(
    nested: Nested, watching: "subprocess.Popen[str]"
):
    library = nested.outputs[1]
    before = library.read_bytes(), library.stat().st_mtime_ns
    events = nested.root / "build" / "events.json"
    events.unlink()
    # The header is there to be compiled for a while.
    nested.write("one.cc", f"#include <regex>\nint one() {{ return {time.time_ns() % 2**30}; }}\n")
    while not events.exists():
        assert watching.poll() is None
        time.sleep(0.01)
    os.killpg(watching.pid, signal.SIGINT)
    output = watching.stdout.read()
    assert watching.wait() == 130, output
    assert output.endswith("error: interrupted. The installed files have not changed.\n")
    assert "Traceback" not in output
    assert (library.read_bytes(), library.stat().st_mtime_ns) == before


@pytest.mark.nightly
def test_a_missing_watchfiles_is_named_with_the_command_that_installs_it(
    nested: Nested, tmp_path: Path
):
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "watchfiles.py").write_text("raise ModuleNotFoundError(name='watchfiles')\n")
    process = nested.setup("develop", "--watch", PYTHONPATH=str(blocked))
    assert process.returncode == 1
    assert "develop --watch needs watchfiles" in process.stderr
    assert "-m pip install watchfiles==" in process.stderr.splitlines()[-1]
