"""What is to be done with one repository: a pure function of its record and the run."""

from scripts.repos.model import Action, Ended, Repo, Run, Status


def make(repo: Repo, run: Run) -> Repo:
    """The record, planned or at its end; raises Ended where neither is possible."""
    if repo.relation.behind or repo.pending:
        check_ready(repo)
    if repo.target is None:
        repo = repo._replace(reason=f"{repo.target_name} is not known before a fetch")
    elif repo.branch is None:
        repo = _detached(repo)
    elif repo.branch == repo.default_branch:
        repo = _default_branch(repo)
    else:
        repo = _feature_branch(repo, run)
    if repo.action is not Action.NOTHING or repo.pending:
        move = [f"{repo.action.value} {repo.target_name}"] if repo.action.value else []
        parts = [*move, *["submodules follow"] * repo.pending, repo.reason]
        return repo._replace(status=Status.PLANNED, reason=", ".join(filter(None, parts)))
    is_default = repo.branch == repo.default_branch or repo.head == repo.target
    status = Status.CURRENT if is_default and not repo.code else Status.KEPT
    return repo._replace(status=status, new=repo.head)


def check_ready(repo: Repo) -> None:
    """Raises Ended when something is in progress, or conflicted."""
    local = repo.local._replace(changed=(), untracked=(), submodules={})
    if local.describe():
        raise Ended(repo.skipped(local.describe(), repo.command("status")))


def _default_branch(repo: Repo) -> Repo:
    relation, branch = repo.relation, repo.branch or ""
    if relation.ahead and (relation.behind or relation.rewritten):
        reason = f"{branch} and {repo.target_name} have diverged"
        if relation.rewritten:
            reason = f"{repo.target_name} was rewritten; {branch} has commits that it no longer has"
        keep = repo.command("switch", "-c", "my-work", branch)
        raise Ended(
            repo.skipped(
                f"{reason}: {relation.ahead} ahead, {relation.behind} behind",
                repo.command("log", "--oneline", f"{repo.target_ref}..{branch}"),
                f"{keep} && {repo.command('branch', '-f', branch, repo.target_ref)}",
            )
        )
    if relation.behind:
        return repo._replace(action=Action.FAST_FORWARD, new=repo.target)
    if not relation.ahead:
        return repo
    if repo.pinned_by:
        command = repo.command("switch", "--detach", repo.target or "")
        return _needs_person(repo, f"{relation.ahead} past {repo.target_name}", command)
    return repo._replace(reason=f"{commits(relation.ahead)} to push")


def _feature_branch(repo: Repo, run: Run) -> Repo:
    relation, words = repo.relation, f"on {repo.branch}"
    if relation.ahead and relation.rewritten:
        reason = f"{repo.target_name} was rewritten; git cannot tell your commits from its old ones"
        raise Ended(repo.skipped(reason, repo.command("rebase", "-i", repo.target_ref)))
    if not relation.behind:
        return repo._replace(reason=words)
    if run.integrate is None:
        words += f", {relation.behind} behind; --rebase or --merge integrates it"
        return repo._replace(reason=words)
    if not relation.ahead:
        return repo._replace(action=Action.FAST_FORWARD, new=repo.target)
    # The new commit is made when the plan is carried out.
    return repo._replace(action=Action[run.integrate.upper()])


def _detached(repo: Repo) -> Repo:
    words = f"HEAD is detached at {(repo.head or '')[:10]}"
    if not repo.relation.behind:
        return repo._replace(reason=words)
    # Its own commits may be on no branch.
    to = ("-c", "my-work") if repo.relation.ahead else (repo.default_branch or "",)
    words += f", {repo.relation.behind} behind, and stays there"
    return _needs_person(repo, words, repo.command("switch", *to))


def _needs_person(repo: Repo, reason: str, remedy: str) -> Repo:
    return repo._replace(reason=reason, remedy=(remedy,), code=1)


def commits(count: int) -> str:
    return f"{count} commit{'s' if count != 1 else ''}"
