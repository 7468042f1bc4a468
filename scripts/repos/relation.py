"""How a commit relates to the one that it should follow."""

from scripts.repos import git
from scripts.repos.model import Relation, Repo


def of(repo: Repo, local: str) -> Relation:
    """How a local branch relates to the target."""
    path, target = repo.path, repo.target or ""
    if local == target:
        return Relation()
    counted = git.ask(path, "rev-list", "--left-right", "--count", f"{local}...{target}")
    ahead, behind = map(int, counted.split())
    if not ahead or not behind:
        return Relation(ahead, behind)
    related = git.run(path, "merge-base", local, target).code == 0
    merges = git.ask(path, "rev-list", "--count", "--merges", f"{target}..{local}") != "0"
    fork_point = git.run(path, "merge-base", "--fork-point", repo.tracking, local).out.strip()
    olds = filter(None, (repo.remembered, fork_point))
    bases = [git.run(path, "merge-base", local, old).out.strip() for old in olds]
    is_kept = ("merge-base", "--is-ancestor")
    rewritten = any(
        base and git.run(path, *is_kept, base, repo.tip or target).code for base in bases
    )
    return Relation(ahead, behind, related, merges, rewritten)
