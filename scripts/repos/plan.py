"""What is to be done with one repository: a pure function of its record and the options."""

import shlex

from scripts.repos import git
from scripts.repos.model import Action, Ended, Options, Relation, Repo, Status


def make(repo: Repo, options: Options) -> Repo:
    """The record, planned or at its end; raises Ended where neither is possible."""
    if repo.relation.behind or repo.default_relation.behind:
        check_ready(repo, only_in_progress=True)
    if repo.target is None:
        repo = repo._replace(reason=f"{repo.target_name} is not known before a fetch")
    elif repo.branch is None:
        repo = _detached(repo)
    elif repo.branch == repo.default_branch:
        repo = _default_branch(repo)
    else:
        repo = _feature_branch(repo, options)
    if repo.move_default or repo.action is not Action.NOTHING or repo.pending:
        check_ready(repo)
        return repo._replace(status=Status.PLANNED, reason=_describe(repo))
    is_default = repo.branch == repo.default_branch or repo.head == repo.target
    status = Status.CURRENT if is_default and not repo.code else Status.KEPT
    return repo._replace(status=status, new=repo.head)


def check_ready(repo: Repo, only_in_progress: bool = False) -> None:
    """Raises Ended when something is in progress, locked or conflicted."""
    local = repo.local._replace(staged=(), unstaged=(), untracked=(), submodules={})
    if local.in_progress if only_in_progress else local.describe():
        locks = [str(git.git_dir(repo.path) / name) for name in local.locked]
        remove = f"ls -l {shlex.join(locks)}   # remove it when no git runs there"
        raise Ended(repo.skipped(local.describe(), remove if locks else repo.command("status")))


def _default_branch(repo: Repo) -> Repo:
    relation = repo.relation
    if relation.ahead and (relation.behind or relation.rewritten):
        raise Ended(repo.skipped(*_diverged(repo, repo.branch or "", relation)))
    if relation.behind:
        return repo._replace(action=Action.FAST_FORWARD, new=repo.target)
    if not relation.ahead:
        return repo
    if repo.pinned_by:
        command = repo.command("switch", "--detach", repo.target or "")
        return _needs_person(repo, f"{relation.ahead} past {repo.target_name}", command)
    return repo._replace(reason=f"{commits(relation.ahead)} to push")


def _diverged(repo: Repo, branch: str, relation: Relation) -> tuple[str, ...]:
    """Reason and commands for a default branch that cannot be fast-forwarded."""
    reason = f"{branch} and {repo.target_name} have diverged"
    if relation.rewritten:
        reason = f"{repo.target_name} was rewritten; {branch} has commits that it no longer has"
    keep = ("switch", "-c") if repo.branch == branch else ("branch",)
    return (
        f"{reason}: {relation.ahead} ahead, {relation.behind} behind",
        repo.command("log", "--oneline", f"{repo.target_ref}..{branch}"),
        f"{repo.command(*keep, 'my-work', branch)} && "
        f"{repo.command('branch', '-f', branch, repo.target_ref)}",
    )


def _feature_branch(repo: Repo, options: Options) -> Repo:
    relation, words = repo.relation, f"on {repo.branch}"
    if not relation.behind:
        return _move_default(repo, words)
    if options.integrate is None:
        hint = "--rebase or --merge integrates it"
        return _move_default(repo, f"{words}, {relation.behind} behind; {hint}")
    repo = _move_default(repo, "")
    if not relation.ahead:
        return repo._replace(action=Action.FAST_FORWARD, new=repo.target)
    if not relation.related:
        reason = f"{repo.branch} and {repo.target_name} have no common history here"
        deepen = f"{repo.command('fetch', '--unshallow')}   # in a shallow clone"
        raise Ended(repo.skipped(reason, deepen))
    if relation.rewritten:
        reason = f"{repo.target_name} was rewritten; git cannot tell your commits from its old ones"
        raise Ended(repo.skipped(reason, repo.command("rebase", "-i", repo.target_ref)))
    # The new commit is made when the plan is carried out.
    return repo._replace(action=Action[options.integrate.upper()])


def _detached(repo: Repo) -> Repo:
    words = f"HEAD is detached at {(repo.head or '')[:10]}"
    if not repo.relation.behind:
        return _move_default(repo, words)
    repo = _move_default(repo, f"{words}, {repo.relation.behind} behind, and stays there")
    if repo.own_commits:
        own = f"{repo.reason}; {commits(repo.own_commits)} of it on no branch"
        return _needs_person(repo, own, repo.command("switch", "-c", "my-work"))
    return _needs_person(repo, repo.reason, repo.command("switch", repo.default_branch or ""))


def _move_default(repo: Repo, words: str) -> Repo:
    """What happens to the local default branch when something else is checked out."""
    repo, start = repo._replace(reason=words), f"{words}; " if words else ""
    relation, name = repo.default_relation, repo.default_branch or ""
    if relation.ahead and (relation.behind or relation.rewritten):
        reason, *remedy = _diverged(repo, name, relation)
        return _needs_person(repo, start + reason, *remedy)
    if not relation.behind:
        return repo
    if name in repo.elsewhere:
        place = repo.elsewhere[name]
        command = git.shell_command(place, "merge", "--ff-only", repo.target_ref)
        return _needs_person(repo, f"{start}{name} is checked out in {place}", command)
    return repo._replace(move_default=True)


def _needs_person(repo: Repo, reason: str, *remedy: str) -> Repo:
    return repo._replace(reason=reason, remedy=(*remedy, *repo.remedy), code=1)


def commits(count: int) -> str:
    return f"{count} commit{'s' if count != 1 else ''}"


def _describe(repo: Repo) -> str:
    """A plan in words, for the table."""
    moves = repo.action is not Action.NOTHING
    parts = [f"{repo.action.value} {repo.target_name}"] if moves else []
    parts += [f"fast-forward {repo.default_branch}, not checked out"] * repo.move_default
    parts += ["submodules follow"] if repo.pending else []
    return ", ".join([*parts, *([repo.reason] if repo.reason else [])])
