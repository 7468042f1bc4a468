"""Commands as a person copies them into a shell: names with spaces, or worse, are quoted."""

import shlex
from pathlib import Path


def git(folder: Path | str, *words: str) -> str:
    """A call of git in a folder.

    Names of branches come from servers, and `main;rm` is one that git takes.
    """
    return shlex.join(("git", "-C", str(folder), *words))


def inside(folder: Path, command: str) -> str:
    """A command of the table, which is one for the shell already, in a folder."""
    return f"cd {shlex.quote(str(folder))} && {command}"
