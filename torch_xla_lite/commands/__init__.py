"""The command line: torch-xla-lite, or python -m torch_xla_lite.

    torch-xla-lite doctor [--json]     whether this installation works; exit code 1 if not
    torch-xla-lite env [--json]        what to paste into an issue
    torch-xla-lite cache [--clear]     what builds keep on disk

It has to work where the package does not, so `torch_xla_lite/__init__.py` calls it before anything
is checked or loaded, and it takes no package that the package itself does not need.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence

NAME = "torch-xla-lite"


def called(argv: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether the process is one of this command, and not of a program that imports the package.

    Args:
      argv: sys.argv while the package is imported; its first is "-m" where Python looks for a
        module to run.
      whole: sys.orig_argv, which has the name of that module before its arguments.
    """
    if not argv:
        return False
    if argv[0] == "-m":
        # The option and the name may be one word.
        return list(whole[-len(argv) :][:1]) in (["torch_xla_lite"], ["-mtorch_xla_lite"])
    return os.path.basename(argv[0]) == NAME


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a subcommand and returns its exit code: 0, 1 for a problem, 2 for a wrong argument."""
    parsed = _parser().parse_args(arguments)
    try:
        code = _run(parsed)
        # Not sys.stdout.flush(): who closed the output has left None there.
        print(end="", flush=True)
    except BrokenPipeError:
        # Whoever read what is printed has gone, as `head` does. Python would try once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    return code


def _run(parsed: argparse.Namespace) -> int:
    # One is needed, and each takes its time to import.
    if parsed.command == "doctor":
        from . import doctor

        return doctor.main(json=parsed.json)
    if parsed.command == "env":
        from . import env

        return env.main(json=parsed.json)
    from . import cache

    return cache.main(clear=parsed.clear)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME, description="PyTorch on XLA: looks after an installation."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, meaning in {
        "doctor": "check that this installation works, and say what mends it; 1 if it does not",
        "env": "describe this environment, for an issue; no secrets and no host names",
    }.items():
        command = commands.add_parser(name, help=meaning, description=meaning)
        command.add_argument("--json", action="store_true", help="for other programs")
    meaning = "show what builds keep on disk, and remove it on request"
    cache = commands.add_parser("cache", help=meaning, description=meaning)
    cache.add_argument("--clear", action="store_true", help="remove what is ours; asks nothing")
    return parser
