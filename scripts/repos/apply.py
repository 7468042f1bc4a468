"""Carries the plan of one repository out.

Old values are kept first; whatever moves HEAD is porcelain of git that loses nothing.
"""

import threading
from typing import Any

from scripts.repos import backup, bring, fetch, git, move, network, plan, shown, stash, submodules
from scripts.repos.model import Action, Facts, Options, Outcome, Status, Step
from scripts.repos.survey import Survey


def without_work(seen: Survey, facts: Facts, step: Step) -> Outcome:
    """The outcome of a plan that does nothing."""
    head = seen.state.head
    notes = tuple(note for note in (seen.choice.note, seen.tip.note) if note)
    if step.action is Action.SKIP:
        status = Status.UNREACHABLE if step.unreachable else Status.SKIPPED
        files = facts.blocked
        return Outcome(status, step.reason, step.remedy, files, head, head, notes)
    kept = facts.state.branch != facts.tip.branch
    status = Status.KEPT if kept or step.needs_person else Status.CURRENT
    person = step.needs_person
    return Outcome(status, step.reason, step.remedy, (), head, head, notes, person)


def apply(seen: Survey, facts: Facts, options: Options) -> Outcome:
    """Brings one repository up to date.

    Args:
      seen: the repository.
      facts: of its plan; looked at again, because the user may have gone on working.
      options: what is asked for.
    """
    seen.reconsider()
    pins = {seen.repository.name: (facts.pinned, facts.target or "")} if facts.pinned else {}
    facts = seen.facts(pins, options)
    step = plan.make(facts, options)
    if not step.does_something:
        return without_work(seen, facts, step)
    try:
        return _Application(seen, facts, step).run()
    except (git.GitError, OSError) as error:
        return _failed(seen, str(error))


def _failed(seen: Survey, reason: str, remedy: tuple[str, ...] = ()) -> Outcome:
    command = shown.git(seen.path, "status")
    now = git.commit(seen.path, "HEAD")
    return Outcome(Status.FAILED, reason, remedy or (command,), (), seen.state.head, now)


class _Application:
    """The steps for one repository, in order."""

    def __init__(self, seen: Survey, facts: Facts, step: Step):
        assert seen.journal is not None
        self.seen, self.facts, self.step = seen, facts, step
        self.journal = seen.journal
        self.path = seen.path
        self.notes = [note for note in (seen.choice.note, seen.tip.note) if note]

    def run(self) -> Outcome:
        new = self.step.new or ""
        if self.step.action in (Action.REBASE, Action.MERGE):
            brought = self._prepare()
            if brought.new is None:
                return self._conflict(brought)
            new = brought.new
        moves_head = self.step.action is not Action.NOTHING
        self._keep(new, moves_head)
        put_aside = stash.put(self.path, self.journal) if self.step.stash else None
        failure = self._move_head(new) if moves_head else ""
        if not failure and self.step.default_branch:
            failure = self._move_default_branch()
        problems = self._follow() if self.step.submodules and not failure else []
        if put_aside is not None:
            self._bring_back(put_aside)
        if failure:
            self.journal.finish()
            return _failed(self.seen, failure)._replace(notes=tuple(self.notes))
        return self._done(problems)

    def _prepare(self) -> bring.Brought:
        state = self.facts.state
        kind = "commit" if self.facts.pinned else "remote-tracking branch"
        message = f"Merge {kind} '{self.facts.target_ref}' into {state.branch}"
        return bring.prepare(
            self.path,
            state.common_dir,
            self.journal.run,
            self.step.action,
            state.head or "",
            self.step.new or "",
            message,
        )

    def _conflict(self, brought: bring.Brought) -> Outcome:
        path, verb = self.path, self.step.action.value
        tail = f"{shown.git(path, 'add', 'FILES')} && {shown.git(path, verb, '--continue')}"
        commands = (shown.git(path, verb, self.facts.target_ref), tail)
        if not brought.files:
            return _failed(self.seen, f"{verb}: {brought.problem}", commands[:1])
        names = ", ".join(brought.files[:5])
        reason = f"{verb} onto {self.facts.target_name} conflicts in {names}; nothing was changed"
        head = self.seen.state.head
        return Outcome(
            Status.SKIPPED, reason, commands, brought.files, head, head, tuple(self.notes)
        )

    def _keep(self, new: str, moves_head: bool) -> None:
        state = self.facts.state
        if moves_head:
            move = backup.Move(f"refs/heads/{state.branch}", state.head, new)
            self.journal.keep([move], checked_out=True)
        if self.step.default_branch:
            name = self.step.default_branch
            ref, old = f"refs/heads/{name}", state.branches[name]
            self.journal.keep([backup.Move(ref, old, self.facts.target or "")])

    def _move_head(self, new: str) -> str:
        """Moves the checked-out branch; returns what git said when it refused."""
        if self.step.action is Action.REBASE:
            words = git.move_branch(self.facts.state.branch or "", new)
        else:
            options = ("--quiet", "--ff-only", "--no-squash", "--no-overwrite-ignore")
            words = ("merge", *options, new)
        try:
            complaint = move.to(self.path, words, self.facts.state.head or "", new)
        except git.GitError as error:
            return f"git {words[0]}: {error.result.words}"
        self.notes += [complaint] if complaint else []
        return ""

    def _move_default_branch(self) -> str:
        name = self.step.default_branch or ""
        old, new = self.facts.state.branches[name], self.facts.target or ""
        words = ("update-ref", "-m", "update_repos: fast-forward", f"refs/heads/{name}", new, old)
        result = git.run(self.path, *words, changing=True)
        return "" if result.code == 0 else f"{name}: {result.words}"

    def _follow(self) -> list[str]:
        state = self.facts.state
        old = state.resume or state.head or ""
        new = git.ask(self.path, "rev-parse", "HEAD")
        shared = submodules.Follow(self.journal, self.seen.settings, threading.Lock())
        try:
            return submodules.follow(self.path, old, new, shared)
        except (git.GitError, OSError) as error:
            return [str(error)]

    def _bring_back(self, entry: dict[str, Any]) -> None:
        hindrance = stash.bring_back(self.path, entry, self.journal)
        if not hindrance:
            return
        name = stash.name_of(self.path, entry["commit"]) or entry["commit"]
        self.kept_stash = name
        self.notes.append(f"local changes do not fit any more and are kept in {name}: {hindrance}")

    kept_stash: str | None = None

    def _done(self, problems: list[str]) -> Outcome:
        old, new = self.seen.state.head, git.ask(self.path, "rev-parse", "HEAD")
        notes = (*self.notes, *(p for p in problems if p.endswith("its folder stays")))
        serious = [p for p in problems if not p.endswith("its folder stays")]
        # Without the last word, the next run takes the submodules up again.
        if not serious:
            self.journal.finish()
        if self.kept_stash:
            remedy = (shown.git(self.path, "stash", "pop", "--index", self.kept_stash),)
            return Outcome(Status.FAILED, self.notes[-1], remedy, (), old, new, notes[:-1])
        if serious:
            words = ("submodule", "update", "--init", "--recursive")
            remedy = (shown.git(self.path, *words),)
            return Outcome(Status.FAILED, "; ".join(serious), remedy, (), old, new, notes)
        reason = plan.words(self.step, self.facts)
        remedy = self.step.remedy if self.step.needs_person else ()
        person = self.step.needs_person
        return Outcome(Status.UPDATED, reason, remedy, (), old, new, notes, person)


def push_fork(seen: Survey, outcome: Outcome) -> Outcome:
    """Moves the fork's default branch to the upstream's.

    Args:
      seen: the repository.
      outcome: of its update.

    Returns:
      The outcome with what was pushed, or why not.
    """
    done, hindrance, unreachable = _push(seen)
    if not hindrance:
        return outcome._replace(notes=(*outcome.notes, done)) if done else outcome
    reason = "; ".join(part for part in (outcome.reason, f"push: {hindrance}") if part)
    return outcome._replace(reason=reason, needs_person=True, unreachable=unreachable)


def _push(seen: Survey) -> tuple[str, str, bool]:
    """What was done, what hindered, and whether that is the network."""
    fork, commit, branch = seen.choice.fork, seen.tip.commit, seen.tip.branch
    if fork is None:
        return "no remote is a fork to be pushed to", "", False
    if commit is None or branch is None or seen.tip.problem:
        return "", "the upstream's default branch is not known", False
    try:
        there = fetch.ask(seen.path, fork, branch, seen.settings)
        if there.unreachable:
            return "", there.problem, True
        if there.commit == commit:
            return "", "", False
        if seen.journal is not None:
            ref = f"refs/remotes/{fork}/{branch}"
            old = git.commit(seen.path, ref)
            seen.journal.keep([backup.Move(ref, old, commit)], pushed=fork)
        fetch.push(seen.path, fork, commit, branch, seen.settings)
    except network.Unreachable as error:
        return "", f"{fork}/{branch} did not take it: {error.problem}", not error.refused
    except (git.GitError, OSError) as error:
        return "", str(error), False
    return f"{fork}/{branch} is pushed to {commit[:10]}", "", False
