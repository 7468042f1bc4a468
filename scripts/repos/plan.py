"""What is to be done with one repository: a pure function of what was seen and what was asked for.

    make(facts, options)   # a Step

Hindrances come first, the hard ones before those that matter only when there is something to do.
"""

import shlex

from scripts.repos import shown
from scripts.repos.model import UNTRACKED, Action, Facts, Options, RepoState, Step


def make(facts: Facts, options: Options) -> Step:
    """Plans one repository."""
    hindrance = _hard_hindrance(facts, options)
    if hindrance is not None:
        return hindrance
    if facts.target is None:
        return Step(Action.NOTHING, reason=f"{facts.target_name} is not known before a fetch")
    state = facts.state
    if state.branch is None:
        step = _detached(facts)
    elif state.branch == facts.tip.branch:
        step = _default_branch(facts)
    else:
        step = _feature_branch(facts, options)
    if state.resume is not None and step.action in (Action.NOTHING, Action.FAST_FORWARD):
        step = step._replace(submodules=True)
    if not step.does_something:
        return step
    return _hindered_by_local_work(facts, options) or _with_stash(step, state)


def _skip(reason: str, *remedy: str, unreachable: bool = False) -> Step:
    return Step(
        Action.SKIP,
        reason=reason,
        remedy=remedy,
        needs_person=not unreachable,
        unreachable=unreachable,
    )


def _hard_hindrance(facts: Facts, options: Options) -> Step | None:
    """What stops everything, whether or not there is something to do."""
    state, choice, tip = facts.state, facts.choice, facts.tip
    path = state.path
    if state.refusal:
        return _skip(state.refusal, *state.remedy)
    if choice.problem:
        if not choice.fix:
            return _skip(choice.problem, shown.git(path, "remote", "add", "upstream", "URL"))
        hint = "would be corrected" if options.fix_remotes else "--fix-remotes corrects it"
        return _skip(f"{choice.problem}; {hint}", shown.git(path, "remote", *choice.fix))
    if state.local.in_progress:
        names = ", ".join(state.local.in_progress)
        return _skip(f"{names} in progress", shown.git(path, "status"))
    if state.unfinished is not None:
        return _skip(
            f"run {state.unfinished} was interrupted; local changes are in its stash",
            f"scripts/update_repos.py undo {state.unfinished}",
            shown.git(path, "stash", "list"),
        )
    if tip.problem:
        return _skip(tip.problem, *tip.remedy, unreachable=tip.unreachable)
    return _skip(facts.pin_problem, "update without --pinned") if facts.pin_problem else None


def _default_branch(facts: Facts) -> Step:
    head, state = facts.head, facts.state
    if not head.behind:
        return _not_behind(facts)
    if not head.ahead:
        return Step(Action.FAST_FORWARD, new=facts.target, submodules=True)
    return _skip(*_diverged(facts, state.branch or "HEAD", head.ahead, head.behind))


def _not_behind(facts: Facts) -> Step:
    head, path = facts.head, facts.state.path
    if not head.ahead:
        return Step(Action.NOTHING)
    if facts.pinned:
        reason = f"{head.ahead} past {facts.target_name}"
        command = shown.git(path, "switch", "--detach", facts.target or "")
        return Step(Action.NOTHING, reason=reason, remedy=(command,), needs_person=True)
    return Step(Action.NOTHING, reason=f"{_commits(head.ahead)} to push")


def _diverged(facts: Facts, branch: str, ahead: int, behind: int) -> tuple[str, ...]:
    """Reason and commands for a default branch that cannot be fast-forwarded."""
    path, name, ref = facts.state.path, facts.target_name, facts.target_ref
    log = shown.git(path, "log", "--oneline", f"{ref}..{branch}")
    force = shown.git(path, "branch", "-f", branch, ref)
    on_it = facts.state.branch == branch
    reset = shown.git(path, "reset", "--keep", ref) if on_it else force
    if facts.rewritten:
        return (
            f"{name} was rewritten: {branch} has {_commits(ahead)} that are not in it any more",
            log,
            f"{reset}   # when none of these is yours",
        )
    return (
        f"{branch} and {name} have diverged: {ahead} ahead, {behind} behind",
        log,
        f"{shown.git(path, *(('switch', '-c') if on_it else ('branch',)), 'my-work', branch)}"
        f" && {force}",
    )


def _feature_branch(facts: Facts, options: Options) -> Step:
    head, state = facts.head, facts.state
    step = _beside(facts)
    words = f"on {state.branch}"
    if facts.tip.note:
        step = step._replace(needs_person=True, remedy=(*step.remedy, *facts.tip.remedy))
    if not head.behind:
        return step._replace(reason=_join(words, step.reason))
    if options.bring is None:
        stays = f"{words}, {head.behind} behind; --rebase or --merge brings it along"
        return step._replace(reason=_join(stays, step.reason))
    if not head.ahead:
        return step._replace(action=Action.FAST_FORWARD, new=facts.target, submodules=True)
    if not head.related:
        deepen = shown.git(state.path, "fetch", "--unshallow")
        fetch = deepen if state.shallow else "look at the remotes"
        return _skip(f"{state.branch} and {facts.target_name} have no common history here", fetch)
    if facts.rewritten:
        return _skip(
            f"{facts.target_name} was rewritten; git cannot tell your commits from its old ones",
            shown.git(state.path, "rebase", "-i", facts.target_ref),
        )
    if options.bring == "rebase" and head.merges:
        return _skip(
            f"{state.branch} holds merges, which a rebase would flatten",
            "update with --merge",
            shown.git(state.path, "rebase", "--rebase-merges", facts.target_ref),
        )
    return step._replace(action=Action(options.bring), new=facts.target, submodules=True)


def _detached(facts: Facts) -> Step:
    head, state = facts.head, facts.state
    step = _beside(facts)
    words = f"HEAD is detached at {(state.head or '')[:10]}"
    if not head.behind:
        return step._replace(reason=_join(words, step.reason))
    return step._replace(
        reason=_join(f"{words}, {head.behind} behind, and stays there", step.reason),
        remedy=(shown.git(state.path, "switch", facts.tip.branch or ""), *step.remedy),
        needs_person=True,
    )


def _beside(facts: Facts) -> Step:
    """What happens to the local default branch when something else is checked out."""
    relation, state, name = facts.default, facts.state, facts.tip.branch or ""
    if relation is None or not relation.behind:
        return Step(Action.NOTHING, new=facts.target)
    if name in state.elsewhere:
        place = state.elsewhere[name]
        return Step(
            Action.NOTHING,
            reason=f"{name} is checked out in {place}",
            remedy=(shown.git(place, "merge", "--ff-only", facts.target_ref),),
            needs_person=True,
        )
    if relation.ahead:
        reason, *remedy = _diverged(facts, name, relation.ahead, relation.behind)
        return Step(Action.NOTHING, reason=reason, remedy=tuple(remedy), needs_person=True)
    return Step(Action.NOTHING, new=facts.target, default_branch=name)


def _hindered_by_local_work(facts: Facts, options: Options) -> Step | None:
    """What matters only because something would be done."""
    state = facts.state
    local, status = state.local, shown.git(state.path, "status")
    if local.locked:
        locks = [str(state.git_dir / name) for name in local.locked]
        return _skip(
            f"locked: {' and '.join(locks)}",
            f"ls -l {shlex.join(locks)}   # remove it when no git runs there",
        )
    if local.conflicted:
        return _skip(f"{local.conflicted} conflicted", status)
    keep_untracked = options.keep_untracked or options.autostash
    submodules = [s for s in local.submodules if not (keep_untracked and s[1] == UNTRACKED)]
    if submodules:
        words = ", ".join(f"submodule {path} {what}" for path, what in submodules)
        return _skip(words, *(shown.git(state.path / path, "status") for path, _ in submodules[:3]))
    if (local.staged or local.unstaged) and not options.autostash:
        return _skip(local.words(), status, "commit or stash the changes")
    if local.untracked and not keep_untracked:
        names = _few(local.untracked)
        return _skip(f"untracked: {names}", "update with --keep-untracked, or .git/info/exclude")
    if facts.blocked:
        return _skip(f"in the way: {_few(facts.blocked)}", "move these files elsewhere")
    return None


def _with_stash(step: Step, state: RepoState) -> Step:
    moves_files = step.action in (Action.FAST_FORWARD, Action.REBASE, Action.MERGE)
    dirty = bool(state.local.staged or state.local.unstaged)
    return step._replace(stash=moves_files and dirty)


def _commits(count: int) -> str:
    return f"{count} commit{'s' if count != 1 else ''}"


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _few(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def words(step: Step, facts: Facts) -> str:
    """A plan in words, for the table."""
    if step.action is Action.SKIP:
        return f"skip: {step.reason}"
    parts = []
    if step.stash:
        parts.append("stash local changes")
    if step.action is Action.FAST_FORWARD:
        parts.append(f"fast-forward to {facts.target_name}")
    elif step.action is Action.REBASE:
        parts.append(f"rebase onto {facts.target_name}")
    elif step.action is Action.MERGE:
        parts.append(f"merge {facts.target_name}")
    if step.default_branch:
        parts.append(f"fast-forward {step.default_branch}, not checked out")
    if step.submodules and facts.state.resume is not None:
        parts.append("submodules follow")
    return ", ".join([*parts, *([step.reason] if step.reason else [])]) or "nothing"
