"""Calls of the git command, the layout of git folders, and commands for people to copy.

    result = git.run(folder, "rev-parse", "HEAD")
    result.code, result.out, result.err
    git.ask(folder, "rev-parse", "HEAD")      # only the output; raises GitError when the call fails

Calls do not depend on the user's shell, nor on settings that add to what a call does: no prompts,
no editor, no clean-up, no pruning, no submodules, no automatic stash.
"""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

# Set by the first Ctrl-C: the current step is finished, and no other is begun.
STOP = threading.Event()
_stoppables: set["subprocess.Popen[bytes]"] = set()

_SETTINGS = """
    advice.detachedHead=false color.ui=false core.quotePath=false fetch.prune=false
    fetch.recurseSubmodules=false fetch.writeCommitGraph=false gc.auto=0 maintenance.auto=false
    merge.autoStash=false rebase.autoStash=false rebase.updateRefs=false rerere.enabled=false
    submodule.recurse=false
"""
_COMMAND = ["git", *(word for setting in _SETTINGS.split() for word in ("-c", setting))]
# Variables that a calling hook sets (`git rev-parse --local-env-vars`), except settings of the user
# (GIT_CONFIG_COUNT, GIT_CONFIG_PARAMETERS); those that change what paths mean or print secrets.
_UNWANTED = re.compile(
    r"GIT_(ALTERNATE_OBJECT_DIRECTORIES|COMMON_DIR|CONFIG|CURL_VERBOSE|DIR|GRAFT_FILE"
    r"|IMPLICIT_WORK_TREE|INDEX_FILE|INTERNAL_SUPER_PREFIX|NAMESPACE|NO_REPLACE_OBJECTS"
    r"|OBJECT_DIRECTORY|PREFIX|QUARANTINE_PATH|REPLACE_REF_BASE|SHALLOW_FILE|WORK_TREE"
    r"|\w+_PATHSPECS)|.*GIT_TRACE.*"
)
_ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not _UNWANTED.fullmatch(name)},
    **dict.fromkeys(("GIT_EDITOR", "GIT_SEQUENCE_EDITOR"), "true"),
    # Our code reads the messages.
    **dict.fromkeys(("LC_ALL", "LANGUAGE"), "C"),
    **{"GIT_MERGE_AUTOEDIT": "no", "GIT_TERMINAL_PROMPT": "0", "GIT_REFLOG_ACTION": "update_repos"},
    # What only reads does not even refresh the index.
    "GIT_OPTIONAL_LOCKS": "0",
}
_SECRETS = (
    # Up to the last @ before the path: a password may hold one. The user of ssh is no secret.
    (re.compile(r"(?i)((?<!ssh)://[^/\s'\"]+|(?<=ssh)://[^/\s'\"]*:[^/\s'\"]*)@"), "://***@"),
    (re.compile(r"(?i)(authorization\s*[:=]\s*)(?:\w+ )?[^\s'\"]+"), r"\1***"),
    (re.compile(r"(?i)([?&](?:access_token|private_token|token|password)=)[^&\s'\"]+"), r"\1***"),
    (re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-)[A-Za-z0-9_-]{8,}"), "***"),
)


class Result(NamedTuple):
    """How a call ended."""

    code: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """What git said when it failed, in one line, without credentials."""
        # Names of files, and the rest of a sentence, follow in lines that are indented.
        joined = re.sub(r"\n(?:\t| (?=')) *", " ", self.err)
        lines = [line.strip() for line in joined.splitlines() if line.strip()]
        lines = [line for line in lines if not line.startswith("hint:")] or lines
        errors = [line for line in lines if line.startswith(("fatal:", "error:", "!"))]
        remote = [line for line in lines if line.startswith("remote:")]
        said = redact("; ".join([*errors[:3], *remote][:3] or lines[:3]))
        return said or f"git ended with {self.code} and said nothing"


def redact(text: str) -> str:
    """A text without credentials: those in addresses, headers and tokens."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


class Problem(Exception):
    """What prevents a step, in words."""


class GitError(Problem):
    """A call of git failed unexpectedly."""

    def __init__(self, folder: Path, arguments: tuple[str, ...], result: Result):
        call = f"git {redact(' '.join(arguments[:6]))} failed in {folder}"
        super().__init__(f"{call}: {result.message}")
        self.result = result


def run(
    folder: Path,
    *arguments: str,
    text: str = "",
    environ: Mapping[str, str] = {},
    may_stop: bool = False,
) -> Result:
    """Calls git in a folder with `text` as its input, and variables beside those of all calls.

    A call that `may_stop` is ended by a Ctrl-C.
    """
    # Files, not pipes: a hook, or ssh, may leave a process behind that keeps a pipe open.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [*_COMMAND, *arguments],
            cwd=folder,
            # Otherwise git would use a repository in a parent folder.
            env={**_ENVIRONMENT, "GIT_CEILING_DIRECTORIES": str(folder.parent), **environ},
            stdin=subprocess.PIPE if text else subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            # A Ctrl-C ends this tool, not a merge that is half done; and without a terminal no
            # program can wait for a passphrase.
            start_new_session=True,
        )
        if may_stop:
            _stoppables.add(process)
            if STOP.is_set():
                stop()
        process.communicate(os.fsencode(text) if text else None)
        _stoppables.discard(process)
        out.seek(0), err.seek(0)
        return Result(process.returncode, os.fsdecode(out.read()), os.fsdecode(err.read()))


def stop() -> None:
    """Ends calls of servers; by SIGTERM, so that git removes its files. Others are finished."""
    STOP.set()
    for process in [*_stoppables]:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)


def ask(folder: Path, *arguments: str, text: str = "") -> str:
    """Output of a call, without the line break at its end; raises GitError when it fails."""
    result = run(folder, *arguments, text=text)
    if result.code != 0:
        raise GitError(folder, arguments, result)
    return result.out.removesuffix("\n")


def names(folder: Path, *arguments: str) -> list[str]:
    """What a call with -z lists; raises GitError when it fails."""
    return ask(folder, *arguments).split("\0")[:-1]


def update_refs(folder: Path, lines: Iterable[str]) -> None:
    """Carries out lines of `git update-ref --stdin -z`, all or none."""
    text = "".join(lines)
    if text:
        ask(folder, "update-ref", "--stdin", "-z", text=text)


def commit(folder: Path, name: str) -> str | None:
    """The commit that a name means; None when there is none."""
    result = run(folder, "rev-parse", "--quiet", "--verify", f"{name}^{{commit}}")
    return result.out.strip() if result.code == 0 else None


def branch(folder: Path) -> str | None:
    """The branch that is checked out; None when HEAD is detached."""
    ref = run(folder, "symbolic-ref", "--quiet", "HEAD").out.removesuffix("\n")
    return ref.removeprefix("refs/heads/") or None


def setting(folder: Path, key: str, *where: str) -> str:
    """A setting of git: by default the one that holds in the repository; empty if it is not set."""
    return run(folder, "config", *where, "--get", key).out.removesuffix("\n")


def is_checkout(path: Path) -> bool:
    """Whether a folder is the top of a checkout; also of a submodule or worktree."""
    # os.path, because pathlib raises where a folder may not be read.
    return os.path.exists(path / ".git")


def git_dir(path: Path) -> Path:
    """Where HEAD and index are: of a checkout, a worktree, a submodule or a bare repository."""
    inside = path / ".git"
    if not inside.exists():
        return path
    return inside if inside.is_dir() else path / line(inside).removeprefix("gitdir: ")


def common_dir(path: Path) -> Path:
    """Where refs, objects and configuration are: of a worktree, in another folder."""
    own = git_dir(path)
    common = own / "commondir"
    return own / line(common) if common.is_file() else own


def line(file: Path) -> str:
    """The content of a file without its last line break; paths may hold others, and any bytes."""
    if b"\0" in (content := file.read_bytes()):
        raise OSError(f"{file} is damaged")
    return os.fsdecode(content).rstrip("\n")


def shell_command(folder: Path | str, *words: str) -> str:
    """A call of git in a folder, for a person's shell.

    Names of branches come from servers, and `main;rm` is one that git accepts.
    """
    return shlex.join(("git", "-C", str(folder), *words))
