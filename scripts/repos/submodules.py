"""Submodules follow their repository after HEAD has moved.

Which submodules are to follow is written to the state.json of their repository before its HEAD
moves (`expected`), and `follow` takes it from there, so an interrupted run is continued by the next
one. Submodules move recursively, several at once, and never over local changes.
"""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from scripts.repos import filters, git, inspect, journal, move, network, obstacles, relocate
from scripts.repos.model import Settings, shortened


def expected(path: Path, old: str, new: str) -> tuple[dict[str, str | None], list[str]]:
    """Submodules that have to follow from one commit to another, and what the user has to know.

    The first by path, with the commit that each has now: None for one that has to be cloned, empty
    for one that gets another path and keeps its commit.
    """
    before, after = inspect.recorded(path, old), inspect.recorded(path, new)
    commits = dict(before.values())
    # Where the user left out some, new ones are not wanted either.
    absent = [place for place in before if not git.is_checkout(path / place)]
    found: dict[str, str | None] = {}
    left_out = []
    for place, (name, commit) in after.items():
        files = inspect.files_of(path, place, name)
        is_moved = name in commits and place not in before
        if files is not None and (is_moved or files == path / place):
            if commits.get(name) != commit or before.get(place, (name,))[0] != name:
                found[place] = git.commit(files, "HEAD")
            elif is_moved:
                found[place] = ""
        elif place not in before:
            left_out += [place] if absent else []
            found |= {} if absent else {place: None}
    gone = [place for place, (name, _) in before.items() if name not in dict(after.values())]
    notes = [
        f"submodule {place} is gone from the project; its folder stays"
        for place in gone
        if place not in after and place not in absent
    ]
    if left_out:
        command = git.shell_command(path, "submodule", "update", "--init", "--", *left_out)
        why = f"because {shortened(absent)} {'are' if len(absent) > 1 else 'is'} not here"
        notes.append(f"new submodules are not cloned, {why}; to clone them: {command}")
    return found, notes


def move_head(path: Path, record: journal.Record, change: journal.Change) -> list[str]:
    """Moves HEAD of a repository or submodule; returns what the user has to know.

    The change is recorded first, and which submodules have to follow then. Raises git.Problem.
    """
    old, waiting = change.old or "", inspect.waiting(path)
    if (git.commit(path, "HEAD"), git.branch(path)) != (old, change.branch):
        raise git.Problem("a new commit or another branch was checked out meanwhile")
    record.add(change)
    following, notes = expected(path, old, change.new)
    journal.set_pending(path, {**waiting, **following})
    try:
        complaint = move.head(path, change)
    except git.Problem:
        if git.commit(path, "HEAD") == old:
            journal.set_pending(path, waiting)
        raise
    if record.command != "undo":
        relocate.follow_addresses(path, old, change.new, record)
    return [complaint, *notes]


def move_one(place: Path, new: str, record: journal.Record, to: str | None = None) -> None:
    """Moves a submodule to a commit, and to the branch that is at it; raises git.Problem."""
    old, branch, local = inspect.checkout(place)
    if old == new:
        return
    emptied = () if record.command == "undo" else None
    problem = local._replace(untracked=()).describe()
    problem = problem or obstacles.find(place, old or "", new, local, emptied)[0]
    problem = problem or filters.failing(place, old or "", new)
    if problem:
        raise git.Problem(problem)
    change = journal.Change("submodule", old, new, "HEAD", str(place), branch, to)
    move_head(place, record, change)


def follow(path: Path, record: journal.Record, settings: Settings) -> list[str]:
    """Moves the pending submodules of a repository, and those in them.

    Returns what could not be done, in words.
    """
    pending = inspect.waiting(path)
    followers = _SubmoduleUpdater(path, record, settings, inspect.recorded(path) if pending else {})
    new_ones = [name for name, left_at in pending.items() if left_at is None]
    for name in new_ones:
        # Before `init`, which writes settings.
        place, commit = str(path / name), followers.records[name][1]
        record.add(journal.Change("submodule", None, commit, path=place))
        for key, value in git.config(path, "--local"):
            # The user's, which `deinit` would remove with ours.
            if key.startswith(f"submodule.{followers.records[name][0]}."):
                record.add(journal.Change("setting", value, "", key, str(path)))
    if new_ones:
        git.ask(path, "--literal-pathspecs", "submodule", "init", "--", *new_ones)
    with ThreadPoolExecutor(settings.jobs) as pool:
        problems = [*pool.map(followers.update, pending, pending.values())]
    failed = [name for name, found in zip(pending, problems, strict=True) if found]
    journal.set_pending(path, {name: pending[name] for name in failed})
    return [problem for found in problems for problem in found]


class _SubmoduleUpdater(NamedTuple):
    """Submodules of one repository that have to follow; `records` are all that HEAD has."""

    path: Path
    record: journal.Record
    settings: Settings
    records: Mapping[str, tuple[str, str]]

    def update(self, name: str, left_at: str | None) -> list[str]:
        """Moves one submodule with those in it; returns what could not be done."""
        place, (key, commit) = self.path / name, self.records[name]
        try:
            files = inspect.files_of(self.path, name, key)
            if files not in (None, place) and left_at is not None:
                relocate.move(files, place, self.record)
            if left_at is None:
                self._clone(name, place, key, commit)
            elif left_at:
                how = dict(git.config(self.path)).get(f"submodule.{key}.update", "checkout")
                if how != "checkout":
                    raise git.Problem(f"submodule.{key}.update is {how}")
                self._fetch(place, key, commit)
                move_one(place, commit, self.record)
            # Those in it one by one, so that no more than `jobs` move at once.
            return follow(place, self.record, self.settings._replace(jobs=1))
        except (git.Problem, OSError) as error:
            return [f"submodule {os.path.relpath(place, self.record.path)}: {error}"]

    def _clone(self, name: str, place: Path, key: str, commit: str) -> None:
        """Clones a submodule, or finishes its clone; those in it are pending then."""
        git_dir = git.git_dir(self.path) / "modules" / key
        if git.is_checkout(place) and git_dir.exists() and git_dir.samefile(git.git_dir(place)):
            if not (git_dir / "index").exists():
                self._fetch(place, key, commit)
                move.finish_checkout(place, commit)
        else:
            # git would replace the files there without a word.
            found = sorted(os.listdir(place)) if place.is_dir() else [name] * os.path.lexists(place)
            if found:
                raise git.Problem(f"in the way of its clone: {shortened(found)}")
            if (git_dir / "HEAD").exists():
                _check_unused(git_dir)
                place.mkdir(parents=True, exist_ok=True)
                setting = ("--file", str(git_dir / "config"), "core.worktree")
                git.ask(git_dir.parent, "config", *setting, os.path.relpath(place, git_dir))
                kept = journal.Change("submodule", git.commit(git_dir, "HEAD"), commit)
                journal.keep(git_dir, self.record.run, kept)
            words = ("--literal-pathspecs", "submodule", "update", "--init", "--progress", "--")
            network.call(self.path, self.settings, "cannot be cloned", *words, name)
        inner = {**dict.fromkeys(inspect.recorded(place)), **journal.pending(place)}
        journal.set_pending(place, inspect.waiting(place, inner))

    def _fetch(self, place: Path, key: str, commit: str) -> None:
        """Fetches a commit into a submodule; its remote-tracking refs stay as they are."""
        if git.commit(place, commit):
            return
        # The address in .gitmodules may have changed since the clone.
        address = inspect.modules(self.path, "HEAD", "url").get(key, "")
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


def _check_unused(git_dir: Path) -> None:
    """Raises git.Problem if a git folder of an earlier submodule of the same name is in use.

    git would reset its index and HEAD, and take it from the earlier submodule's files.
    """
    config = dict(git.config(git_dir.parent, "--file", str(git_dir / "config")))
    place = Path(os.path.normpath(git_dir / config.get("core.worktree", "")))
    if git.is_checkout(place) and git_dir.samefile(git.git_dir(place)):
        words = f"{git_dir} belongs to the submodule that was at {place}; move both elsewhere"
        raise git.Problem(words)
    # git does not work where the folder of the files is gone.
    anywhere = (f"--git-dir={git_dir}", f"--work-tree={git_dir}")
    words = (*anywhere, "diff-index", "--cached", "--name-only", "HEAD")
    is_staged = (git_dir / "index").exists() and git.run(git_dir.parent, *words).out
    problem = inspect.unfinished(git_dir).describe() or ("has staged files" if is_staged else "")
    if problem:
        raise git.Problem(f"{git_dir}, of an earlier submodule of that name: {problem}")


def is_pristine(place: Path) -> bool:
    """Whether a submodule and those in it hold nothing but their recorded commits' files.

    A repository with a git folder of its own is more than that: its history is in no other place.
    """
    listed = git.ask(
        place,
        *("status", "--porcelain", "--untracked-files=all", "--ignored", "--no-renames"),
        "--ignore-submodules=none",
    )
    entries = [entry.split(" ", 2) for entry in git.names(place, "ls-files", "--stage", "-z")]
    linked = [place / rest.partition("\t")[2] for mode, _, rest in entries if mode == "160000"]
    inner = [one for one in linked if git.is_checkout(one)]
    if listed or inspect.hidden(place) or any((one / ".git").is_dir() for one in inner):
        return False
    return all(is_pristine(one) for one in inner)
