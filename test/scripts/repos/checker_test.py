"""Proves that checker.py sees each kind of loss, and takes ordinary work for none."""

from pathlib import Path

import pytest

from test.scripts.repos.checker import differences, losses
from test.scripts.repos.snapshots import Snapshot, snapshot
from test.scripts.repos.world import Repo, World


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with a commit, a submodule, and local work of each kind."""
    world = World(tmp_path)
    inner = world.server("inner")
    server = world.server("a")
    server.commit("f")
    server.commit("d/x")
    server.write(".gitignore", "*.o\n")
    server.git("add", ".gitignore")
    server.add_submodule(inner, "s")
    clone = world.clone(server, "a", "--recursive")
    clone.shell("""
        git switch -q -c feature; commit mine; git switch -q main
        echo stashed > f; git stash -q
        echo changed > f
        echo staged > staged; git add staged
        echo untracked > new
        echo ignored > kept.o
        ln -s nowhere link
        embed nested
    """)
    return clone


# What the checker says, what is there before (shell commands), and what destroys it.
LOSSES = {
    "a commit": ("lost object", "", "git branch -D feature"),
    "a commit that still exists in the reflog": (
        "it was held by a ref, the index or a stash, now only a",
        "git stash -qu; commit own",
        "git reset -q --hard HEAD~1",
    ),
    "an unreferenced object": (
        "lost object",
        "echo unreferenced | git hash-object -w --stdin",
        "git prune",
    ),
    "a stash": ("lost stash", "", "git stash drop -q"),
    "a branch": ("lost ref refs/heads/feature", "", "git branch -D feature"),
    "a staged file": ("lost index entry ./staged", "", "git reset -q staged"),
    "the content of a staged file": ("lost object", "", "echo else > staged; git add staged"),
    "a changed file": ("lost changed file f", "", "git checkout -q f"),
    "a file hidden from git": (
        "lost changed file d/x",
        "git update-index --assume-unchanged d/x; echo hidden > d/x",
        "echo else > d/x",
    ),
    "a deletion": ("lost deletion of d/x: it is there again", "rm d/x", "git checkout -q d/x"),
    "an untracked file": ("lost untracked or ignored file new", "", "echo else > new"),
    "an ignored file": ("lost untracked or ignored file kept.o", "", "rm kept.o"),
    "the mode of a file": ("lost changed file f", "", "chmod +x f"),
    "a symbolic link": (
        "lost untracked or ignored file link",
        "",
        "rm link; printf nowhere > link",
    ),
    "an embedded repository": (
        "lost repository: the git folder nested/.git is gone",
        "",
        "rm -rf nested/.git",
    ),
    "the git folder of a submodule": (
        "lost repository: the git folder .git/modules/s is gone",
        "",
        "rm -rf .git/modules/s",
    ),
    "a file in a linked worktree outside": (
        "lost changed file ../linked/f",
        "git worktree add -q ../linked feature; echo changed > ../linked/f",
        "rm ../linked/f",
    ),
    "an operation under way": ("lost .git/BISECT_", "git bisect start", "git bisect reset"),
    "a hook": (
        "lost .git/hooks/pre-commit.sample",
        "",
        "rm .git/hooks/pre-commit.sample",
    ),
    "a setting": (
        'lost setting of .git: [branch "main"]',
        "",
        "git config --unset branch.main.remote",
    ),
    "an address of a remote": (
        'lost setting of .git: [remote "origin"]',
        "",
        "git remote set-url origin elsewhere",
    ),
    "the reflog of HEAD": ("lost reflog entries", "", "git reflog expire --expire=all --all"),
}


@pytest.mark.parametrize(("message", "prepare", "destroy"), LOSSES.values(), ids=LOSSES)
def test_a_loss_is_seen(repo: Repo, message: str, prepare: str, destroy: str):
    repo.shell(prepare)
    before, after = _after(repo, destroy)
    assert message in "\n".join(losses(before, after))


def _after(repo: Repo, change: str) -> tuple[Snapshot, Snapshot]:
    before = snapshot(repo.path)
    repo.shell(change)
    return before, snapshot(repo.path)


def test_a_worktree_shares_the_git_folder_that_is_read_once(repo: Repo):
    repo.git("worktree", "add", "-q", str(repo.path.parent / "linked"), "feature")
    assert sorted(snapshot(repo.path).stores) == [".git", ".git/modules/s", "nested/.git"]


def test_a_fast_forward_beside_local_work_loses_nothing(repo: Repo):
    server = Repo(repo.path.parents[1] / "servers/a", repo.environ)
    server.commit("d/x")
    before, after = _after(repo, "git pull -q --ff-only")
    assert losses(before, after) == []
    assert [d for d in differences(before, after) if "refs/heads/main" in d]


def test_a_commit_that_a_ref_of_the_tool_keeps_is_not_lost(repo: Repo):
    repo.git("update-ref", "refs/update-repos/1/heads/main", "HEAD")
    before, after = _after(repo, "git reset -q --soft HEAD~1")
    assert not [loss for loss in losses(before, after) if loss.startswith("lost object")]


def test_nothing_is_lost_or_different_when_nothing_happens(repo: Repo):
    before, after = _after(repo, "git status")
    assert (losses(before, after), differences(before, after)) == ([], [])
