"""Submodules follow their repository after HEAD has moved.

Which ones have to is no record of its own: those that are where a commit that HEAD had before has
them (`inspect.behind`), so an interrupted run is continued by the next one. Submodules move
recursively, several at once, and never over local changes.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from scripts.repos import git, inspect, journal, move, network, obstacles
from scripts.repos.model import Repo, Run, shortened


def move_head(path: Path, run: Run, old: str, new: str, to: str = "") -> list[str]:
    """Moves HEAD of a repository or submodule; returns what the user has to know.

    `to` is the branch that moves with HEAD, or that is at `new`. Raises git.Problem.
    """
    notes = [*_notes(path, old, new)]
    if run.undoes and (made := inspect.removable(path, old, new)):
        # Their git folders stay, for the next time.
        git.ask(path, "--literal-pathspecs", "submodule", "--quiet", "deinit", "--", *made)
    return [move.head(path, old, new, to), *notes]


def _notes(path: Path, old: str, new: str) -> Iterator[str]:
    """What happens to submodules that do not follow from one commit to another."""
    before, after = inspect.recorded(path, old), inspect.recorded(path, new)
    absent = [place for place in before if not git.is_checkout(path / place)]
    for place in before:
        if place not in after and place not in absent:
            yield f"submodule {place} is gone from the project; its folder stays"
    left_out = [place for place in after if absent and place not in before]
    if left_out:
        command = git.shell_command(path, "submodule", "update", "--init", "--", *left_out)
        why = f"because {shortened(absent)} {'are' if len(absent) > 1 else 'is'} not here"
        yield f"new submodules are not cloned, {why}; to clone them: {command}"


def _move(place: Path, new: str, run: Run, before: Sequence[str]) -> None:
    """Moves a submodule to a commit; raises git.Problem."""
    # One that is in it may have stayed where the new commit has it.
    old, branch, local = inspect.checkout(place, [*before, new])
    if old == new or old is None:
        return
    problem = local._replace(untracked=()).describe()
    problem = problem or obstacles.find(place, old, new, local, bool(run.undoes))[0]
    if problem:
        raise git.Problem(problem)
    ref = f"refs/heads/{branch}" if branch else "HEAD"
    journal.save(place, run.name, journal.Change(ref, old, new))
    # The branch that was checked out before the run that is undone.
    before_run = journal.runs(place).get(run.undoes) if run.undoes else None
    to = before_run.ref if before_run and git.commit(place, before_run.ref) == new else ""
    move_head(place, run, old, new, to.removeprefix("refs/heads/"))


def follow_all(repo: Repo, run: Run) -> list[str]:
    """Moves all submodules that HEAD left behind; returns what could not be done, in words."""
    problems = _follow(repo.path, run, [*repo.before, repo.head or ""])
    if not problems:
        journal.followed(repo.path)
    return [f"submodule {problem}" for problem in problems]


def _follow(path: Path, run: Run, before: Sequence[str]) -> list[str]:
    """Moves the submodules of a repository, and those in them, that are as `before`."""
    pending = inspect.behind(path, before)
    updater = _Updater(path, run, inspect.recorded(path) if pending else {})
    new_ones = [name for name, known in pending.items() if not known]
    if new_ones:
        # At once: two calls could not both write the settings.
        git.ask(path, "--literal-pathspecs", "submodule", "init", "--", *new_ones)
    with ThreadPoolExecutor(run.jobs) as pool:
        found = [*pool.map(updater.update, pending, pending.values())]
    return [problem for problems in found for problem in problems]


class _Updater(NamedTuple):
    """Submodules of one repository that have to follow; `records` are all that HEAD has."""

    path: Path
    run: Run
    records: Mapping[str, tuple[str, str]]

    def update(self, name: str, before: Sequence[str]) -> list[str]:
        """Moves one submodule with those in it; returns what could not be done."""
        place, (key, commit) = self.path / name, self.records[name]
        try:
            if not before:
                self._clone(name, place, key, commit)
            else:
                self._fetch(place, commit)
                _move(place, commit, self.run, before)
            # Those in it follow one by one, so that no more than `jobs` move at once.
            problems = _follow(place, self.run._replace(jobs=1), before)
            journal.followed(place)
            return [f"{name}/{problem}" for problem in problems]
        except (git.Problem, OSError) as error:
            return [f"{name}: {error}"]

    def _clone(self, name: str, place: Path, key: str, commit: str) -> None:
        """Clones a submodule, or finishes its clone."""
        git_dir = git.git_dir(self.path) / "modules" / key
        if git.is_checkout(place) and git_dir.exists() and git_dir.samefile(git.git_dir(place)):
            if not inspect.is_cloned(place):
                self._fetch(place, commit)
                move.finish_checkout(place, commit)
        else:
            # git would replace the files there without a word.
            found = sorted(os.listdir(place)) if place.is_dir() else [name] * os.path.lexists(place)
            if found:
                raise git.Problem(f"in the way of its clone: {shortened(found)}")
            if (git_dir / "HEAD").exists():
                self._keep_earlier(git_dir, place)
            words = ("--literal-pathspecs", "submodule", "update", "--")
            network.call(self.path, "cannot be cloned", *words, name)

    def _keep_earlier(self, git_dir: Path, place: Path) -> None:
        """Keeps the commit of an earlier submodule of the same name, whose git folder git uses.

        Raises git.Problem if files or an index need it: git would reset these.
        """
        file = ("--file", str(git_dir / "config"))
        inside = git.setting(git_dir.parent, "core.worktree", *file) or "."
        earlier = Path(os.path.normpath(git_dir / inside))
        # git does not work where the folder of the files is gone.
        anywhere = (f"--git-dir={git_dir}", f"--work-tree={git_dir}")
        staged = git.run(git_dir.parent, *anywhere, "diff-index", "--cached", "--name-only", "HEAD")
        is_used = git.is_checkout(earlier) or inspect.in_progress(git_dir)
        if is_used or ((git_dir / "index").exists() and staged.out):
            words = f"{git_dir} belongs to the submodule that was at {earlier}; move both elsewhere"
            raise git.Problem(words)
        place.mkdir(parents=True, exist_ok=True)
        inside = os.path.relpath(place, git_dir)
        git.ask(git_dir.parent, "config", *file, "core.worktree", inside)
        head = git.commit(git_dir, "HEAD")
        if head:
            kept = journal.Change("HEAD", head, head)
            journal.save(git_dir, self.run.name, kept)

    def _fetch(self, place: Path, commit: str) -> None:
        """Fetches a commit into a submodule; no ref moves."""
        if git.commit(place, commit) is None:
            depth = ["--depth=1"] if (git.git_dir(place) / "shallow").exists() else []
            network.fetch(place, "origin", commit, *depth)
