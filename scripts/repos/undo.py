"""Restores what a run changed: branches, HEAD, tracking refs, submodules.

What a person did since is not undone with it: a branch that has moved on, or local changes where
the old files would have to come back, stop the undo of that repository before it begins. The
values that undo replaces are saved like those of any run, so an undo can be undone by its own name.
"""

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from scripts.repos import apply, git, inspect, journal, obstacles, plan, submodules
from scripts.repos.model import Ended, Entry, Repo, Status
from scripts.repos.run import guarded


def recorded(repos: Iterable[Repo]) -> dict[str, list[journal.Record]]:
    """All recorded runs, oldest first; also those of the peers that records name."""
    found: dict[str, list[journal.Record]] = {}
    queue = [(repo.name, repo.path) for repo in repos if repo.path is not None]
    visited = set()
    while queue:
        name, path = queue.pop(0)
        if path in visited or not git.is_repository(path):
            continue
        visited.add(path)
        try:
            names = journal.runs(path)
        except OSError:
            continue
        for run in names:
            record = journal.load(name, path, run)
            if record.changes or record.state == "damaged":
                found.setdefault(run, []).append(record)
            queue += record.peers.items()
    return {run: found[run] for run in sorted(found)}


def latest(runs: Mapping[str, list[journal.Record]]) -> str | None:
    """The latest run that is not undone, and is no undo itself."""
    for run in reversed(list(runs)):
        if any(not record.undone and record.command == "update" for record in runs[run]):
            return run
    return None


def undo(record: journal.Record, own: str) -> Repo:
    """Undoes a run in one repository; `own` is the name of this undo."""
    path = record.path
    head, branch = git.commit(path, "HEAD"), git.branch(path)
    repo = Repo(Entry(record.name), path=path, head=head, branch=branch)
    return guarded(lambda repo: _undo(repo, record, own), repo)


def _undo(repo: Repo, record: journal.Record, own: str) -> Repo:
    if git.STOP.is_set():
        raise repo.skip("interrupted before it was begun")
    if record.state == "damaged":
        file = journal.file(record.path, record.run)
        kept = repo.command("for-each-ref", f"{journal.PREFIX}/{record.run}")
        raise repo.skip(f"the record {file} is damaged; its old values are in refs", kept)
    if any(change.kind == "clone" for change in record.changes):
        return repo.ended(Status.KEPT, f"cloned by {record.run}, and stays")
    with journal.hold(record.path):
        repo = inspect.work(inspect.refs(inspect.folder(repo)), ())
        return _Undo(repo, record, own).run()


class _Undo:
    """One repository: all is checked first, then done."""

    def __init__(self, repo: Repo, record: journal.Record, own: str):
        self.repo, self.path, self.record = repo, record.path, record
        self.own = replace(record, run=own, command="undo", state="begun", undone=None, changes=[])
        self.notes: list[str] = []
        self.left = False  # Whether something could not be restored.

    def run(self) -> Repo:
        """Undoes the run; raises Ended when that is not possible, before anything is changed."""
        repo, old = self.repo, self.repo.head or ""
        moves = [move for change in self._of("ref") if (move := self._ref_back(change))]
        here = next((move for move in moves if move.ref == f"refs/heads/{repo.branch}"), None)
        others = [move for move in moves if move is not here]
        back = here or self._head_back()
        new = back.new if back else old
        below = [change for change in self._of("submodule") if self._is_as_left(change)]
        made = [Path(change.path) for change in below if change.old is None]
        if back or below or any(move.ref.startswith("refs/heads/") for move in moves):
            plan.check_ready(repo)
        if back:
            obstacles.check(repo, new, [os.path.relpath(place, self.path) for place in made])

        # The commits that submodules go back to, by the checkout that they are in.
        left: dict[Path, dict[str, str | None]] = {self.path: {}}
        for change in below:
            outer, name = _outer(Path(change.path))
            left.setdefault(outer, {})[name] = change.old
        self._set_pending(left)
        for place in made:
            self._remove_submodule(place)
        if back:
            repo = apply.move_head(repo, self.own, back)
        for other in others:
            self.own.add(other)
        git.update_refs(self.path, map(journal.Change.line, others))
        for change in reversed(below):
            if change.old is not None:
                self._submodule_back(change)
        self._set_pending(left)
        # Those that went back wait no longer.
        self._set_pending({outer: {} for outer in left})
        return self._finished(repo, new)

    def _set_pending(self, more: Mapping[Path, Mapping[str, str | None]]) -> None:
        for outer in filter(git.is_checkout, more):
            journal.set_pending(outer, {**inspect.waiting(outer), **more[outer]})

    def _finished(self, repo: Repo, new: str) -> Repo:
        """The end of the undo: the record of the run says so from now on."""
        self.own.finish()
        self.record.undone = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.record.save()
        files = tuple(c.name for c in obstacles.changes(self.path, repo.head or "", new))
        reason = f"as before {self.record.run}"
        if self.left:
            reason += ", except what the notes name"
        repo = repo.ended(Status.UNDONE, reason, new=new, files=files, needs_person=self.left)
        return repo.noting(*self.notes)

    def _of(self, kind: str) -> list[journal.Change]:
        """The changes of a kind, the last first."""
        return [change for change in reversed(self.record.changes) if change.kind == kind]

    def _ref_back(self, change: journal.Change) -> journal.Change | None:
        """The ref update that restores a ref; None if none is needed."""
        ref, old, new = change.ref, change.old, change.new
        if change.pushed:
            branch = ref.rpartition("/")[2]
            self.notes.append(f"{change.pushed}/{branch} on the server stays as it was pushed")
        now = git.commit(self.path, ref)
        name = ref.removeprefix("refs/heads/")
        if now == old:
            return None
        if now != new and ref.startswith("refs/remotes/"):
            self.notes.append(f"{ref} has moved since, and stays")
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
            self.notes.append(f"submodule {place} stays: {problem}")
            self.left = True

    def _remove_submodule(self, place: Path) -> None:
        """Removes the files of a submodule that the run cloned; its git folder stays."""
        outer, name = _outer(place)
        words = ("--literal-pathspecs", "submodule", "--quiet", "deinit", "--", name)
        result = git.run(outer, *words)
        if result.code != 0 and git.is_checkout(place):
            self._leave(place, result.words)

    def _submodule_back(self, change: journal.Change) -> None:
        place, old, branch = Path(change.path), change.old or "", change.branch
        is_there = branch is not None and git.commit(place, f"refs/heads/{branch}") == old
        try:
            problem = submodules.move_one(place, old, self.own, branch if is_there else None, ())
        except git.GitError as error:
            problem = error.result.words
        self._leave(place, problem)


def _outer(place: Path) -> tuple[Path, str]:
    """The checkout that a submodule is in, and its path there."""
    outer = next(folder for folder in place.parents if git.is_checkout(folder))
    return outer, os.path.relpath(place, outer)
