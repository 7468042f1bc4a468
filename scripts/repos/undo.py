"""Restores what a run changed: branches, and with them submodules.

What a person did since is not undone with it: a branch that has moved on, or local changes where
the old files would have to come back, stop the undo of that repository before it begins. The
values that undo replaces are saved like those of any run, so an undo can be undone by its own name.
"""

import contextlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from scripts.repos import git, inspect, journal, move, obstacles, plan, submodules
from scripts.repos.apply import move_branch
from scripts.repos.model import Ended, Entry, Repo, Settings, Status
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
                found.setdefault(run, []).append(record)
                new = {place: name for name, place in record.peers.items() if place not in names}
                names |= new
                places += new
    return {run: found[run] for run in sorted(found)}


def latest(runs: Mapping[str, list[journal.Record]]) -> str | None:
    """The latest run that is not undone, and is no undo."""

    def counts(record: journal.Record) -> bool:
        return record.command == "update" and not record.undone

    return max((run for run, records in runs.items() if any(map(counts, records))), default=None)


def undo(record: journal.Record, own: str, settings: Settings) -> Repo:
    """Undoes a run in one repository; `own` is the name of this undo."""
    path = record.path
    head, branch = git.commit(path, "HEAD"), git.branch(path)
    repo = Repo(Entry(record.name), path, found="recorded", head=head, branch=branch)

    def step(repo: Repo) -> Repo:
        if record.state == "damaged":
            kept = repo.command("for-each-ref", f"{journal.PREFIX}/{record.run}")
            reason = f"the record {journal.file(path, record.run)} is damaged"
            raise Ended(repo.skipped(f"{reason}; its old values are in refs", kept))
        with journal.hold(path):
            move.remove_leftovers(path)
            return _restored(inspect.work(inspect.folder(repo), ()), record, own, settings)

    return guarded(step, repo)


def _restored(repo: Repo, record: journal.Record, own: str, settings: Settings) -> Repo:
    """Undoes the run; raises Ended when that is not possible, before anything is changed."""
    path, ours = repo.path, replace(record, run=own, command="undo", state="begun")
    ours.changes, ours.undone, ours.undoes = [], "", record.run
    moves = [back for change in record.changes if (back := _back(repo, change))]
    here = next((back for back in moves if back.ref == f"refs/heads/{repo.branch}"), None)
    new = here.new if here else repo.head or ""
    if moves or repo.pending:
        plan.check_ready(repo)
    left: list[str] = []
    if here:
        obstacles.check(repo, new, is_undo=True)
        made = inspect.recorded(path, here.old).keys() - inspect.recorded(path, new).keys()
        kept = made.difference(inspect.removable(path, here.old, new))
        kept = {name for name in kept if any((path / name).glob("*"))}
        left += [f"submodule {name} has local work and stays" for name in sorted(kept)]
        repo = repo.noting(*move_branch(repo, ours, here))
    for back in moves:
        if back != here:
            ours.add(back)
            git.update_refs(path, [back.line()])
    left += submodules.follow(path, ours, settings)
    ours.finish()
    record.undone = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    record.save()
    files = tuple(change.name for change in obstacles.changes(path, repo.head or "", new))
    reason = f"as before {record.run}" + (", except what the notes name" if left else "")
    repo = repo.noting(*left)
    return repo.ended(Status.UNDONE, reason, code=int(bool(left)), new=new, files=files)


def _back(repo: Repo, change: journal.Change) -> journal.Change | None:
    """The update that restores a branch; None if none is needed."""
    old, name = change.old, change.ref.removeprefix("refs/heads/")
    now = git.commit(repo.path, change.ref)
    if now == old:
        return None
    if now != change.new:
        log = repo.command("log", "--oneline", f"{old[:10]}..{name}")
        keep = repo.command("branch", f"{name}-before", old[:10])
        reason = f"{name} has moved since this run: it is at {(now or 'nothing')[:10]}"
        raise Ended(repo.skipped(reason, log, keep))
    if name in repo.elsewhere and not repo.local.in_progress:
        raise Ended(repo.skipped(f"{name} is checked out in {repo.elsewhere[name]}"))
    return journal.Change(change.ref, now, old)
