"""The command line: torch-xla-lite, or python -m torch_xla_lite.

    torch-xla-lite doctor [--json]     check this installation, and in a checkout what builds need;
                                       exit code 1 for a problem
    torch-xla-lite env [--json]        describe the environment, for a bug report
    torch-xla-lite cache [--clear]     show what builds keep on disk

It must work even if the package does not. So `torch_xla_lite/__init__.py` calls it before anything
is checked or loaded, and it imports no package that torch_xla_lite does not need.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from ..startup import streams

NAME = "torch-xla-lite"


def called(argv: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether this process runs the command line, not a program that imports the package.

    Args:
      argv: sys.argv while the package is imported; it begins with "-m" while Python looks for the
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
    """Runs a subcommand and returns its exit code: 0, 1 for a problem, 2 for a wrong argument.

    Without a subcommand it prints what there is."""
    streams.open_closed()
    parsed = _parser().parse_args(arguments)
    try:
        code = _run(parsed)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has ended. Redirected, because Python flushes again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    return code


def _run(parsed: argparse.Namespace) -> int:
    if parsed.command is None:
        _parser().print_help()
        return 0
    # Imported here, because each takes time and only one is needed.
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
        prog=NAME, description="PyTorch on XLA: checks and describes an installation."
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, meaning in {
        "doctor": "check this installation and say how to repair it; exit code 1 for a problem",
        "env": "describe this environment for a bug report, without secrets and host names",
    }.items():
        command = commands.add_parser(name, help=meaning, description=meaning)
        command.add_argument("--json", action="store_true", help="print JSON, for programs")
    meaning = "show what builds keep on disk; remove it with --clear"
    cache = commands.add_parser("cache", help=meaning, description=meaning)
    cache.add_argument("--clear", action="store_true", help="remove the results of builds")
    return parser
