"""Tries required filters, such as git-lfs, on the files of a commit before HEAD moves to it.

Where such a filter is missing, git removes the old file, cannot write the new one, and cannot
write the old one again either.
"""

import os
import shlex
import shutil
import tempfile
from pathlib import Path

from scripts.repos import git, obstacles
from scripts.repos.model import Repo


def check(repo: Repo, new: str) -> None:
    """Raises Ended when a file of the commit that HEAD would move to cannot be written."""
    problem = failing(repo.path, repo.head or "", new)
    if problem:
        shown = repo.command("config", "--show-origin", "--get-regexp", r"^filter\.")
        raise repo.skip(problem, "install that program, or repair it", shown)


def failing(path: Path, old: str, new: str) -> str:
    """The filter that cannot write a file of `new`, in words; empty when all files can be written.

    The files are written to a temporary folder, with the attributes that they have in `new`.
    """
    config = dict(git.config(path))
    required = {
        name
        for name, value in git.subsections([*config.items()], "filter", "required")
        if value.lower() in ("true", "yes", "on", "1")
    }
    files = [c.name for c in obstacles.changes(path, old, new) if c.new_mode[:3] == "100"]
    git_dir = git.git_dir(path).resolve()
    if not required or not files or not (git_dir / "index").exists():
        return ""
    # What lies outside of a sparse checkout is not written.
    outside = {n[2:] for n in git.names(path, "ls-files", "-v", "-z") if n[0] == "S"}
    changed = [name for name in files if name not in outside]
    with tempfile.TemporaryDirectory(dir=git_dir, prefix="update-repos-") as folder:
        # A copy of the index, so that only trees that differ are read.
        environ = {"GIT_INDEX_FILE": shutil.copy(git_dir / "index", folder)}
        (tree := Path(folder) / "tree").mkdir()
        where = (f"--git-dir={git_dir}", f"--work-tree={tree}", "-c", "core.fsmonitor=false")
        git.ask(tree, *where, "read-tree", "-m", "-i", old, new, environ=environ)
        words, text = ("check-attr", "--cached", "--stdin", "-z", "filter"), _lines(changed)
        listed = git.ask(tree, *where, *words, text=text, environ=environ).split("\0")
        filters = dict(zip(listed[::3], listed[2::3], strict=False))
        for driver in sorted(required & {*filters.values()}):
            names = [name for name in changed if filters.get(name) == driver]
            words, text = ("checkout-index", "--stdin", "-z"), _lines(names)
            result = git.run(tree, *where, *words, text=text, environ=environ)
            lost = [name for name in names if not os.path.lexists(tree / name)]
            if lost and result.err:
                needed = f"{lost[0]} needs the filter {driver} ({_program(config, driver)})"
                return f"{needed}, which fails: {result.message}"
    return ""


def _program(config: dict[str, str], driver: str) -> str:
    """The program that a filter calls, by which a person can install it."""
    keys = (f"filter.{driver}.process", f"filter.{driver}.smudge")
    command = next((config[key] for key in keys if config.get(key)), "no command")
    try:
        return shlex.split(command)[0]
    except (ValueError, IndexError):
        return command


def _lines(names: list[str]) -> str:
    return "".join(f"{name}\0" for name in names)
