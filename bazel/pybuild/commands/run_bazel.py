"""Calls Bazel for any command as setup.py does, with the remote cache while its server answers.

    python -m bazel.pybuild.commands.run_bazel test --config=remote-cache //test/...
    python -m bazel.pybuild.commands.run_bazel --explain build //...     # why each action ran

Bazel alone waits for a silent server in each action. The exit code is Bazel's; the last line says
what was wrong with the cache.
"""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bazel.pybuild import lock, notices, report
from bazel.pybuild.cache.remote_cache import CONFIG
from bazel.pybuild.call import command, process, run
from bazel.pybuild.errors import BuildError, message
from bazel.pybuild.machine import find_bazel
from bazel.pybuild.options import read
from bazel.pybuild.why import explanation


def main(words: Sequence[str], root: Path) -> int:
    """Returns the exit code of Bazel; 1 if it cannot be started."""
    try:
        if words[0] != "--explain":
            return _main(words, root)
        with lock.exclusive(root):
            return _main(words[1:], root, explains=True)
    except (BuildError, OSError) as error:
        print(f"error: {message(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return process.INTERRUPTED
    finally:
        notices.show()


def _main(words: Sequence[str], root: Path, *, explains: bool = False) -> int:
    since = time.perf_counter()
    options = read(os.environ)
    bazel = find_bazel.find(options.bazel, os.environ.get("PATH", os.defpath))
    flags = run.caching(options) if CONFIG in words else []
    folder = root / "build" if explains else None
    given = [word for word in words[1:] if word != CONFIG or options.remote_cache is None]
    call = command.Command(
        arguments=(
            *(str(bazel), *options.startup_options, words[0], *flags),
            *(command.reporting(folder) if folder else ()),
            *given,
        ),
        folder=folder,
        filtered=explains and not sys.stderr.isatty(),
        caching=tuple(flags),
    )
    code, outcome = run.run(call, root, options, os.environ)
    if explains:
        done = report.explained(outcome, root, os.environ, since, succeeded=code == 0)
        # A record that cannot be written leaves spawns without causes; a notice says so.
        if done.executed or not outcome.spawns:
            print(explanation.text(done.as_json(), explanation.terminal_columns()), flush=True)
    return process.as_shell(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).resolve().parents[3]))
