"""The command line: what --help says."""

import argparse
from collections.abc import Sequence
from pathlib import Path

_ABOUT = """\
Brings the local checkouts of PyTorch, torchvision, PyTorch/XLA and this project up to date.
Nothing is lost: local work stops the update of its repository alone, default branches are
fast-forwarded only, and every ref is kept before it moves. Nothing is rebuilt.

  scripts/update_repos.py                    this project's own set of repositories
  scripts/update_repos.py pytorch vision     these
  scripts/update_repos.py -b pytorch         pytorch and all that depend on it
  scripts/update_repos.py --dry-run          what is known here, without the network
  scripts/update_repos.py --plan             what would be done; fetches
  scripts/update_repos.py undo               brings back all that the latest run changed
  scripts/update_repos.py undo --list        the runs that can be brought back
"""

_CODES = """\
exit codes:
  0   all is current, or will be by the plan that was shown
  1   something needs a person; the table says what
  2   wrong usage: arguments, table, git too old, root, inside the development container
  3   a server could not be reached, or refused to be read; all else was done
  130 interrupted

The repositories are a table: scripts/repositories.toml, and over it
$XDG_CONFIG_HOME/torch_xla_lite/repositories.toml. --json is stable for other programs:
scripts/repos/report.schema.json describes it.
"""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Reads the command line; `command` is update or undo."""
    # Wherever it stands: options may come before it.
    if "undo" in arguments:
        rest = list(arguments)
        rest.remove("undo")
        return _undo_parser().parse_args(rest)
    return _update_parser().parse_args(arguments)


def _update_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="update_repos.py",
        description=_ABOUT,
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command="update")
    which = parser.add_argument_group("which repositories")
    which.add_argument("names", nargs="*", metavar="NAME", help="repositories of the table")
    which.add_argument(
        "-b", "--base-repo", metavar="NAME", help="this one and all that depend on it"
    )
    which.add_argument("-a", "--all", action="store_true", help="all of the table")
    how_far = parser.add_argument_group("how far").add_mutually_exclusive_group()
    how_far.add_argument(
        "--dry-run", action="store_true", help="look and plan; no network, no change"
    )
    how_far.add_argument(
        "--plan", action="store_true", help="fetch, too; only remote-tracking refs change"
    )
    what = parser.add_argument_group("what is done")
    bring = what.add_mutually_exclusive_group()
    for name in ("rebase", "merge"):
        bring.add_argument(
            f"--{name}",
            dest="bring",
            action="store_const",
            const=name,
            help=f"bring feature branches along by a {name}; conflicts are undone and listed",
        )
    what.add_argument("--pinned", action="store_true", help="update to what others pin, no further")
    what.add_argument(
        "--keep-untracked", action="store_true", help="update although there are untracked files"
    )
    what.add_argument(
        "--fix-remotes", action="store_true", help="correct or add the upstream remote"
    )
    what.add_argument(
        "--push-fork", action="store_true", help="fast-forward the fork's default branch, too"
    )
    network = parser.add_argument_group("network")
    network.add_argument(
        "--timeout", type=_positive, metavar="S", help="seconds a call may be silent (60)"
    )
    network.add_argument(
        "--retries", type=_count, metavar="N", help="how often a failed call is tried again (2)"
    )
    _common(parser)
    return parser


def _undo_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="update_repos.py undo",
        description="Brings back all that a run changed, in all its repositories.",
        epilog="What was done since is not undone with it: it stops the undo of its repository.",
    )
    parser.set_defaults(command="undo")
    parser.add_argument("run", nargs="?", help="the run to bring back (the latest)")
    parser.add_argument("--list", action="store_true", help="list the runs; change nothing")
    _common(parser)
    return parser


def _common(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("general")
    group.add_argument("--json", action="store_true", help="print JSON, for other programs")
    group.add_argument("--config", type=Path, metavar="FILE", help="the user's table")
    group.add_argument(
        "--project", type=Path, metavar="DIR", help="look around this checkout instead of ours"
    )
    group.add_argument("--allow-root", action="store_true", help="run although we are root")


def _positive(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("must be more than 0")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return value
