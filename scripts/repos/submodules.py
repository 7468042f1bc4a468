"""Submodules follow their repository after its branch has moved.

They do so recursively, several at once, and never over local changes. Each keeps its old commit
under refs/update-repos/<run>/ in its own git folder before it moves.
"""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.repos import backup, fetch, git, in_the_way, layout, look, move, network, parallel
from scripts.repos.model import Settings


class Submodule(NamedTuple):
    """A submodule as commits record it.

    Attributes:
      name: in .gitmodules.
      path: in the checkout around it.
      old: recorded commit before; None when it is new.
      new: recorded commit now; None when it is gone.
    """

    name: str
    path: str
    old: str | None
    new: str | None


class Follow(NamedTuple):
    """What all submodules of one run share."""

    journal: backup.Journal
    settings: Settings
    lock: "threading.Lock"


def recorded(path: Path, commit: str) -> dict[str, tuple[str, str]]:
    """Submodules of a commit: path to name and recorded commit."""
    listed = git.run(path, "config", "--blob", f"{commit}:.gitmodules", "--list", "-z")
    if listed.code != 0:
        return {}
    names = {}
    for entry in listed.out.split("\0"):
        key, _, value = entry.partition("\n")
        if key.startswith("submodule.") and key.endswith(".path"):
            names[value] = key[len("submodule.") : -len(".path")]
    if not names:
        return {}
    found = {}
    tree = git.ask(path, "--literal-pathspecs", "ls-tree", "-z", commit, "--", *names)
    for entry in tree.split("\0"):
        about, _, place = entry.partition("\t")
        if about.startswith("160000 "):
            found[place] = (names[place], about.split()[2])
    return found


def differing(path: Path, old: str, new: str) -> list[Submodule]:
    """Submodules whose recorded commits differ between two commits."""
    before, after = recorded(path, old), recorded(path, new)
    found = []
    for place in sorted({*before, *after}):
        was, now = before.get(place), after.get(place)
        if was != now:
            name = (now or was or ("", ""))[0]
            found.append(Submodule(name, place, was and was[1], now and now[1]))
    return found


def hindrances(path: Path, old: str, new: str) -> list[tuple[str, str]]:
    """Why submodules that would follow cannot, beside what git's status tells."""
    found = []
    for submodule in differing(path, old, new):
        place = path / submodule.path
        if submodule.old is not None and _is_there(place):
            words = look.under_way_words(place)
            if words:
                found.append((submodule.path, words))
    return found


def waiting(path: Path, head: str, git_dir: Path, differing: Sequence[str]) -> str | None:
    """The commit from which submodules have to follow, if an interrupted run left them behind.

    Args:
      path: the checkout.
      head: its commit.
      git_dir: its git folder.
      differing: paths of submodules that are not at their recorded commit.
    """
    runs = backup.runs(git_dir)
    record = backup.load(git_dir, runs[-1]) if runs else {"state": "done"}
    if record["state"] == "done" or record["undone"]:
        return None
    moves = [c for c in record["changes"] if c["kind"] == "ref" and c.get("checked_out")]
    if not moves or moves[-1]["new"] != head or moves[-1]["old"] is None:
        return None
    old = moves[-1]["old"]
    before = recorded(path, old)
    left = [p for p in differing if git.commit(path / p, "HEAD") == before.get(p, ("", ""))[1]]
    return old if left == list(differing) else None


def _is_there(place: Path) -> bool:
    return (place / ".git").exists()


def follow(path: Path, old: str, new: str, shared: Follow) -> list[str]:
    """Brings submodules to what a commit records.

    Args:
      path: the checkout around them, already moved.
      old: its commit before.
      new: its commit now.
      shared: journal and settings.

    Returns:
      What could not be done, in words.
    """
    changed = differing(path, old, new)
    updates = _updates(path) if changed else {}
    # Where the user left out some, new ones are not wanted either.
    all_there = all(_is_there(path / place) for place in recorded(path, old))
    new_ones = [s for s in changed if s.old is None and not _is_there(path / s.path)]
    if new_ones and all_there:
        places = [submodule.path for submodule in new_ones]
        git.change(path, "--literal-pathspecs", "submodule", "--quiet", "init", "--", *places)

    def one(submodule: Submodule) -> list[str]:
        place = path / submodule.path
        try:
            if submodule.new is None:
                gone = f"submodule {submodule.path} is gone from the project; its folder stays"
                return [gone] if _is_there(place) else []
            if _is_there(place):
                return _move(path, submodule, updates.get(submodule.name, ""), shared)
            return _clone(path, submodule, shared) if all_there and submodule.old is None else []
        except (git.GitError, network.Unreachable) as error:
            return [f"submodule {submodule.path}: {error}"]

    problems = parallel.each(one, changed, shared.settings.jobs)
    return [problem for several in problems for problem in several]


def _clone(path: Path, submodule: Submodule, shared: Follow) -> list[str]:
    place = path / submodule.path
    with shared.lock:
        shared.journal.note("submodule", path=str(place), old=None, new=submodule.new, branch=None)
    words = ("submodule", "--quiet", "update", "--init", "--recursive", "--", submodule.path)
    network.call(path, shared.settings, "--literal-pathspecs", *words)
    return []


def _move(path: Path, submodule: Submodule, wanted: str, shared: Follow) -> list[str]:
    """Moves a submodule that is there; `wanted` is how it is configured to be updated."""
    place, new = path / submodule.path, submodule.new or ""
    before = look.checkout(place)
    old = before.head or ""
    problem = before.local._replace(untracked=()).words()
    if wanted not in ("", "checkout"):
        problem = f"submodule.{submodule.name}.update is {wanted}"
    if not problem and old != new:
        _get(place, new, shared)
        blocked = in_the_way.find(place, old, new)
        problem = f"in the way: {', '.join(blocked[:3])}" if blocked else ""
    if problem:
        return [f"submodule {submodule.path}: {problem}"]
    nested = (place / ".gitmodules").exists()
    if old != new:
        backup.keep_refs(place, shared.journal.run, [backup.Move("HEAD", old, new)])
        with shared.lock:
            branch = before.branch
            shared.journal.note("submodule", path=str(place), old=old, new=new, branch=branch)
        words = ("checkout", "--quiet", "--no-overwrite-ignore", "--detach", new)
        move.to(place, words, old, new)
    if not nested and not (place / ".gitmodules").exists():
        return []
    return [f"{submodule.path}/{problem}" for problem in follow(place, old, new, shared)]


def _updates(path: Path) -> dict[str, str]:
    """How submodules are configured to be updated, by name, where that is configured."""
    found = {}
    for key, value in git.config(path):
        if key.startswith("submodule.") and key.endswith(".update"):
            found[key[len("submodule.") : -len(".update")]] = value
    return found


def _get(place: Path, commit: str, shared: Follow) -> None:
    """Gets a commit into a submodule; its remote-tracking refs stay as they are."""
    if fetch.known(place, commit):
        return
    remote = "origin"
    words = ["fetch", "--quiet", "--no-tags", "--no-prune", "--no-write-fetch-head"]
    words += ["--no-recurse-submodules"]
    if (layout.git_dir(place) / "shallow").exists():
        words.append("--depth=1")
    try:
        network.call(place, shared.settings, *words, remote, commit)
    except network.Unreachable as error:
        if not error.refused:
            raise
        # Servers may refuse to be asked for a commit by its name.
        fetched = f"+refs/heads/*:{backup.PREFIX}/{shared.journal.run}/fetched/*"
        network.call(place, shared.settings, *words, remote, fetched)
