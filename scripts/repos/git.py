"""Calls of the git command, the layout of git folders, and commands for people to copy.

    result = git.run(folder, "rev-parse", "HEAD")
    result.code, result.out, result.err
    git.ask(folder, "rev-parse", "HEAD")      # only the output; raises GitError when the call fails

Calls do not depend on the user's shell, nor on settings that add to what a call does: no prompts,
no editor, no clean-up, no pruning, no submodules, no automatic stash.
"""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, NamedTuple

OLDEST = (2, 30)

Config = list[tuple[str, str]]  # Keys and values.

# Set by the first Ctrl-C: the current step is finished, and no other is begun.
STOP = threading.Event()

# unpackLimit: git shows no progress while it unpacks few objects, however large they are.
_SETTINGS = """
    advice.detachedHead=false color.ui=false core.quotePath=false fetch.prune=false
    fetch.recurseSubmodules=false fetch.unpackLimit=1 fetch.writeCommitGraph=false gc.auto=0
    maintenance.auto=false merge.autoStash=false rebase.autoStash=false rebase.updateRefs=false
    rerere.enabled=false submodule.recurse=false
"""
_COMMAND = ["git", *(word for setting in _SETTINGS.split() for word in ("-c", setting))]
# Variables that a calling hook sets, or that make git print secrets.
_UNWANTED = re.compile(
    "GIT_(ALTERNATE_OBJECT_DIRECTORIES|COMMON_DIR|CURL_VERBOSE|DIR|INDEX_FILE|LITERAL_PATHSPECS"
    "|NAMESPACE|OBJECT_DIRECTORY|PREFIX|WORK_TREE)|.*GIT_TRACE.*"
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
# What a transfer prints besides errors: "remote: Counting objects:  3% (1/3), 2 KiB | 1 KiB/s".
_PROGRESS = re.compile(
    r"^(remote: )?[A-Z][\w ]+(:\s+\d+(%|, done| \()|ing objects: \d)|^remote: Total "
)
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
        """What git said when it failed, in one line, without credentials and progress."""
        # Names of files follow in lines of their own.
        err = self.err.replace(":\n\t", ": ").replace("\n\t", ", ")
        lines = [line.strip() for line in err.splitlines() if line.strip()]
        lines = [line for line in lines if not _PROGRESS.search(line)] or lines
        lines = [line for line in lines if not line.startswith("hint:")] or lines
        errors = [line for line in lines if line.startswith(("fatal:", "error:", "!"))]
        remote = [line for line in lines if line.startswith("remote:")]
        return redact("; ".join([*errors[:3], *remote][:3] or lines[:3]))


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
        call = f"{fault(folder, result.err)}git {redact(' '.join(arguments[:6]))}"
        super().__init__(f"{call} failed in {folder}: {result.message}")
        self.result = result


def fault(folder: Path, message: str) -> str:
    """How a message begins where the disk is full, which git does not always report; else empty."""
    is_named = re.search("(?m)^(?!remote:).*(No space left|quota exceeded)", message)
    is_full = is_named or shutil.disk_usage(folder).free < 2**20
    return "the disk is full; " if is_full else ""


def run(
    folder: Path,
    *arguments: str,
    text: str = "",
    environ: Mapping[str, str] = {},
    wait: Callable[["subprocess.Popen[bytes]", IO[bytes], IO[bytes]], None] | None = None,
) -> Result:
    """Calls git in a folder with `text` as its input, and variables beside those of all calls.

    `wait` waits for the end of the process, and may read what it has printed so far.
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
        if wait is None:
            process.communicate(os.fsencode(text) if text else None)
        else:
            wait(process, out, err)
        out.seek(0), err.seek(0)
        return Result(process.returncode, os.fsdecode(out.read()), os.fsdecode(err.read()))


def ask(folder: Path, *arguments: str, text: str = "", environ: Mapping[str, str] = {}) -> str:
    """Output of a call, without the line break at its end; raises GitError when it fails."""
    result = run(folder, *arguments, text=text, environ=environ)
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


def version() -> tuple[int, ...]:
    """Of the git command; empty when there is none."""
    output = run(Path("/"), "version").out if shutil.which("git") else ""
    return tuple(map(int, re.findall(r"\d+", output)[:3]))


def config(folder: Path, *where: str) -> Config:
    """All settings that hold in a repository, or somewhere else, in git's order."""
    listed = run(folder, "config", *where, "--list", "-z").out.split("\0")[:-1]
    pairs = [entry.partition("\n") for entry in listed]
    # A key without value is true.
    return [(key, value if separator else "true") for key, separator, value in pairs]


def subsections(config: Config, section: str, key: str) -> list[tuple[str, str]]:
    """The names and values of all settings `section.NAME.key`."""
    found = [(re.fullmatch(rf"(?s){section}\.(.*)\.{key}", name), value) for name, value in config]
    return [(match[1], value) for match, value in found if match]


def is_checkout(path: Path) -> bool:
    """Whether a folder is the top of a checkout; also of a submodule or worktree."""
    # os.path, because pathlib raises where a folder may not be read.
    return os.path.exists(path / ".git")


def is_repository(path: Path) -> bool:
    """Whether a folder is the top of a checkout, or a bare repository."""
    return is_checkout(path) or all(os.path.exists(path / name) for name in ("HEAD", "objects"))


def git_dir(path: Path) -> Path:
    """Where HEAD and index are: of a checkout, a worktree, a submodule or a bare repository.

    A git folder itself is taken for a bare repository.
    """
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
