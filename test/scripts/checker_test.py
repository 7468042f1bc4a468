"""Proves that checker.py sees each kind of loss, and takes ordinary work for none."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from test.scripts.checker import differences, losses
from test.scripts.snapshots import Snapshot, snapshot
from test.scripts.world import Repo, World


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
    server.git("submodule", "--quiet", "add", f"file://{inner.path}", "s")
    server.git("commit", "-q", "-m", "submodule")
    clone = world.clone(server, "a", "--recursive")
    clone.git("switch", "-q", "-c", "feature")
    clone.commit("mine")
    clone.git("switch", "-q", "main")
    clone.write("f", "stashed\n")
    clone.git("stash", "-q")
    clone.write("f", "changed\n")
    clone.write("staged", "staged\n")
    clone.git("add", "staged")
    clone.write("new", "untracked\n")
    clone.write("kept.o", "ignored\n")
    (clone.path / "link").symlink_to("nowhere")
    nested = world.init(clone.path / "nested")
    nested.git("branch", "mine")
    return clone


LOSSES: dict[str, tuple[str, Callable[[Repo], object]]] = {
    "a commit": ("lost object", lambda repo: repo.git("branch", "-D", "feature")),
    "a stash": ("lost stash", lambda repo: repo.git("stash", "drop", "-q")),
    "a branch": ("lost ref refs/heads/feature", lambda repo: repo.git("branch", "-D", "feature")),
    "a staged file": ("lost index entry ./staged", lambda r: r.git("reset", "-q", "staged")),
    "the content of a staged file": (
        "lost object",
        lambda repo: repo.write("staged", "else") and repo.git("add", "staged"),
    ),
    "a changed file": ("lost changed file f", lambda repo: repo.git("checkout", "-q", "f")),
    "an untracked file": ("lost untracked or ignored file new", lambda r: r.write("new", "else")),
    "an ignored file": (
        "lost untracked or ignored file kept.o",
        lambda repo: (repo.path / "kept.o").unlink(),
    ),
    "the mode of a file": ("lost changed file f", lambda repo: (repo.path / "f").chmod(0o755)),
    "a symbolic link": (
        "lost untracked or ignored file link",
        lambda repo: (repo.path / "link").unlink() or repo.write("link", "nowhere"),
    ),
    "an embedded repository": (
        "lost repository: the git folder nested/.git is gone",
        lambda repo: shutil.rmtree(repo.path / "nested/.git"),
    ),
    "the git folder of a submodule": (
        "lost repository: the git folder .git/modules/s is gone",
        lambda repo: shutil.rmtree(repo.path / ".git/modules/s"),
    ),
    "a hook": (
        "lost .git/hooks/pre-commit.sample",
        lambda repo: (repo.path / ".git/hooks/pre-commit.sample").unlink(),
    ),
    "a setting": (
        'lost setting of .git: [branch "main"]',
        lambda repo: repo.git("config", "--unset", "branch.main.remote"),
    ),
    "an address of a remote": (
        'lost setting of .git: [remote "origin"]',
        lambda repo: repo.git("remote", "set-url", "origin", "elsewhere"),
    ),
    "the reflog of HEAD": (
        "lost reflog entries",
        lambda repo: repo.git("reflog", "expire", "--expire=all", "--all"),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_seen(repo: Repo, name: str):
    message, destroy = LOSSES[name]
    before = snapshot(repo.path)
    destroy(repo)
    found = losses(before, snapshot(repo.path))
    assert any(loss.startswith(message) for loss in found), found


def _after(repo: Repo, change: Callable[[], object]) -> tuple[Snapshot, Snapshot]:
    before = snapshot(repo.path)
    change()
    return before, snapshot(repo.path)


def test_a_commit_that_only_the_reflog_knows_is_lost_although_it_exists(repo: Repo):
    repo.git("stash", "-q", "--include-untracked")
    own = repo.commit("own")
    before, after = _after(repo, lambda: repo.git("reset", "-q", "--hard", "HEAD~1"))
    assert f"lost object {own[:10]}: it was held by a ref, the index or a stash, now only a" in (
        "\n".join(losses(before, after))
    )


def test_an_unreferenced_object_that_is_pruned_is_lost(repo: Repo):
    blob = repo.git("hash-object", "-w", "--stdin", text="unreferenced")
    before, after = _after(repo, lambda: repo.git("prune"))
    assert [loss for loss in losses(before, after) if blob[:10] in loss]


def test_a_deletion_that_is_taken_back_is_lost(repo: Repo):
    (repo.path / "d/x").unlink()
    before, after = _after(repo, lambda: repo.git("checkout", "-q", "d/x"))
    assert losses(before, after) == ["lost deletion of d/x: it is there again"]


def test_a_file_hidden_from_git_is_seen_when_it_is_overwritten(repo: Repo):
    repo.git("update-index", "--assume-unchanged", "d/x")
    repo.write("d/x", "hidden\n")
    before, after = _after(repo, lambda: repo.write("d/x", "else\n"))
    assert any(loss.startswith("lost changed file d/x") for loss in losses(before, after))


def test_an_operation_under_way_that_is_ended_is_lost(repo: Repo):
    repo.git("bisect", "start")
    before, after = _after(repo, lambda: repo.git("bisect", "reset"))
    assert any(loss.startswith("lost .git/BISECT_") for loss in losses(before, after))


def test_a_file_that_is_lost_in_a_linked_worktree_outside_is_seen(repo: Repo):
    place = repo.path.parent / "linked"
    repo.git("worktree", "add", "-q", str(place), "feature")
    (place / "f").write_text("changed there\n")
    before, after = _after(repo, lambda: (place / "f").unlink())
    assert any(loss.startswith("lost changed file ../linked/f") for loss in losses(before, after))


def test_a_worktree_shares_the_git_folder_that_is_read_once(repo: Repo):
    repo.git("worktree", "add", "-q", str(repo.path.parent / "linked"), "feature")
    assert sorted(snapshot(repo.path).stores) == [".git", ".git/modules/s", "nested/.git"]


def test_a_fast_forward_beside_local_work_loses_nothing(repo: Repo):
    server = Repo(repo.path.parents[1] / "servers/a", repo.environ)
    server.commit("d/x")
    before, after = _after(repo, lambda: repo.git("pull", "-q", "--ff-only"))
    assert losses(before, after) == []
    assert [d for d in differences(before, after) if "refs/heads/main" in d]


def test_a_commit_that_a_ref_of_the_tool_keeps_is_not_lost(repo: Repo):
    repo.git("update-ref", "refs/update-repos/1/heads/main", "HEAD")
    before, after = _after(repo, lambda: repo.git("reset", "-q", "--soft", "HEAD~1"))
    assert not [loss for loss in losses(before, after) if loss.startswith("lost object")]


def test_nothing_is_lost_or_different_when_nothing_happens(repo: Repo):
    before, after = _after(repo, lambda: repo.git("status"))
    assert (losses(before, after), differences(before, after)) == ([], [])
