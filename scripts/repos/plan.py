"""What is to be done with one repository: a pure function of what is known and what is asked for.

make(repo, options)       # the record with its plan, or ended where something hinders
blocked(repo, obstacles)  # the same record, ended where files or submodules are in the way
"""

import shlex

from scripts.repos import git
from scripts.repos.model import Action, Options, Relation, Repo, Status
from scripts.repos.obstacles import Obstacles


def make(repo: Repo, options: Options) -> Repo:
    """Plans one repository."""
    if repo.status is not None:
        return repo
    if repo.problem:
        status = Status.UNREACHABLE if repo.unreachable else Status.SKIPPED
        return repo.ended(status, repo.problem, *repo.remedy)
    if repo.local.in_progress:
        return ready(repo)
    if repo.target is None:
        return repo.having(reason=f"{repo.target_name} is not known before a fetch")
    if options.to is not None:
        repo = _exact(repo)
    elif repo.branch is None:
        repo = _detached(repo)
    elif repo.branch == repo.default_branch:
        repo = _default_branch(repo)
    else:
        repo = _feature_branch(repo, options)
    if repo.status is None and repo.pending:
        repo = repo.having(follow=True)
    return ready(repo) if repo.status is None and repo.has_work else repo


def ready(repo: Repo) -> Repo:
    """The record, ended when something is in progress, locked or conflicted."""
    local = repo.local
    if local.in_progress:
        words = f"{', '.join(local.in_progress)} in progress"
        return repo.skipped(words, git.shell_command(repo.place, "status"))
    if local.locked:
        locks = [str(repo.git_dir / name) for name in local.locked]
        command = f"ls -l {shlex.join(locks)}   # remove it when no git runs there"
        return repo.skipped(f"locked: {' and '.join(locks)}", command)
    if local.conflicted:
        return repo.skipped(
            f"{local.conflicted} conflicted", git.shell_command(repo.place, "status")
        )
    return repo


def blocked(repo: Repo, obstacles: Obstacles) -> Repo:
    """The record, ended when something is in the way of the commit that HEAD would move to."""
    if obstacles.submodules:
        words = ", ".join(f"submodule {path} {what}" for path, what in obstacles.submodules)
        paths = [repo.place / path for path, _ in obstacles.submodules[:3]]
        return repo.skipped(words, *(git.shell_command(path, "status") for path in paths))
    if obstacles.files:
        is_change = not set(repo.local.changed).isdisjoint(obstacles.files)
        remedy = "commit or stash these changes" if is_change else "move these files elsewhere"
        words = f"in the way: {few(obstacles.files)}"
        return repo.skipped(
            words, git.shell_command(repo.place, "status"), remedy, files=obstacles.files
        )
    return repo


def _default_branch(repo: Repo) -> Repo:
    relation = repo.relation
    if relation.behind and relation.ahead:
        return repo.skipped(*_diverged(repo, repo.branch or "", relation))
    if relation.behind:
        return repo.having(action=Action.FAST_FORWARD, new=repo.target, follow=True)
    if not relation.ahead:
        return repo
    if repo.pinned_by:
        command = git.shell_command(repo.place, "switch", "--detach", repo.target or "")
        return _needing_person(repo, f"{relation.ahead} past {repo.target_name}", command)
    return repo.having(reason=f"{_commits(relation.ahead)} to push")


def _diverged(repo: Repo, branch: str, relation: Relation) -> tuple[str, ...]:
    """Reason and commands for a default branch that cannot be fast-forwarded."""
    path, name, ref = repo.place, repo.target_name, repo.target_ref
    log = git.shell_command(path, "log", "--oneline", f"{ref}..{branch}")
    force = git.shell_command(path, "branch", "-f", branch, ref)
    is_head = repo.branch == branch
    if repo.rewritten:
        reset = git.shell_command(path, "reset", "--keep", ref) if is_head else force
        return (
            f"{name} was rewritten: {branch} has {_commits(relation.ahead)} that it no longer has",
            log,
            f"{reset}   # when none of these is yours",
        )
    keep = ("switch", "-c") if is_head else ("branch",)
    return (
        f"{branch} and {name} have diverged: {relation.ahead} ahead, {relation.behind} behind",
        log,
        f"{git.shell_command(path, *keep, 'my-work', branch)} && {force}",
    )


def _feature_branch(repo: Repo, options: Options) -> Repo:
    relation, path = repo.relation, repo.place
    words = f"on {repo.branch}"
    if not relation.behind:
        return _beside(repo, words)
    if options.integrate is None:
        hint = "--rebase or --merge integrates it"
        return _beside(repo, f"{words}, {relation.behind} behind; {hint}")
    repo = _beside(repo, "")
    if not relation.ahead:
        return repo.having(action=Action.FAST_FORWARD, new=repo.target, follow=True)
    if not relation.related:
        deepen = (
            git.shell_command(path, "fetch", "--unshallow") if repo.shallow else "check the remotes"
        )
        return repo.skipped(
            f"{repo.branch} and {repo.target_name} have no common history here", deepen
        )
    if repo.rewritten:
        return repo.skipped(
            f"{repo.target_name} was rewritten; git cannot tell your commits from its old ones",
            git.shell_command(path, "rebase", "-i", repo.target_ref),
        )
    if options.integrate == "rebase" and relation.merges:
        return repo.skipped(
            f"{repo.branch} has merges, which a rebase would flatten",
            "update with --merge",
            git.shell_command(path, "rebase", "--rebase-merges", repo.target_ref),
        )
    return repo.having(action=Action(options.integrate), follow=True)


def _detached(repo: Repo) -> Repo:
    words, path = f"HEAD is detached at {(repo.head or '')[:10]}", repo.place
    if not repo.relation.behind:
        return _beside(repo, words)
    repo = _beside(repo, f"{words}, {repo.relation.behind} behind, and stays there")
    switch = git.shell_command(path, "switch", repo.default_branch or "")
    if not repo.own_commits:
        return _needing_person(repo, repo.reason, switch)
    own = f"{repo.reason}; {_commits(repo.own_commits)} of it on no branch"
    return _needing_person(repo, own, git.shell_command(path, "switch", "-c", "my-work"))


def _exact(repo: Repo) -> Repo:
    """--to: HEAD is detached at a commit, branches stay."""
    if repo.head == repo.target:
        return repo
    if repo.own_commits:
        words = f"{_commits(repo.own_commits)} of the detached HEAD on no branch"
        return repo.skipped(words, git.shell_command(repo.place, "switch", "-c", "my-work"))
    return repo.having(action=Action.DETACH, new=repo.target, follow=True)


def _beside(repo: Repo, words: str) -> Repo:
    """What happens to the local default branch when something else is checked out."""
    repo = repo.having(reason=words)
    relation, name = repo.default_relation, repo.default_branch or ""
    if relation is None or not relation.behind:
        return repo
    if name in repo.elsewhere:
        place = repo.elsewhere[name]
        command = git.shell_command(place, "merge", "--ff-only", repo.target_ref)
        return _needing_person(repo, _join(words, f"{name} is checked out in {place}"), command)
    if relation.ahead:
        reason, *remedy = _diverged(repo, name, relation)
        return _needing_person(repo, _join(words, reason), *remedy)
    return repo.having(move_default=True)


def _needing_person(repo: Repo, reason: str, *remedy: str) -> Repo:
    return repo.having(reason=reason, remedy=(*remedy, *repo.remedy), needs_person=True)


def _commits(count: int) -> str:
    return f"{count} commit{'s' if count != 1 else ''}"


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def few(names: tuple[str, ...]) -> str:
    """The first names of many, in words."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def words(repo: Repo) -> str:
    """A plan in words, for the table."""
    parts = []
    if repo.action is Action.FAST_FORWARD:
        parts.append(f"fast-forward to {repo.target_name}")
    elif repo.action is Action.REBASE:
        parts.append(f"rebase onto {repo.target_name}")
    elif repo.action is Action.MERGE:
        parts.append(f"merge {repo.target_name}")
    elif repo.action is Action.DETACH:
        parts.append(f"detach HEAD at {repo.target_name}")
    if repo.move_default:
        parts.append(f"fast-forward {repo.default_branch}, not checked out")
    if repo.pending:
        parts.append("submodules follow")
    return ", ".join([*parts, *([repo.reason] if repo.reason else [])]) or "nothing"
