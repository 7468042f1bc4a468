"""Calls Bazel with the remote cache as long as its server answers, for scripts/test.sh.

    python -m bazel.pybuild.commands.bazel_with_cache bazel test --config=remote-cache //test/...

Bazel alone waits for a silent server in each action. This asks the server first, and again while
Bazel works, and calls Bazel without --config=remote-cache when there is no answer, as setup.py does
for its builds. The exit code is Bazel's; the last line says what was wrong with the cache.
"""

import functools
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from bazel.pybuild.errors import BuildError, message
from bazel.pybuild.invocation import invoke
from bazel.pybuild.machine import remote_cache
from bazel.pybuild.options import Options, read
from bazel.pybuild.variables import without_secrets


def main(words: Sequence[str], root: Path) -> int:
    """Returns the exit code of Bazel; 1 if it cannot be started."""
    try:
        options = read(os.environ)
        if options.remote_cache is None or remote_cache.CONFIG not in words:
            return _call(words, root, options)[0]
        return _call_with_cache(words, root, options)
    except (BuildError, OSError) as error:
        print(f"error: {message(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return invoke.INTERRUPTED


def _call_with_cache(words: Sequence[str], root: Path, options: Options) -> int:
    flags, said = remote_cache.flags(options)
    code, problem = _call(_with(flags, words), root, options)
    if problem and code != 0:
        said = f"was not used to the end: {problem}"
        code, _ = _call(_with([], words), root, options)
    if said:
        print(f"torch_xla_lite: the remote cache {said}", file=sys.stderr)
    return code


def _with(flags: Sequence[str], words: Sequence[str]) -> list[str]:
    """The command line with these flags in place of --config=remote-cache."""
    place = words.index(remote_cache.CONFIG)
    return [*words[:place], *flags, *words[place + 1 :]]


def _call(words: Sequence[str], root: Path, options: Options) -> tuple[int, str]:
    """Returns the exit code, and why the cache cannot be used any more; empty if it can."""
    uses_cache = remote_cache.CONFIG in words
    watch = remote_cache.Watch(options)
    try:
        environ = without_secrets(os.environ)
        with invoke.child(words, root, environ, group=uses_cache) as process:
            if uses_cache:
                watch.start(functools.partial(os.killpg, process.pid, signal.SIGINT))
    finally:
        watch.stop()
        remote_cache.redact(root / "none", root)
    code = invoke.exit_code(process)
    return code, watch.problem(code) if uses_cache else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).resolve().parents[3]))
