"""Restores what a run changed: branches, HEAD, tracking refs, submodules.

What a person did since is not undone with it: a branch that has moved on, or local changes where
the old files would have to come back, stop the undo of that repository before it begins. The
values that undo replaces are saved like those of any run, so an undo can be undone by its own name.
"""

import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from scripts.repos import (
    filters,
    git,
    inspect,
    journal,
    move,
    obstacles,
    plan,
    relocate,
    submodules,
)
from scripts.repos.model import Ended, Entry, Repo, Status
from scripts.repos.run import guarded


def recorded(repos: Iterable[Repo]) -> dict[str, list[journal.Record]]:
    """All recorded runs, oldest first; also those of the peers that records name."""
    found: dict[str, list[journal.Record]] = {}
    names = {repo.path: repo.name for repo in repos if repo.found}
    places = list(names)
    for path in places:  # It grows by the peers that records name.
        with contextlib.suppress(OSError):
            for run in journal.runs(path):
                record = journal.load(names[path], path, run)
                if record.changes or record.state == "damaged":
                    found.setdefault(run, []).append(record)
                new = {place: name for name, place in record.peers.items() if place not in names}
                names |= new
                places += new
    return {run: found[run] for run in sorted(found)}


def latest(runs: Mapping[str, list[journal.Record]]) -> str | None:
    """The latest run that moved more than remote-tracking refs, is not undone, and is no undo."""

    def counts(record: journal.Record) -> bool:
        return record.command == "update" and not (record.undone or record.only_fetched)

    return max((run for run in runs if any(map(counts, runs[run]))), default=None)


def undo(record: journal.Record, own: str) -> Repo:
    """Undoes a run in one repository; `own` is the name of this undo."""
    path = record.path
    head, branch = git.commit(path, "HEAD"), git.branch(path)
    repo = Repo(Entry(record.name), path, found="recorded", head=head, branch=branch)
    return guarded(_Undo(repo, record, own).run, repo)


class _Undo:
    """One repository: all is checked first, then done."""

    def __init__(self, repo: Repo, record: journal.Record, own: str):
        self.repo, self.path, self.record = repo, record.path, record
        self.own = replace(record, run=own, command="undo", state="begun", undone=None, changes=[])

    def run(self, repo: Repo) -> Repo:
        """Undoes the run; raises Ended when that is not possible, before anything is changed."""
        record = self.record
        if record.state == "damaged":
            kept = repo.command("for-each-ref", f"{journal.PREFIX}/{record.run}")
            file = journal.file(record.path, record.run)
            raise repo.skip(f"the record {file} is damaged; its old values are in refs", kept)
        if any(change.kind == "clone" for change in record.changes):
            return repo.ended(Status.KEPT, f"cloned by {record.run}, and stays")
        with journal.hold(self.path):
            move.remove_leftovers(self.path)
            relocate.repair(self.path)
            inspect.wait_for_locks(self.path)
            self.repo = inspect.work(inspect.folder(repo), ())
            return self._restored()

    def _restored(self) -> Repo:
        branch = self.repo.branch
        moves = [move for change in self._of("ref") if (move := self._ref_back(change))]
        here = [move for move in moves if move.ref == f"refs/heads/{branch}"]
        others = [move for move in moves if move not in here]
        back = here[0]._replace(branch=branch) if here else self._head_back()
        new = back.new if back else self.repo.head or ""
        below = self._submodules_as_left()
        made = [Path(change.path) for change in below if change.old is None]
        if back or below or any(move.ref.startswith("refs/heads/") for move in moves):
            plan.check_ready(self.repo)
        if back:
            obstacles.check(self.repo, new, [os.path.relpath(place, self.path) for place in made])
            filters.check(self.repo, new)

        # The commits that submodules go back to, by the checkout that they are in.
        left: dict[Path, dict[str, str | None]] = {self.path: {}}
        for change in below:
            outer, name = _outer(Path(change.path))
            left.setdefault(outer, {})[name] = change.old
        for outer, old in left.items():
            journal.set_pending(outer, {**inspect.waiting(outer), **old})
        for place in made:
            self._remove_submodule(place)
        if back:
            self._note(*submodules.move_head(self.path, self.own, back))
        for other in others:
            self.own.add(other)
        git.update_refs(self.path, map(journal.Change.line, others))
        for change in reversed(below):
            if change.old is not None:
                self._submodule_back(change)
        for change in self._of("moved"):
            self._folder_back(change)
        for change in self._of("setting"):
            self._setting_back(change)
        for outer in filter(git.is_checkout, left):
            # Those that went back wait no longer.
            journal.set_pending(outer, inspect.waiting(outer, left[outer]))
        self.own.finish()
        self.record.undone = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.record.save()
        files = tuple(c.name for c in obstacles.changes(self.path, self.repo.head or "", new))
        left_out = ", except what the notes name" if self.repo.code else ""
        reason = f"as before {self.record.run}{left_out}"
        return self.repo.ended(Status.UNDONE, reason, code=self.repo.code, new=new, files=files)

    def _note(self, *notes: str) -> None:
        self.repo = self.repo.noting(*notes)

    def _of(self, kind: str) -> list[journal.Change]:
        """The changes of a kind, the last first."""
        return [change for change in reversed(self.record.changes) if change.kind == kind]

    def _ref_back(self, change: journal.Change) -> journal.Change | None:
        """The ref update that restores a ref; None if none is needed."""
        ref, old, new = change.ref, change.old, change.new
        now = git.commit(self.path, ref)
        name = ref.removeprefix("refs/heads/")
        if now == old:
            return None
        if now != new and ref.startswith("refs/remotes/"):
            self._note(f"{ref} has moved since, and stays")
            return None
        if now != new:
            keep = self.repo.command("branch", f"{name}-before", (old or "")[:10])
            raise self._has_moved(name, now, old, keep)
        if name in self.repo.elsewhere and not self.repo.local.in_progress:
            raise self.repo.skip(f"{name} is checked out in {self.repo.elsewhere[name]}")
        return journal.Change("ref", now, old or "", ref)

    def _has_moved(self, name: str, now: str | None, old: str | None, *remedy: str) -> Ended:
        log = self.repo.command("log", "--oneline", f"{(old or '')[:10]}..{name}")
        reason = f"{name} has moved since this run: it is at {(now or 'nothing')[:10]}"
        return self.repo.skip(reason, log, *remedy)

    def _head_back(self) -> journal.Change | None:
        """What restores HEAD after --to; None when it stays."""
        change, repo = next(iter(self._of("head")), None), self.repo
        if change is None or (repo.head, repo.branch) == (change.old, change.branch):
            return None
        if (repo.head, repo.branch) != (change.new, change.to):
            raise self._has_moved("HEAD", repo.head, change.old)
        branch = change.branch
        is_there = repo.branches.get(branch or "") == change.old and branch not in repo.elsewhere
        to = branch if is_there else None
        return journal.Change("head", repo.head, change.old or "", branch=repo.branch, to=to)

    def _submodules_as_left(self) -> list[journal.Change]:
        """The changes of submodules that can be undone; in one that stays all stays."""
        changes = self._of("submodule")
        found = [change for change in changes if self._is_as_left(change)]
        stays = [change.path for change in changes if change.old is None and change not in found]
        return [c for c in found if not any(Path(c.path).is_relative_to(path) for path in stays)]

    def _is_as_left(self, change: journal.Change) -> bool:
        """Whether a submodule is as the run left it; a new one without local work."""
        place = Path(change.path)
        now = git.commit(place, "HEAD") if git.is_checkout(place) else None
        problem = ""
        if now is None:
            # Its settings may be there without it, after a run that was killed.
            problem = "its folder is not empty" if any(place.glob("*")) else ""
        elif now == change.old:
            return False
        elif now != change.new:
            problem = "it is not where the run left it"
        elif change.old is None and not submodules.is_pristine(place):
            problem = "it has local work"
        self._leave(place, problem)
        return not problem and (now is not None or change.old is None)

    def _leave(self, place: Path, problem: str) -> None:
        """Notes why a submodule could not be restored, if there is a problem."""
        if problem:
            self.repo = self.repo.noting(f"submodule {place} stays: {problem}")._replace(code=1)

    def _remove_submodule(self, place: Path) -> None:
        """Removes the files of a submodule that the run cloned; its git folder stays."""
        outer, name = _outer(place)
        result = git.run(outer, "--literal-pathspecs", "submodule", "--quiet", "deinit", "--", name)
        if result.code != 0 and git.is_checkout(place):
            self._leave(place, result.message)

    def _submodule_back(self, change: journal.Change) -> None:
        place, old, branch = Path(change.path), change.old or "", change.branch
        is_there = branch is not None and git.commit(place, f"refs/heads/{branch}") == old
        try:
            submodules.move_one(place, old, self.own, branch if is_there else None)
        except git.Problem as error:
            self._leave(place, str(error))

    def _folder_back(self, change: journal.Change) -> None:
        now, old = Path(change.path), Path(change.was)
        try:
            if not git.is_checkout(now):
                raise git.Problem("it is not where the run left it")
            relocate.move(now, old, self.own)
        except (git.Problem, OSError) as error:
            self._leave(now, str(error))

    def _setting_back(self, change: journal.Change) -> None:
        back = change._replace(old=change.new, new=change.old or "")
        try:
            is_back = relocate.set_setting(self.own, back)
        except (git.Problem, OSError):
            is_back = False
        if not is_back:
            self._note(f"{change.ref} of {change.path} has changed since, and stays")


def _outer(place: Path) -> tuple[Path, str]:
    """The checkout that a submodule is in, and its path there."""
    outer = next(folder for folder in place.parents if git.is_checkout(folder))
    return outer, os.path.relpath(place, outer)
