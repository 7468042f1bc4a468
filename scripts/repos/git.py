"""One call of the git command.

    result = git.run(folder, "rev-parse", "HEAD")
    result.code, result.out, result.err
    git.ask(folder, "rev-parse", "HEAD")    # the output alone; raises GitError when the call fails

What git does is made independent of the user's shell and of settings that would do more than what
is asked: no prompts, no editor, no clean-up, no pruning, no submodules, no stash behind our back.
"""

import os
import subprocess
import threading
from pathlib import Path
from typing import Any, NamedTuple

from scripts.repos import urls

OLDEST = (2, 30)

# Set by the first Ctrl-C: what is under way is finished, nothing new is begun.
STOP = threading.Event()

# Never shown; filled as configurations are read.
SECRETS: set[str] = set()

# Left over from a hook that called us, or made to print what must not be printed.
_UNWANTED = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CURL_VERBOSE",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
)

_SETTINGS = (
    "advice.detachedHead=false",
    "color.ui=false",
    "core.quotePath=false",
    "fetch.prune=false",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "merge.autoStash=false",
    "rebase.autoStash=false",
    "rebase.updateRefs=false",
    "rerere.enabled=false",
    "submodule.recurse=false",
)
_PREFIX = ["git", *(word for setting in _SETTINGS for word in ("-c", setting))]


class Result(NamedTuple):
    """How a call ended."""

    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """What git said when it failed, without credentials, in one line."""
        lines = [line.strip() for line in self.err.splitlines() if line.strip()]
        kept = [line for line in lines if not line.startswith("hint:")]
        wanted = [line for line in kept if line.startswith(("fatal:", "error:", "remote:", "!"))]
        return urls.redact("; ".join((wanted or kept or lines)[:3]), SECRETS)


class GitError(Exception):
    """A call of git failed that should not have.

    Args:
      folder: where it was called.
      arguments: of git.
      result: how it ended.
    """

    def __init__(self, folder: Path, arguments: tuple[str, ...], result: Result):
        shown = urls.redact(" ".join(arguments[:6]), SECRETS)
        super().__init__(f"git {shown} failed in {folder}: {result.words}")
        self.result = result


def environment(
    folder: Path, *, changing: bool = False, index: Path | None = None
) -> dict[str, str]:
    """The variables that git is called with.

    Args:
      folder: where; a repository around it is not taken for it.
      changing: whether the call may write; otherwise not even the index is refreshed.
      index: instead of the repository's own.
    """
    environ = {
        name: value
        for name, value in os.environ.items()
        if name not in _UNWANTED and not name.startswith("GIT_TRACE")
    }
    environ.update(
        GIT_CEILING_DIRECTORIES=str(folder.parent),
        GIT_EDITOR="true",
        GIT_SEQUENCE_EDITOR="true",
        GIT_MERGE_AUTOEDIT="no",
        GIT_REFLOG_ACTION="update_repos",
        GIT_TERMINAL_PROMPT="0",
        # Messages are read.
        LC_ALL="C",
        LANGUAGE="C",
    )
    if not changing:
        environ["GIT_OPTIONAL_LOCKS"] = "0"
    if index is not None:
        environ["GIT_INDEX_FILE"] = str(index)
    return environ


def command(*arguments: str) -> list[str]:
    """The words of a call."""
    return [*_PREFIX, *arguments]


def run(
    folder: Path,
    *arguments: str,
    text: str = "",
    changing: bool = False,
    index: Path | None = None,
) -> Result:
    """Calls git on local data and waits for its end.

    Args:
      folder: to call it in.
      arguments: of git.
      text: its input.
      changing: whether it may write.
      index: instead of the repository's own.
    """
    options: dict[str, Any] = {
        "cwd": folder,
        "env": environment(folder, changing=changing, index=index),
        "input": os.fsencode(text),
        "check": False,
        # A Ctrl-C is for us, not for a merge that is half done; and without a terminal nothing
        # can ask for a passphrase where nobody would see the question.
        "start_new_session": True,
    }
    if not changing:
        done = subprocess.run(command(*arguments), capture_output=True, **options)
        return Result(done.returncode, os.fsdecode(done.stdout), os.fsdecode(done.stderr))
    import tempfile

    # A hook may leave a process behind that keeps what it was given open; of a pipe that would be
    # waited for.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        done = subprocess.run(command(*arguments), stdout=out, stderr=err, **options)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(os.fsdecode(file.read()))
        return Result(done.returncode, *texts)


def ask(folder: Path, *arguments: str, text: str = "") -> str:
    """Output of a call that only reads; without the line break at its end.

    Raises:
      GitError: it failed.
    """
    result = run(folder, *arguments, text=text)
    if result.code != 0:
        raise GitError(folder, arguments, result)
    return result.out.removesuffix("\n")


def change(folder: Path, *arguments: str, text: str = "") -> str:
    """As `ask`, of a call that writes."""
    result = run(folder, *arguments, text=text, changing=True)
    if result.code != 0:
        raise GitError(folder, arguments, result)
    return result.out.removesuffix("\n")


def move_branch(branch: str, commit: str) -> tuple[str, ...]:
    """The call that moves the checked-out branch with index and files, to anywhere.

    It refuses where that would change a file with local changes. Unlike `reset --keep` it keeps
    what is staged.
    """
    options = ("--quiet", "--no-track", "--no-overwrite-ignore")
    return ("checkout", *options, "-B", branch, commit, "--")


def commit(folder: Path, name: str) -> str | None:
    """The commit that a name means; None when there is none."""
    result = run(folder, "rev-parse", "--quiet", "--verify", f"{name}^{{commit}}")
    return result.out.strip() if result.code == 0 else None


def version() -> tuple[int, ...]:
    """Of the git command; empty when there is none."""
    try:
        said = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return ()
    numbers = said.stdout.split()[2].split(".") if said.stdout.startswith("git version") else []
    return tuple(int(number) for number in numbers[:3] if number.isdigit())


def config(folder: Path) -> list[tuple[str, str]]:
    """All settings that hold in a repository, in git's order; a key without value is true."""
    listed = ask(folder, "config", "--list", "-z")
    pairs = [entry.partition("\n") for entry in listed.split("\0") if entry]
    found = [(key, value if separator else "true") for key, separator, value in pairs]
    SECRETS.update(urls.secrets_in(found))
    return found
