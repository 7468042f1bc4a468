"""Brings back what a run changed: branches, tracking refs, submodules, stashes, remotes.

What a person did since is not undone with it: a branch that has moved on, or local changes where
the old files would have to come back, stop the undo of that repository before it begins. The
values that undo replaces are kept like those of any run, so that an undo can be undone by its own
name.
"""

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scripts.repos import backup, git, in_the_way, layout, look, move, shown, stash
from scripts.repos.model import Outcome, RemoteChoice, RepoState, Status


class Recorded(NamedTuple):
    """A run as one repository remembers it."""

    name: str
    path: Path
    git_dir: Path
    record: Mapping[str, Any]


class Refused(Exception):
    """A repository cannot be brought back as it is; nothing of it was changed."""

    def __init__(self, reason: str, *remedy: str):
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


def recorded(places: Mapping[str, Path]) -> dict[str, list[Recorded]]:
    """All runs that are remembered, oldest first.

    Args:
      places: folders of repositories by name; those that their records name are looked at, too.
    """
    found: dict[str, list[Recorded]] = {}
    queue, seen = list(places.items()), set()
    while queue:
        name, path = queue.pop(0)
        if path in seen or not path.is_dir():
            continue
        seen.add(path)
        if not layout.is_repository(path):
            continue
        git_dir = layout.git_dir(path)
        for run in backup.runs(git_dir):
            record = backup.load(git_dir, run)
            if record["changes"]:
                found.setdefault(run, []).append(Recorded(name, path, git_dir, record))
            queue += [(peer, Path(place)) for peer, place in record["peers"]]
    return {run: found[run] for run in sorted(found)}


def latest(runs: Mapping[str, list[Recorded]]) -> str | None:
    """The latest run that is not undone, and is no undo itself."""
    for run in reversed(list(runs)):
        records = [entry.record for entry in runs[run]]
        if any(not r["undone"] and r.get("command") != "undo" for r in records):
            return run
    return None


def undo(entry: Recorded, own: str) -> Outcome:
    """Brings back one repository.

    Args:
      entry: what the run changed in it.
      own: the name of this undo.
    """
    head = git.commit(entry.path, "HEAD")
    if git.STOP.is_set():
        return Outcome(Status.SKIPPED, "interrupted before it was begun", (), (), head, head)
    try:
        notes = _bring_back(entry, own)
    except Refused as refused:
        return Outcome(Status.SKIPPED, refused.reason, refused.remedy, (), head, head)
    except backup.Busy:
        return Outcome(Status.SKIPPED, "another run is at work here", (), (), head, head)
    except (git.GitError, OSError) as error:
        remedy = (shown.git(entry.path, "status"),)
        return Outcome(Status.FAILED, str(error), remedy, (), head, git.commit(entry.path, "HEAD"))
    now = git.commit(entry.path, "HEAD")
    return Outcome(Status.UNDONE, f"as before {entry.record['run']}", (), (), head, now, notes)


def _bring_back(entry: Recorded, own: str) -> tuple[str, ...]:
    work = _Undo(entry, own)
    if work.state.refusal:
        raise Refused(work.state.refusal, *work.state.remedy)
    work.journal.acquire()
    try:
        return work.run()
    finally:
        work.journal.release()


class _Undo:
    """One repository: all is checked first, then done."""

    def __init__(self, entry: Recorded, own: str):
        self.entry, self.path = entry, entry.path
        self.changes = list(entry.record["changes"])
        peers = [(name, Path(place)) for name, place in entry.record["peers"]]
        self.journal = backup.Journal(self.path, entry.git_dir, own, peers, command="undo")
        self.notes: list[str] = []
        config = dict(git.config(self.path))
        self.state: RepoState = look.look(self.path, RemoteChoice(None), None, config)

    def run(self) -> tuple[str, ...]:
        moves = [back for change in self._of("ref") if (back := self._move_back(change))]
        here = [m for m in moves if m.ref == f"refs/heads/{self.state.branch}"]
        below = [change for change in self._of("submodule") if self._can_go_back(change)]
        changes = self._changes_to_bring_back(bool(here))
        if here or below or changes:
            self._check_state()
        for back in here:
            self._check_files(back, bool(changes))
        self.journal.keep(moves)
        aside = self._put_aside() if changes else None
        for change in below:
            if change["old"] is None:
                self._unmake(change)
        for back in here:
            self._branch_back(back, aside)
        self._move_others([m for m in moves if m not in here])
        for change in below:
            if change["old"] is not None:
                self._submodule_back(change)
        if changes:
            self._bring_back(changes, aside)
        for change in self._of("remote"):
            self._remote_back(change)
        self.journal.finish()
        record = {**self.entry.record, "undone": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        backup.write(self.entry.git_dir, record)
        return tuple(self.notes)

    def _branch_back(self, back: backup.Move, aside: str | None) -> None:
        """Moves the checked-out branch; when git refuses, what was put aside for it comes back."""
        words = git.move_branch(self.state.branch or "", back.new)
        try:
            complaint = move.to(self.path, words, back.old or "", back.new)
        except git.GitError:
            if aside is not None and not stash.apply(self.path, aside):
                stash.drop(self.path, aside)
                self._say_undoing(False)
            raise
        self.notes += [complaint] if complaint else []

    def _check_state(self) -> None:
        local = self.state.local
        if local.in_progress:
            names = ", ".join(local.in_progress)
            raise Refused(f"{names} in progress", shown.git(self.path, "status"))
        if local.locked:
            raise Refused(f"locked: {', '.join(local.locked)}", "remove it when no git runs there")

    def _of(self, kind: str) -> list[dict[str, Any]]:
        """The changes of a kind, the last first."""
        return [change for change in reversed(self.changes) if change["kind"] == kind]

    def _move_back(self, change: Mapping[str, Any]) -> backup.Move | None:
        """How a ref goes back; None when it is there already. `new` is empty for one to remove."""
        ref, old, new = change["ref"], change["old"], change["new"]
        if change.get("pushed"):
            branch = ref.rpartition("/")[2]
            self.notes.append(f"{change['pushed']}/{branch} on the server stays as it was pushed")
        now = git.commit(self.path, ref)
        if now == old:
            return None
        if now != new:
            if ref.startswith("refs/remotes/"):
                self.notes.append(f"{ref} has moved since, and stays")
                return None
            name = ref.removeprefix("refs/heads/")
            raise Refused(
                f"{name} has moved since this run: it is at {(now or 'nothing')[:10]}",
                shown.git(self.path, "log", "--oneline", f"{(old or '')[:10]}..{name}"),
                shown.git(self.path, "branch", f"{name}-before", (old or "")[:10]),
            )
        name = ref.removeprefix("refs/heads/")
        if name in self.state.elsewhere:
            raise Refused(f"{name} is checked out in {self.state.elsewhere[name]}")
        return backup.Move(ref, now, old or "")

    def _check_files(self, back: backup.Move, put_aside: bool) -> None:
        """That moving the checked-out branch back overwrites nothing."""
        if not put_aside:
            named = ("diff", "--name-only", "-z", "--no-renames", "--ignore-submodules")
            listed = git.ask(self.path, *named) + "\0" + git.ask(self.path, *named, "--cached")
            local = {name for name in listed.split("\0") if name}
            words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames")
            touched = git.ask(self.path, *words, back.old or "", back.new)
            both = sorted(local & set(touched.split("\0")))
            if both:
                remedy = shown.git(self.path, "stash", "push", "--", *both[:3])
                raise Refused(f"local changes in {', '.join(both[:3])}", remedy)
        blocked = in_the_way.find(self.path, back.old or "", back.new, self.state.ignore_case)
        if blocked:
            raise Refused(f"in the way: {', '.join(blocked[:3])}", "move these files elsewhere")

    def _can_go_back(self, change: Mapping[str, Any]) -> bool:
        """Whether a submodule is as the run left it; one that is not stays."""
        place = Path(change["path"])
        if not (place / ".git").exists() or git.commit(place, "HEAD") != change["new"]:
            return False
        local = look.checkout(place).local._replace(untracked=(), submodules=())
        if local.words():
            self.notes.append(f"submodule {place} stays: {local.words()}")
            return False
        if change["old"] is None:
            others = git.ask(place, "ls-files", "--others", "-z").split("\0")[0]
        else:
            others = ", ".join(in_the_way.find(place, change["new"], change["old"])[:3])
        if others:
            self.notes.append(f"submodule {place} stays: {others} is in it")
        return not others

    def _unmake(self, change: Mapping[str, Any]) -> None:
        """Takes away a submodule that the run made; its repository stays in the git folder."""
        place = os.path.relpath(change["path"], self.path)
        words = ("--literal-pathspecs", "submodule", "--quiet", "deinit", "--", place)
        result = git.run(self.path, *words, changing=True)
        if result.code != 0:
            self.notes.append(f"submodule {place} stays: {result.words}")

    def _submodule_back(self, change: Mapping[str, Any]) -> None:
        place, old, branch = Path(change["path"]), change["old"], change["branch"]
        backup.keep_refs(place, self.journal.run, [backup.Move("HEAD", change["new"], old)])
        on_branch = branch is not None and git.commit(place, f"refs/heads/{branch}") == old
        where = (branch,) if on_branch else ("--detach", old)
        words = ("checkout", "--quiet", "--no-overwrite-ignore", *where)
        try:
            complaint = move.to(place, words, change["new"], old)
        except git.GitError as error:
            complaint = f"stays: {error.result.words}"
        self.notes += [f"submodule {place} {complaint}"] if complaint else []

    def _move_others(self, moves: Iterable[backup.Move]) -> None:
        """Refs without files, all or none."""
        lines = []
        for back in moves:
            if back.new:
                lines.append(f"update {back.ref}\0{back.new}\0{back.old}\0")
            else:
                lines.append(f"delete {back.ref}\0{back.old}\0")
        if lines:
            git.change(self.path, "update-ref", "--stdin", "-z", text="".join(lines))

    def _changes_to_bring_back(self, moves_files: bool) -> str | None:
        """The stash with the local changes as they were, where they are not there any more.

        Either the run was ended before it brought them back, or what it brought back was merged
        with what is now taken away.
        """
        for change in self._of("stash"):
            commit = change["commit"] or stash.find(self.path, change["message"])
            if commit is None:
                continue
            if change.get("undoing"):
                return commit
            if not change["restored"]:
                return commit if stash.name_of(self.path, commit) is not None else None
            if moves_files and change["after"] == stash.fingerprint(self.path):
                return commit
        return None

    def _put_aside(self) -> str | None:
        """Clears the checkout for the changes as they were; returns the stash of what was there."""
        if not (self.state.local.staged or self.state.local.unstaged):
            return None
        # An undo that is ended from here on leaves it to the next one to bring them back.
        self._say_undoing(True)
        message = f"update_repos {self.journal.run}: before undo"
        try:
            commit = stash.push(self.path, message)
        except git.GitError:
            if stash.find(self.path, message) is None:
                self._say_undoing(False)
            raise
        backup.keep_refs(self.path, self.journal.run, [backup.Move("stash", commit, "")])
        return commit

    def _say_undoing(self, undoing: bool) -> None:
        """Writes whether the changes of the run are on their way back, whatever is there now."""
        for change in self._of("stash"):
            change["undoing"] = undoing
        backup.write(self.entry.git_dir, {**self.entry.record, "changes": self.changes})

    def _bring_back(self, commit: str, aside: str | None) -> None:
        hindrance = stash.apply(self.path, commit)
        if hindrance:
            name = stash.name_of(self.path, commit) or commit
            self.notes.append(f"local changes are kept in {name}: {hindrance}")
            return
        restored = [c for c in self._of("stash") if c["restored"] and c["commit"] == commit]
        stash.drop(self.path, commit)
        if aside is not None and any(c["after"] == stash.trees(self.path, aside) for c in restored):
            # The same changes, merged with what is gone now.
            stash.drop(self.path, aside)
        elif aside is not None:
            name = stash.name_of(self.path, aside)
            self.notes.append(f"what was there, perhaps half of these changes, is kept in {name}")

    def _remote_back(self, change: Mapping[str, Any]) -> None:
        name, old, new = change["name"], change["old"], change["new"]
        now = git.run(self.path, "config", f"remote.{name}.url").out.strip()
        if now != new:
            if now != (old or ""):
                self.notes.append(f"remote {name} was changed since, and stays")
            return
        words = ("set-url", name, old) if old else ("remove", name)
        git.change(self.path, "remote", *words)
