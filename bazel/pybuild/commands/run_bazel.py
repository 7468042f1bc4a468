"""Calls Bazel for any command as setup.py does, with the remote cache while its server answers.

    python -m bazel.pybuild.commands.run_bazel test --config=remote-cache //test/...

Bazel alone waits for a silent server in each action. The exit code is Bazel's; the last line says
what was wrong with the cache.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from bazel.pybuild import interrupts, notices
from bazel.pybuild.cache.remote_cache import CONFIG
from bazel.pybuild.call import command, process, run
from bazel.pybuild.errors import BuildError, message
from bazel.pybuild.machine import find_bazel
from bazel.pybuild.options import read


def main(words: Sequence[str], root: Path) -> int:
    """Returns the exit code of Bazel; 1 if it cannot be started."""
    interrupts.handle()
    try:
        options = read(os.environ)
        bazel = find_bazel.find(options.bazel, os.environ.get("PATH", os.defpath))
        flags = run.caching(options) if CONFIG in words else []
        given = [word for word in words[1:] if word != CONFIG or options.remote_cache is None]
        arguments = (str(bazel), *options.startup_options, words[0], *flags, *given)
        call = command.Command(arguments=arguments, caching=tuple(flags))
        code, _ = run.run(call, root, options, os.environ)
        return code if code >= 0 else 128 - code  # As a shell has it for a signal.
    except (BuildError, OSError) as error:
        print(f"error: {message(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return process.INTERRUPTED
    finally:
        notices.show()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).resolve().parents[3]))
