"""Submodules follow their repository after HEAD has moved.

Which submodules are to follow is written to the state.json of their repository before its HEAD
moves (`expected`), and `follow` takes it from there, so an interrupted run is continued by the next
one. Submodules move recursively, several at once, and never over local changes. Each keeps its old
commit under refs/update-repos/<run>/ in its own git folder before it moves.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scripts.repos import git, inspect, journal, move, network, obstacles
from scripts.repos.model import Settings


def expected(path: Path, old: str, new: str) -> tuple[dict[str, str | None], list[str]]:
    """Submodules that have to follow from one commit to another, and those that are gone.

    The first by path, with the commit that each has now: None for one that has to be cloned.
    The folders of the others stay.
    """
    changes = obstacles.changes(path, old, new)
    if not any(obstacles.SUBMODULE in (change.old_mode, change.new_mode) for change in changes):
        return {}, []
    before, after = inspect.recorded(path, old), inspect.recorded(path, new)
    # Where the user left out some, new ones are not wanted either.
    all_there = all(git.is_checkout(path / place) for place in before)
    found: dict[str, str | None] = {}
    for place, recording in after.items():
        if git.is_checkout(path / place):
            if before.get(place) != recording:
                found[place] = git.commit(path / place, "HEAD")
        elif all_there and place not in before:
            found[place] = None
    gone = [place for place in before if place not in after and git.is_checkout(path / place)]
    return found, gone


def follow(path: Path, record: journal.Journal, settings: Settings) -> list[str]:
    """Moves the pending submodules of a repository, and those in them.

    Returns what could not be done, in words.
    """
    git_dir, pending = git.git_dir(path), inspect.waiting(path)
    problems = _Followers(path, record, settings).follow(list(pending)) if pending else {}
    journal.set_pending(git_dir, {name: pending[name] for name, found in problems.items() if found})
    return [problem for found in problems.values() for problem in found]


class _Followers:
    """Submodules of one repository that have to follow."""

    def __init__(self, path: Path, record: journal.Journal, settings: Settings):
        self.path, self.record, self.settings = path, record, settings
        self.records = inspect.recorded(path)
        self.config = dict(git.config(path))
        self.addresses = inspect.modules(path, "HEAD", "url")

    def follow(self, names: list[str]) -> dict[str, list[str]]:
        """Moves submodules; returns what could not be done, by submodule."""
        new_ones = [name for name in names if not git.is_checkout(self.path / name)]
        for name in new_ones:
            # Before `init`, which writes settings.
            place, commit = str(self.path / name), self.records[name][1]
            self.record.note("submodule", path=place, old=None, new=commit, branch=None)
        if new_ones:
            git.change(self.path, "--literal-pathspecs", "submodule", "init", "--", *new_ones)
        with ThreadPoolExecutor(self.settings.jobs) as pool:
            return dict(zip(names, pool.map(self._one, names), strict=True))

    def _one(self, name: str) -> list[str]:
        """Moves one submodule with those in it; returns what could not be done."""
        place = self.path / name
        full = os.path.relpath(place, self.record.path)
        try:
            if not git.is_checkout(place):
                self._clone(name)
                return []
            problem = self._move(name)
            if not problem:
                return follow(place, self.record, self.settings)
        except (git.GitError, network.Unreachable, OSError) as error:
            problem = str(error)
        return [f"submodule {full}: {problem}"]

    def _clone(self, name: str) -> None:
        # A submodule of that name may have been here before.
        key, commit = self.records[name]
        old = git.git_dir(self.path) / "modules" / key
        if (old / "HEAD").exists():
            head = git.commit(old, "HEAD")
            journal.keep_refs(old, self.record.run, [journal.Move("HEAD", head, commit)])
        words = ("submodule", "update", "--init", "--recursive", "--progress", "--", name)
        network.call(self.path, self.settings, "cannot be cloned", "--literal-pathspecs", *words)

    def _move(self, name: str) -> str:
        """Moves a submodule, unless it is configured otherwise; returns the problem."""
        place, (key, new) = self.path / name, self.records[name]
        configured = self.config.get(f"submodule.{key}.update", "checkout")
        if configured != "checkout":
            return f"submodule.{key}.update is {configured}"
        before = inspect.checkout(place)
        old = before.head or ""
        if old == new:
            return ""
        problem = before.local._replace(untracked=()).words()
        if problem:
            return problem
        self._fetch(place, new, self.addresses.get(key, ""))
        problem = obstacles.find(place, old, new, before.local).words()
        if problem:
            return problem
        git_dir, left_behind = git.git_dir(place), inspect.waiting(place)
        journal.set_pending(git_dir, left_behind | expected(place, old, new)[0])
        try:
            checkout(place, self.record, before, new)
        except git.GitError:
            journal.set_pending(git_dir, left_behind)
            raise
        return ""

    def _fetch(self, place: Path, commit: str, address: str) -> None:
        """Fetches a commit into a submodule; its remote-tracking refs stay as they are.

        The address is the one in .gitmodules, which may have changed since the clone.
        """
        if git.commit(place, commit):
            return
        depth = ["--depth=1"] if (git.git_dir(place) / "shallow").exists() else []
        # A server may refuse to send a commit by its name.
        branches = f"+refs/heads/*:{journal.PREFIX}/{self.record.run}/fetched/*"
        is_whole = address and not address.startswith((".", "-"))
        problem = network.Unreachable(f"{commit} is not in origin", refused=True)
        for remote in ("origin", address) if is_whole else ("origin",):
            for wanted in (commit, branches):
                try:
                    network.fetch(place, remote, wanted, self.settings, *depth)
                except network.Unreachable as error:
                    problem = error
                if git.commit(place, commit):
                    return
                if not problem.refused:
                    break
        raise problem


def checkout(
    place: Path, record: journal.Journal, before: inspect.Checkout, new: str, to: str | None = None
) -> str:
    """Checks out a commit, or a branch that is there, in a submodule; what is lost is saved first.

    Returns what a hook complained about.
    """
    old = before.head or ""
    journal.keep_refs(place, record.run, [journal.Move("HEAD", old, new)])
    record.note("submodule", path=str(place), old=old, new=new, branch=before.branch)
    return move.to(place, move.head_to(new, to), old, new)


def is_pristine(place: Path) -> bool:
    """Whether a submodule and those in it hold nothing but their recorded commits' files."""
    listed = git.ask(
        place,
        *("status", "--porcelain", "--untracked-files=all", "--ignored", "--no-renames"),
        "--ignore-submodules=none",
    )
    inner = [place / name for name in inspect.recorded(place) if git.is_checkout(place / name)]
    return not listed and all(is_pristine(one) for one in inner)
