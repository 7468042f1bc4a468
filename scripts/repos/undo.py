"""Restores what a run changed: branches, HEAD, tracking refs, submodules.

What a person did since is not undone with it: a branch that has moved on, or local changes where
the old files would have to come back, stop the undo of that repository before it begins. The
values that undo replaces are saved like those of any run, so an undo can be undone by its own name.
"""

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scripts.repos import apply, git, inspect, journal, obstacles, plan, submodules
from scripts.repos.model import Ended, Entry, Repo, Status
from scripts.repos.run import guarded


class Recorded(NamedTuple):
    """What one repository recorded of a run; `record` is None when it is damaged."""

    name: str
    path: Path
    git_dir: Path
    run: str
    record: dict[str, Any] | None

    @property
    def changes(self) -> list[dict[str, Any]]:
        return self.record["changes"] if self.record else []

    @property
    def state(self) -> str:
        """In words, for the list of runs."""
        if self.record is None:
            return "damaged"
        if self.record["undone"]:
            return f"undone {self.record['undone']}"
        return "interrupted" if self.record["state"] != "done" else self.record["command"]


def recorded(places: Mapping[str, Path]) -> dict[str, list[Recorded]]:
    """All recorded runs, oldest first; also those of the peers that records name."""
    found: dict[str, list[Recorded]] = {}
    queue, visited = list(places.items()), set()
    while queue:
        name, path = queue.pop(0)
        if path in visited or not git.is_repository(path):
            continue
        visited.add(path)
        try:
            git_dir = git.git_dir(path)
            names = journal.runs(git_dir)
        except OSError:
            continue
        for run in names:
            record = journal.load(git_dir, run)
            if record is None or record["changes"]:
                found.setdefault(run, []).append(Recorded(name, path, git_dir, run, record))
            queue += [(peer, Path(place)) for peer, place in (record or {"peers": []})["peers"]]
    return {run: found[run] for run in sorted(found)}


def latest(runs: Mapping[str, list[Recorded]]) -> str | None:
    """The latest run that is not undone, and is no undo itself."""
    for run in reversed(list(runs)):
        records = [entry.record for entry in runs[run] if entry.record is not None]
        if any(not r["undone"] and r["command"] != "undo" for r in records):
            return run
    return None


def undo(entry: Recorded, own: str, locks: journal.Locks) -> Repo:
    """Undoes a run in one repository; `own` is the name of this undo."""
    repo = Repo(Entry(entry.name), path=entry.path, head=git.commit(entry.path, "HEAD"))
    return guarded(lambda repo: _undo(repo, entry, own, locks), repo)


def _undo(repo: Repo, entry: Recorded, own: str, locks: journal.Locks) -> Repo:
    if git.STOP.is_set():
        raise repo.skip("interrupted before it was begun")
    if entry.record is None:
        file = journal.file(entry.git_dir, entry.run)
        kept = repo.command("for-each-ref", f"{journal.PREFIX}/{entry.run}")
        raise repo.skip(f"the record {file} is damaged; its old values are in refs", kept)
    if any(change["kind"] == "clone" for change in entry.changes):
        return repo.ended(Status.KEPT, f"cloned by {entry.run}, and stays")
    with locks.hold(git.common_dir(entry.git_dir)):
        repo = inspect.work(inspect.refs(inspect.folder(repo)), ())
        return _Undo(repo, entry, entry.record, own).run()


class _Undo:
    """One repository: all is checked first, then done."""

    def __init__(self, repo: Repo, entry: Recorded, record: dict[str, Any], own: str):
        self.repo, self.entry, self.path, self.record = repo, entry, entry.path, record
        peers = {name: Path(place) for name, place in record["peers"]}
        self.journal = journal.Journal(self.path, entry.git_dir, own, peers, "undo")
        self.notes: list[str] = []
        self.left = False  # Whether something could not be restored.

    def run(self) -> Repo:
        """Undoes the run; raises Ended when that is not possible, before anything is changed."""
        repo, old = self.repo, self.repo.head or ""
        moves = [back for change in self._of("ref") if (back := self._ref_back(change))]
        here = next((m for m in moves if m.ref == f"refs/heads/{repo.branch}"), None)
        others = [back for back in moves if back is not here]
        new, branch = (here.new, repo.branch) if here else self._head_back(others)
        below = [change for change in self._of("submodule") if self._can_go_back(change)]
        made = [Path(change["path"]) for change in below if change["old"] is None]
        if new or below or any(move.ref.startswith("refs/heads/") for move in moves):
            plan.check_ready(repo)
        if new:
            obstacles.check(repo, new, [os.path.relpath(place, self.path) for place in made])
            repo = repo.having(new=new)

        # The commits that submodules go back to, by the checkout that they are in.
        left: dict[Path, dict[str, str | None]] = {self.path: {}}
        for change in below:
            outer, name = _outer(Path(change["path"]))
            left.setdefault(outer, {})[name] = change["old"]
        self._set_pending(left)
        for place in made:
            self._remove_submodule(place)
        if here:
            repo = apply.move_head(repo, self.journal, branch)
        self.journal.keep(others)
        git.update_refs(self.path, map(journal.Move.line, others))
        if new and not here:
            repo = apply.move_head(repo, self.journal, branch)
        for change in reversed(below):
            if change["old"] is not None:
                self._submodule_back(Path(change["path"]), change["old"], change["branch"])
        self._set_pending(left)
        # Those that went back wait no longer.
        self._set_pending({outer: {} for outer in left})
        return self._finished(repo, new or old)

    def _set_pending(self, more: Mapping[Path, Mapping[str, str | None]]) -> None:
        for outer in filter(git.is_checkout, more):
            journal.set_pending(git.git_dir(outer), {**inspect.waiting(outer), **more[outer]})

    def _finished(self, repo: Repo, new: str) -> Repo:
        """The end of the undo: the record of the run says so from now on."""
        self.journal.finish()
        undone = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        file = journal.file(self.entry.git_dir, self.entry.run)
        journal.write(file, {**self.record, "undone": undone})
        files = tuple(c.name for c in obstacles.changes(self.path, repo.head or "", new))
        reason = f"as before {self.entry.run}"
        if self.left:
            reason += ", except what the notes name"
        repo = repo.ended(Status.UNDONE, reason, new=new, files=files, needs_person=self.left)
        return repo.noting(*self.notes)

    def _of(self, kind: str) -> list[dict[str, Any]]:
        """The changes of a kind, the last first."""
        return [change for change in reversed(self.record["changes"]) if change["kind"] == kind]

    def _ref_back(self, change: Mapping[str, Any]) -> journal.Move | None:
        """The ref update that restores a ref; None if none is needed."""
        ref, old, new = change["ref"], change["old"], change["new"]
        if change.get("pushed"):
            branch = ref.rpartition("/")[2]
            self.notes.append(f"{change['pushed']}/{branch} on the server stays as it was pushed")
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
        return journal.Move(ref, now, old or "")

    def _has_moved(self, name: str, now: str | None, old: str | None, *remedy: str) -> Ended:
        log = self.repo.command("log", "--oneline", f"{(old or '')[:10]}..{name}")
        reason = f"{name} has moved since this run: it is at {(now or 'nothing')[:10]}"
        return self.repo.skip(reason, log, *remedy)

    def _head_back(self, moves: Iterable[journal.Move]) -> tuple[str, str | None]:
        """The commit and branch that HEAD goes back to after --to; empty when it stays."""
        change, repo = next(iter(self._of("head")), None), self.repo
        if change is None or (repo.head, repo.branch) == (change["old"], change["branch"]):
            return "", None
        if (repo.head, repo.branch) != (change["new"], change.get("to")):
            raise self._has_moved("HEAD", repo.head, change["old"])
        branch = change["branch"]
        later = {move.ref: move.new for move in moves}
        tip = later.get(f"refs/heads/{branch}", repo.branches.get(branch or ""))
        is_free = branch is not None and branch not in repo.elsewhere
        return change["old"], branch if is_free and tip == change["old"] else None

    def _can_go_back(self, change: Mapping[str, Any]) -> bool:
        """Whether a submodule is as the run left it; one that is not stays."""
        place, old, new = Path(change["path"]), change["old"], change["new"]
        if not git.is_checkout(place):
            # Its settings may be there without it, after a run that was killed.
            problem = "its folder is not empty" if any(place.glob("*")) else ""
        elif git.commit(place, "HEAD") != new:
            return False
        elif old is None:
            problem = "" if submodules.is_pristine(place) else "it has local work"
        else:
            local = inspect.checkout(place).local._replace(untracked=(), submodules=())
            problem = local.words() or obstacles.find(place, new, old, local, ()).words()
        if problem:
            self._leave(place, problem)
        return not problem and (old is None or git.is_checkout(place))

    def _leave(self, place: Path, problem: str) -> None:
        """Notes a submodule that could not be restored."""
        self.notes.append(f"submodule {place} stays: {problem}")
        self.left = True

    def _remove_submodule(self, place: Path) -> None:
        """Removes the files of a submodule that the run cloned; its git folder stays."""
        outer, name = _outer(place)
        words = ("--literal-pathspecs", "submodule", "--quiet", "deinit", "--", name)
        result = git.run(outer, *words)
        if result.code != 0 and git.is_checkout(place):
            self._leave(place, result.words)

    def _submodule_back(self, place: Path, old: str, branch: str | None) -> None:
        is_there = branch is not None and git.commit(place, f"refs/heads/{branch}") == old
        to, before = branch if is_there else None, inspect.checkout(place)
        try:
            complaint = submodules.checkout(place, self.journal, before, old, to)
            self.notes += [f"submodule {place} {complaint}"] if complaint else []
        except git.GitError as error:
            self._leave(place, error.result.words)


def _outer(place: Path) -> tuple[Path, str]:
    """The checkout that a submodule is in, and its path there."""
    outer = next(folder for folder in place.parents if git.is_checkout(folder))
    return outer, os.path.relpath(place, outer)
