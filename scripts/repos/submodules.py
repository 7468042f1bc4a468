"""Submodules follow their repository after HEAD has moved.

Which submodules are to follow is written to the state.json of their repository before its HEAD
moves (`_expected`), and `follow` takes it from there, so an interrupted run is continued by the
next one. Submodules move recursively, several at once, and never over local changes.
"""

import itertools
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from scripts.repos import git, inspect, journal, move, network, obstacles
from scripts.repos.model import Settings, shortened


def _expected(path: Path, old: str, new: str) -> tuple[dict[str, str | None], list[str]]:
    """Submodules that have to follow from one commit to another, and what the user has to know.

    The first by path, with the commit that each has now: None for one that has to be cloned.
    """
    before, after = inspect.recorded(path, old), inspect.recorded(path, new)
    # Where the user left out some, new ones are not wanted either.
    absent = [place for place in before if not git.is_checkout(path / place)]
    found: dict[str, str | None] = {}
    for place, known in after.items():
        if before.get(place) == known:
            continue
        if place in before and place not in absent:
            found[place] = git.commit(path / place, "HEAD")
        elif place not in before and not absent and not git.is_checkout(path / place):
            found[place] = None
    notes = [
        f"submodule {place} is gone from the project; its folder stays"
        for place in before
        if place not in after and place not in absent
    ]
    left_out = [place for place in after if absent and place not in {*before, *found}]
    if left_out:
        command = git.shell_command(path, "submodule", "update", "--init", "--", *left_out)
        why = f"because {shortened(absent)} {'are' if len(absent) > 1 else 'is'} not here"
        notes.append(f"new submodules are not cloned, {why}; to clone them: {command}")
    return found, notes


def move_head(path: Path, record: journal.Record, old: str, new: str, to: str = "") -> list[str]:
    """Moves HEAD of a repository or submodule; returns what the user has to know.

    Which submodules have to follow is written first. `to` is the branch that moves with HEAD, or
    that is at `new`. Raises git.Problem.
    """
    waiting = inspect.waiting(path)
    following, notes = _expected(path, old, new)
    journal.set_pending(path, {**waiting, **following})
    if record.undoes and (made := inspect.removable(path, old, new)):
        # Their git folders stay, for the next time.
        git.ask(path, "--literal-pathspecs", "submodule", "--quiet", "deinit", "--", *made)
    try:
        complaint = move.head(path, old, new, to)
    except git.Problem:
        if git.commit(path, "HEAD") == old:
            journal.set_pending(path, waiting)
        raise
    return [complaint, *notes]


def _move(place: Path, new: str, record: journal.Record) -> None:
    """Moves a submodule to a commit; raises git.Problem."""
    old, branch, local = inspect.checkout(place)
    if old == new or old is None:
        return
    problem = local._replace(untracked=()).describe()
    problem = problem or obstacles.find(place, old, new, local, bool(record.undoes))[0]
    if problem:
        raise git.Problem(problem)
    journal.keep(place, record.run, f"heads/{branch}" if branch else f"HEAD/{old}", old)
    # The branch that was checked out before the run that is undone.
    kept = f"{journal.PREFIX}/{record.undoes}/heads/"
    listed = git.run(place, "for-each-ref", "--format=%(refname)", kept).out.split("\n")
    names = [name.removeprefix(kept) for name in listed if record.undoes and name]
    to = next((n for n in names if git.commit(place, f"refs/heads/{n}") == new), "")
    move_head(place, record, old, new, to)


def follow(path: Path, record: journal.Record, settings: Settings) -> list[str]:
    """Moves the pending submodules of a repository, and those in them.

    Returns what could not be done, in words.
    """
    pending = inspect.waiting(path)
    updater = _Updater(path, record, settings, inspect.recorded(path) if pending else {})
    new_ones = [name for name, left_at in pending.items() if left_at is None]
    if new_ones:
        # At once: two calls could not both write the settings.
        git.ask(path, "--literal-pathspecs", "submodule", "init", "--", *new_ones)
    with ThreadPoolExecutor(settings.jobs) as pool:
        problems = [*pool.map(updater.update, pending, pending.values())]
    failed = [name for name, found in zip(pending, problems, strict=True) if found]
    journal.set_pending(path, {name: pending[name] for name in failed})
    return [problem for found in problems for problem in found]


class _Updater(NamedTuple):
    """Submodules of one repository that have to follow; `records` are all that HEAD has."""

    path: Path
    record: journal.Record
    settings: Settings
    records: Mapping[str, tuple[str, str]]

    def update(self, name: str, left_at: str | None) -> list[str]:
        """Moves one submodule with those in it; returns what could not be done."""
        place, (key, commit) = self.path / name, self.records[name]
        try:
            if left_at is None:
                self._clone(name, place, key, commit)
            else:
                how = dict(git.config(self.path)).get(f"submodule.{key}.update", "checkout")
                if how != "checkout":
                    raise git.Problem(f"submodule.{key}.update is {how}")
                self._fetch(place, key, commit)
                _move(place, commit, self.record)
                journal.expire(place, self.settings.keep_runs)
            # Those in it follow one by one, so that no more than `jobs` move at once.
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
                self._keep_earlier(git_dir, place)
            words = ("--literal-pathspecs", "submodule", "update", "--")
            network.call(self.path, self.settings, "cannot be cloned", *words, name)
        inner = {**dict.fromkeys(inspect.recorded(place)), **journal.pending(place)}
        journal.set_pending(place, inspect.waiting(place, inner))

    def _keep_earlier(self, git_dir: Path, place: Path) -> None:
        """Keeps the commit of an earlier submodule of the same name, whose git folder git uses.

        Raises git.Problem if files or an index need it: git would reset these.
        """
        file = ("--file", str(git_dir / "config"))
        settings = dict(git.config(git_dir.parent, *file))
        earlier = Path(os.path.normpath(git_dir / settings.get("core.worktree", ".")))
        # git does not work where the folder of the files is gone.
        anywhere = (f"--git-dir={git_dir}", f"--work-tree={git_dir}")
        staged = git.run(git_dir.parent, *anywhere, "diff-index", "--cached", "--name-only", "HEAD")
        is_used = git.is_checkout(earlier) or inspect.unfinished(git_dir).describe()
        if is_used or ((git_dir / "index").exists() and staged.out):
            words = f"{git_dir} belongs to the submodule that was at {earlier}; move both elsewhere"
            raise git.Problem(words)
        place.mkdir(parents=True, exist_ok=True)
        inside = os.path.relpath(place, git_dir)
        git.ask(git_dir.parent, "config", *file, "core.worktree", inside)
        head = git.commit(git_dir, "HEAD")
        journal.keep(git_dir, self.record.run, f"HEAD/{head}", head)

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
        remotes = ("origin", address) if is_whole else ("origin",)
        problem: git.Problem | None = None
        for remote, wanted in itertools.product(remotes, (commit, branches)):
            try:
                network.fetch(place, remote, wanted, self.settings, *depth)
            except network.Unreachable as error:
                problem = error
            if git.commit(place, commit):
                return
        raise problem or git.Problem(f"{commit} is not in origin")
