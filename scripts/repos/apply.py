"""Carries plans out: old values are saved first, then HEAD moves, then submodules follow.

What moves HEAD are commands of git that refuse to overwrite local work.
"""

from collections.abc import Iterable

from scripts.repos import git, journal, move, network, plan, submodules
from scripts.repos.model import Action, Ended, Repo, Status
from scripts.repos.run import Run, guarded
from scripts.repos.survey import check_obstacles


def as_planned(repo: Repo) -> Repo:
    """The end of a repository in a run that only plans, or whose plan changes nothing."""
    if repo.status is not None:
        return repo
    if repo.has_work:
        return repo.having(status=Status.PLANNED, reason=plan.words(repo))
    is_default = repo.branch == repo.default_branch or repo.head == repo.target
    status = Status.CURRENT if is_default and not repo.needs_person else Status.KEPT
    return repo.having(status=status, new=repo.head)


def apply_all(plans: Iterable[Repo], run: Run) -> list[Repo]:
    """Carries the plans out, one after the other."""
    return [guarded(lambda repo: _apply(repo, run), repo) for repo in plans]


def _apply(repo: Repo, run: Run) -> Repo:
    if git.STOP.is_set() and repo.status is None:
        raise repo.skip("interrupted before it was begun")
    is_to_move = repo.status is None and repo.has_work
    done = guarded(lambda one: _update(one, run), repo) if is_to_move else as_planned(repo)
    if run.options.push_fork and done.official is not None:
        done = _push_fork(done, run)
    run.finish(done)
    is_new = done.is_cloned and done.status in (Status.CURRENT, Status.UPDATED)
    return done.having(status=Status.CLONED) if is_new else done


def _update(repo: Repo, run: Run) -> Repo:
    """Moves one repository to its target; raises Ended and GitError."""
    if repo.action in (Action.REBASE, Action.MERGE):
        repo = _integrate(repo, run)
    if repo.action is not Action.NOTHING:
        # Again, because other repositories may have been fetched for long since the plan was made.
        check_obstacles(repo, repo.new or "")
    record = run.record(repo)
    if repo.action is not Action.NOTHING:
        repo = _move_head(repo, record)
    if repo.move_default:
        _move_default_branch(repo, record)
    problems = submodules.follow(repo.place, record, run.settings) if repo.follow else []
    now = git.commit(repo.place, "HEAD")
    if problems:
        words = ("submodule", "update", "--init", "--recursive")
        remedy = git.shell_command(repo.place, *words)
        return repo.ended(Status.FAILED, "; ".join(problems), remedy, new=now)
    remedy = repo.remedy if repo.needs_person else ()
    return repo.ended(Status.UPDATED, plan.words(repo), *remedy, new=now)


def _integrate(repo: Repo, run: Run) -> Repo:
    """With the commit of the finished rebase or merge."""
    done = move.integrate(repo, run.name)
    if done.new is not None:
        return repo.having(new=done.new)
    verb = repo.action.value
    again = git.shell_command(repo.place, verb, repo.target_ref)
    if not done.files:
        raise Ended(repo.ended(Status.FAILED, f"{verb}: {done.problem}", again, new=repo.head))
    add = git.shell_command(repo.place, "add", "FILES")
    resume = f"{add} && {git.shell_command(repo.place, verb, '--continue')}"
    names = ", ".join(done.files[:5])
    reason = f"{verb} onto {repo.target_name} conflicts in {names}; nothing was changed"
    raise repo.skip(reason, again, resume, files=done.files)


def _move_head(repo: Repo, record: journal.Journal) -> Repo:
    """Moves HEAD with index and files."""
    path, old, new = repo.place, repo.head or "", repo.new or ""
    ref = git.run(path, "symbolic-ref", "--quiet", "HEAD").out.removesuffix("\n")
    if ref != (f"refs/heads/{repo.branch}" if repo.branch else ""):
        raise _failed(repo, f"another branch was checked out meanwhile: {ref}")
    if repo.action is Action.DETACH:
        words = move.head_to(new)
        journal.keep_refs(path, record.run, [journal.Move("HEAD", old, new)])
        record.note("head", old=old, new=new, branch=repo.branch)
    else:
        make = move.branch_to if repo.action is Action.REBASE else move.fast_forward
        words = make(repo.branch or "", new)
        record.keep([journal.Move(f"refs/heads/{repo.branch}", old, new)])
    expected, gone = submodules.expected(path, old, new)
    journal.set_pending(repo.git_dir, {**expected, **repo.pending})
    try:
        complaint = move.to(path, words, old, new)
    except git.GitError as error:
        journal.set_pending(repo.git_dir, repo.pending)
        raise _failed(repo, error.result.words) from None
    notes = [f"submodule {name} is gone from the project; its folder stays" for name in gone]
    return repo.noting(complaint, *notes)


def _failed(repo: Repo, reason: str) -> Ended:
    now = git.commit(repo.place, "HEAD")
    command = git.shell_command(repo.place, "status")
    return Ended(repo.ended(Status.FAILED, reason, command, new=now))


def _move_default_branch(repo: Repo, record: journal.Journal) -> None:
    """Fast-forwards the local default branch, which is not checked out."""
    name = repo.default_branch or ""
    ref, old, new = f"refs/heads/{name}", repo.branches[name], repo.target or ""
    record.keep([journal.Move(ref, old, new)])
    words = ("update-ref", "-m", "update_repos: fast-forward", ref, new, old)
    result = git.run(repo.place, *words, changing=True)
    if result.code != 0:
        raise _failed(repo, f"{name}: {result.words}")


def _push_fork(repo: Repo, run: Run) -> Repo:
    """Moves the default branch of the fork that the user named to the upstream's; never forces."""
    fork, commit, branch = repo.fork, repo.tip, repo.default_branch
    if fork is None:
        hint = "name one: `fork` in the table, or git config remote.pushDefault"
        return repo.noting(f"no remote is named as the fork to push to; {hint}")
    if commit is None or branch is None or repo.status is Status.UNREACHABLE:
        return _not_pushed(repo, "the upstream's default branch is not known")
    try:
        _, ends = network.list_branch(repo.place, fork, branch, run.settings)
        if ends.get(branch) == commit:
            return repo
        ref = f"refs/remotes/{fork}/{branch}"
        moved = journal.Move(ref, git.commit(repo.place, ref), commit)
        run.record(repo).keep([moved], pushed=fork)
        network.push(repo.place, fork, commit, branch, run.settings)
    except network.Unreachable as error:
        repo = _not_pushed(repo, f"{fork}/{branch} did not take it: {error}")
        return repo.having(unreachable=not error.refused)
    except (git.GitError, OSError) as error:
        return _not_pushed(repo, str(error))
    return repo.noting(f"{fork}/{branch} is pushed to {commit[:10]}")


def _not_pushed(repo: Repo, problem: str) -> Repo:
    reason = "; ".join(part for part in (repo.reason, f"push: {problem}") if part)
    return repo.having(reason=reason, needs_person=True)
