"""Carries the plan of one repository out: old values are kept first, then HEAD moves.

What moves HEAD are commands of git that refuse to overwrite local work.
"""

from scripts.repos import git, journal, move, network, plan, submodules
from scripts.repos.model import Action, Repo, Status
from scripts.repos.survey import Run, find_obstacles


def without_work(repo: Repo) -> Repo:
    """The end of a repository whose plan changes nothing."""
    if repo.status is not None:
        return repo
    is_default = repo.branch == repo.default_branch or repo.head == repo.target
    status = Status.CURRENT if is_default and not repo.needs_person else Status.KEPT
    return repo.having(status=status, new=repo.head)


def apply(repo: Repo, run: Run) -> Repo:
    """Brings one repository to its target.

    Raises:
      git.GitError: git failed before anything was changed.
    """
    if repo.status is not None or not repo.has_work:
        return without_work(repo)
    if repo.action in (Action.REBASE, Action.MERGE):
        repo = _integrate(repo, run)
    if repo.status is None and repo.action is not Action.NOTHING:
        # Again, because other repositories may have been fetched for long since the plan was made.
        repo = plan.blocked(repo, find_obstacles(repo, repo.new or ""))
    if repo.status is not None:
        return repo
    record = run.record(repo)
    followers = submodules.Followers(record, run.settings, repo.pending)
    failure = ""
    if repo.action is not Action.NOTHING:
        repo, failure = _move_head(repo, record, followers)
    if not failure and repo.move_default:
        failure = _move_default_branch(repo, record)
    problems = followers.follow() if repo.follow and not failure else []
    now = git.commit(repo.place, "HEAD")
    if failure:
        return repo.ended(Status.FAILED, failure, git.shell_command(repo.place, "status"), new=now)
    if problems:
        words = ("submodule", "update", "--init", "--recursive")
        remedy = git.shell_command(repo.place, *words)
        return repo.ended(Status.FAILED, "; ".join(problems), remedy, new=now)
    remedy = repo.remedy if repo.needs_person else ()
    return repo.ended(Status.UPDATED, plan.words(repo), *remedy, new=now)


def _integrate(repo: Repo, run: Run) -> Repo:
    """With the commit of the finished rebase or merge; ended where that did not work."""
    path, verb = repo.place, repo.action.value
    kind = "commit" if repo.pinned_by else "remote-tracking branch"
    done = move.integrate(
        path,
        repo.common_dir,
        run.name,
        repo.action,
        repo.head or "",
        repo.target or "",
        f"Merge {kind} '{repo.target_ref}' into {repo.branch}",
    )
    if done.new is not None:
        return repo.having(new=done.new)
    again = git.shell_command(path, verb, repo.target_ref)
    if not done.files:
        return repo.ended(Status.FAILED, f"{verb}: {done.problem}", again, new=repo.head)
    add = git.shell_command(path, "add", "FILES")
    resume = f"{add} && {git.shell_command(path, verb, '--continue')}"
    names = ", ".join(done.files[:5])
    reason = f"{verb} onto {repo.target_name} conflicts in {names}; nothing was changed"
    return repo.skipped(reason, again, resume, files=done.files, new=repo.head)


def _move_head(
    repo: Repo, record: journal.Journal, followers: submodules.Followers
) -> tuple[Repo, str]:
    """Moves HEAD with index and files; returns what git said when it refused."""
    path, old, new = repo.place, repo.head or "", repo.new or ""
    ref = git.run(path, "symbolic-ref", "--quiet", "HEAD").out.removesuffix("\n")
    if ref != (f"refs/heads/{repo.branch}" if repo.branch else ""):
        return repo, f"another branch was checked out meanwhile: {ref}"
    if repo.action is Action.DETACH:
        words = move.head_to(new)
        journal.keep_refs(path, record.run, [journal.Move("HEAD", old, new)])
        record.note("head", old=old, new=new, branch=repo.branch)
    else:
        words = (*move.FAST_FORWARD, new)
        if repo.action is Action.REBASE:
            words = move.branch_to(repo.branch or "", new)
        record.keep([journal.Move(f"refs/heads/{repo.branch}", old, new)])
    expected, gone = submodules.expected(path, old, new)
    added = set(expected) - set(followers.pending)
    followers.expect("", expected)
    try:
        complaint = move.to(path, words, old, new)
    except git.GitError as error:
        followers.forget(*added)
        return repo, f"git {words[0]}: {error.result.words}"
    notes = [f"submodule {name} is gone from the project; its folder stays" for name in gone]
    return repo.noting(complaint, *notes), ""


def _move_default_branch(repo: Repo, record: journal.Journal) -> str:
    """Fast-forwards the local default branch; returns what git said when it refused."""
    name = repo.default_branch or ""
    ref, old, new = f"refs/heads/{name}", repo.branches[name], repo.target or ""
    record.keep([journal.Move(ref, old, new)])
    words = ("update-ref", "-m", "update_repos: fast-forward", ref, new, old)
    result = git.run(repo.place, *words, changing=True)
    return "" if result.code == 0 else f"{name}: {result.words}"


def push_fork(repo: Repo, run: Run) -> Repo:
    """Moves the default branch of the fork that the user named to the upstream's; never forces."""
    fork, commit, branch = repo.fork, repo.tip, repo.default_branch
    if fork is None:
        hint = "name one: `fork` in the table, or git config remote.pushDefault"
        return repo.noting(f"no remote is named as the fork to push to; {hint}")
    if commit is None or branch is None or repo.problem:
        return _not_pushed(repo, "the upstream's default branch is not known")
    try:
        _, ends = network.list_branch(repo.place, fork, branch, run.settings)
        if ends.get(branch) == commit:
            return repo
        record = run.record(repo)
        ref = f"refs/remotes/{fork}/{branch}"
        old = git.commit(repo.place, ref)
        record.keep([journal.Move(ref, old, commit)], pushed=fork)
        network.push(repo.place, fork, commit, branch, run.settings)
    except network.Unreachable as error:
        repo = _not_pushed(repo, f"{fork}/{branch} did not take it: {error.problem}")
        return repo.having(unreachable=repo.unreachable or not error.refused)
    except (git.GitError, OSError) as error:
        return _not_pushed(repo, str(error))
    return repo.noting(f"{fork}/{branch} is pushed to {commit[:10]}")


def _not_pushed(repo: Repo, problem: str) -> Repo:
    reason = "; ".join(part for part in (repo.reason, f"push: {problem}") if part)
    return repo.having(reason=reason, needs_person=True)
