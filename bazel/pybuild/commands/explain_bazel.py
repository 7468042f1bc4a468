"""Calls Bazel and prints why each action ran, for scripts/explain.py.

python -m bazel.pybuild.commands.explain_bazel 2 bazel build //...

The number is that of the words up to the command, after which the options are inserted that make
Bazel write its log.
"""

import json
import os
import sys
import time
from pathlib import Path

from bazel.pybuild import lock
from bazel.pybuild.commands import explain
from bazel.pybuild.invocation import events, execution_log, invoke, last_build, report
from bazel.pybuild.invocation import explain as causes
from bazel.pybuild.options import checksums


def main(words: list[str], count: int, root: Path) -> int:
    """Returns the exit code of Bazel."""
    log, profile = root / execution_log.FILE, root / "build" / "profile.gz"
    flags = ("--config=report", f"--profile={profile}")
    since = time.perf_counter()
    with lock.exclusive(root):
        for file in (log, profile):
            file.unlink(missing_ok=True)
        with invoke.child([*words[:count], *flags, *words[count:]], root) as process:
            pass
        # Outputs and their changes are of interest to setup.py only.
        outcome = events.read(root / "none", log, (), profile)
        variables, before = checksums(os.environ), last_build.variables(root)
        actions = causes.explain(outcome, variables, before, root)
    wall = time.perf_counter() - since
    done = report.Report(process.returncode == 0, wall, outcome, {}, executed=actions)
    print(explain.text(json.loads(done.as_json())))
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:], int(sys.argv[1]), Path(__file__).resolve().parents[3]))
