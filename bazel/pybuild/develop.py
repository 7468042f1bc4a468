"""`python setup.py develop`: the everyday command. Builds what a change touches and keeps the tree
importable.

It needs neither setuptools nor pip. setup.py calls `main` before it imports setuptools, because
that import alone would double the time of a command that finds nothing to do.
"""

import os
import sys
import time
from pathlib import Path

from bazel.pybuild import build, editable
from bazel.pybuild import options as options_table
from bazel.pybuild.errors import BuildError


def main(arguments: list[str], since: float | None = None) -> int:
    """Runs the command.

    Args:
      arguments: those after the word `develop`.
      since: time.perf_counter() at the start of the process.

    Returns:
      The exit status: 0, or 1 after a message on standard error.
    """
    since = time.perf_counter() if since is None else since
    root = Path(__file__).resolve().parents[2]
    dry_run = _parse(arguments) if arguments else False
    try:
        options = options_table.read(os.environ)
        if dry_run:
            print(" ".join(build.bazel_command(root, options, os.environ).arguments))
            return 0
        develop(root, options, since)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        # Bazel has got the same signal; whoever waited for it has it ended by now.
        print("error: interrupted. The installed files are as they were.", file=sys.stderr)
        return 130
    return 0


def develop(root: Path, options: options_table.Options, since: float | None = None) -> None:
    """Builds, and makes the editable install where it is not in place."""
    site = editable.site_folder()
    editable.check_writable(site)
    in_place = False

    def look() -> None:
        nonlocal in_place
        in_place = editable.in_place(root, site)

    report = build.build(root, options, os.environ, since=since, meanwhile=look)
    if not in_place:
        editable.install(root, site, editable.commands_folder())
        print(f"torch_xla_lite: {sys.executable} imports it from {root}")
    print(report.line())


def _parse(arguments: list[str]) -> bool:
    """Returns whether it is a dry run; prints usage and exits on anything else."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="setup.py develop",
        description="Builds the C++ libraries with Bazel and installs the package as editable.",
        epilog="The environment variables that steer it are in bazel/pybuild/options.py.",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the Bazel command and do nothing"
    )
    return parser.parse_args(arguments).dry_run
