"""Checks both caches: whether the server answers, and whether entries on the disk are damaged.

    ok       remote cache: http://127.0.0.1:9090 answers in 0.4 ms; you may read, not write
    problem  disk cache: 2 of 1374 entries are damaged, such as /home/me/.cache/.../ac/87/879dd2

`torch-xla-lite doctor` checks the installed package.
"""

from collections.abc import Mapping

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import configure, disk_cache, remote_cache
from bazel.pybuild.options import Options


def check(options: Options, environ: Mapping[str, str], *, repair: bool) -> None:
    """Prints a line about each cache.

    Args:
      options: from the environment.
      environ: usually os.environ.
      repair: whether to remove damaged entries from the disk cache.

    Raises:
      BuildError: there is a problem.
    """
    answers, text = remote_cache.describe(options)
    print(_line(answers, f"remote cache: {text}"))
    folder = configure.disk_cache(options, environ)
    damaged = list(disk_cache.damaged(folder)) if folder else []
    if damaged and repair:
        for entry in damaged:
            entry.unlink(missing_ok=True)
        print(_line(True, f"disk cache: removed {len(damaged)} damaged entries from {folder}"))
        damaged = []
    elif damaged:
        named = f"{len(damaged)} entries are damaged, such as {damaged[0]}"
        print(_line(False, f"disk cache: {named}"))
    else:
        print(_line(True, f"disk cache: no entry of {folder} is damaged"))
    if damaged:
        raise BuildError(
            "The disk cache has damaged entries.",
            "Remove them; builds store them again:  python setup.py doctor --repair",
        )
    if not answers:
        raise BuildError(
            "The remote cache has a problem. Builds go on without it.",
            "The variables that set it:  python setup.py options",
        )


def _line(ok: bool, text: str) -> str:
    return f"{'ok' if ok else 'problem':<9}{text}"
