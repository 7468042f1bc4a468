"""Calls Bazel and prints why each action ran, for scripts/explain.py.

python -m bazel.pybuild.commands.explain_bazel 2 bazel build //...

The number is that of the words up to the command, after which the options are inserted that make
Bazel write its log.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bazel.pybuild import lock
from bazel.pybuild.commands import explain
from bazel.pybuild.errors import BuildError, message
from bazel.pybuild.invocation import events, execution_log, invoke, last_build, report
from bazel.pybuild.invocation import explain as causes
from bazel.pybuild.options import checksums


def main(words: list[str], count: int, root: Path) -> int:
    """Returns the exit code of Bazel; 1 if it cannot be started."""
    try:
        if shutil.which(words[0]) is None:
            raise BuildError(
                f"There is no program {words[0]}.",
                "Name Bazel:  python scripts/explain.py --bazel=/path/to/bazel build //...",
            )
        with lock.exclusive(root):
            return _main(words, count, root)
    except (BuildError, OSError) as error:
        print(f"error: {message(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return invoke.INTERRUPTED


def _main(words: list[str], count: int, root: Path) -> int:
    log, profile = root / execution_log.FILE, root / "build" / "profile.gz"
    flags = ("--config=report", f"--profile={profile}")
    for file in (log, profile):
        file.unlink(missing_ok=True)
    since = time.perf_counter()
    try:
        command = [*words[:count], *flags, *words[count:]]
        with invoke.child(command, root, filtered=not sys.stderr.isatty()) as process:
            pass
    except KeyboardInterrupt:
        with _errors_are_lines():
            causes.remember(execution_log.read(log), checksums(os.environ), root)
        raise
    with _errors_are_lines():
        # Outputs and their changes are of interest to setup.py only.
        outcome = events.read(root / "none", log, (), profile)
        variables, before = checksums(os.environ), last_build.variables(root)
        actions = causes.explain(outcome, variables, before, root)
        wall = time.perf_counter() - since
        done = report.Report(process.returncode == 0, wall, outcome, {}, executed=actions)
        print(explain.text(json.loads(done.as_json())), flush=True)
    return invoke.exit_code(process)


@contextmanager
def _errors_are_lines() -> Iterator[None]:
    """Bazel has ended, and its exit code counts, whether or not its build can be explained."""
    try:
        yield
    except (OSError, execution_log.MissingPackage) as error:
        print(f"error: this build is not explained: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:], int(sys.argv[1]), Path(__file__).resolve().parents[3]))
