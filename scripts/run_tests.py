"""Installs what tests need and calls `bazel test`. scripts/test.sh describes it."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bazel.pybuild.options import read
from scripts import environment


def options(words: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """The arguments of `bazel test`.

    Args:
      words: those of this program.
      environ: usually os.environ.
    """
    if any(word.partition("=")[0] in ("--python", "--torch") for word in words):
        sys.exit("error: docs/build.md, Versions, tells how to test with another Python or torch")
    found = ["--keep_going"]
    if words[:1] == ["--all"]:
        found.append("--config=nightly")
        words = words[1:]
    if environ.get("CI", "0").lower() not in ("", "0", "false"):
        found.append("--config=ci")
    if read(environ).remote_cache:
        found.append("--config=remote-cache")
    targets = [] if any(word.startswith("//") for word in words) else ["//test/..."]
    return [*found, *words, *targets]


def _cpu_seconds() -> float:
    """Those that the processors of this machine have worked since it was started."""
    user, nice, system, _, _, *interrupts = Path("/proc/stat").read_text().split()[1:8]
    return sum(map(int, [user, nice, system, *interrupts])) / os.sysconf("SC_CLK_TCK")


def main(words: list[str]) -> int:
    """Runs the command line; returns the exit code."""
    given = options(words, os.environ)
    environment.prepare(tests=True, nightly=words[:1] == ["--all"])
    python = environment.PYTHON
    if code := subprocess.run([python, "-m", "bazel.pybuild.configure"], check=False).returncode:
        return code
    before = _cpu_seconds()
    with tempfile.NamedTemporaryFile(suffix=".json") as events:
        # With remote execution, Bazel would name reports by addresses on the server.
        reports = ["--nobuild_event_json_file_path_conversion"]
        command = [python, "-m", "bazel.pybuild.commands.run_bazel", "test"]
        command += [f"--build_event_json_file={events.name}", *reports, *given]
        code = subprocess.run(command, check=False).returncode
        print(f"CPU seconds of this machine: {_cpu_seconds() - before:.0f}", flush=True)
        summary = subprocess.run([python, "-m", "bazel.test_summary", events.name], check=False)
    return code or summary.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
