"""Nothing is lost, whatever state a repository is in and whenever the tool is killed.

Hypothesis builds a repository by random steps, lets its server move on, runs update_repos.py with
random options, and kills it at a random call of git. Then every commit and stash is reachable, all
local content is where it was, and `undo`, which is killed and repeated too, restores every ref.

    UPDATE_REPOS_EXAMPLES=500 .venv/bin/python -m pytest test/scripts/property_test.py

looks for new examples; without the variable there are a few, always the same. A failure prints the
steps, and the seed to repeat it.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from test.scripts.world import Repo, World, wait_for_orphans

EXAMPLES = os.environ.get("UPDATE_REPOS_EXAMPLES")

_TRACKED = ("one", "two", "folder/three")
_PLAIN = (*_TRACKED, "new", "folder/new", "kept.o", "folder")

# Calls git as asked for, and kills its caller before or after the call with the given number.
_KILLER = """\
#!/bin/sh
n=$(wc -c <"$KILL_COUNT")
printf x >>"$KILL_COUNT"
[ "$n" = "$KILL_AT" ] && [ "$KILL_WHEN" = before ] && { kill -9 $PPID; exit 1; }
[ "$n" = "$KILL_AT" ] && kill -9 $PPID
exec "$REAL_GIT" "$@"
"""


def _try(repo: Repo, *words: str) -> None:
    """Runs a git command that may fail, as people's do."""
    subprocess.run(
        ["git", *words], cwd=repo.path, env=repo.environ, capture_output=True, check=False
    )


class Local:
    """What a person did in the clone."""

    def __init__(self, clone: Repo):
        self.clone = clone
        self.count = 0

    def _write(self, name: str) -> None:
        """Changes a file, or makes it; each time with a content of its own."""
        file = self.clone.path / name
        if any(parent.is_file() for parent in file.parents) or file.is_dir():
            return
        self.count += 1
        old = file.read_text() if file.is_file() else ""
        self.clone.write(name, f"{old}mine {self.count}\n")

    def commit(self, name: str) -> None:
        self._write(name)
        _try(self.clone, "add", "--force", name)
        _try(self.clone, "commit", "-q", "-m", "mine")

    def stage(self, name: str) -> None:
        self._write(name)
        _try(self.clone, "add", "--force", name)

    def change(self, name: str) -> None:
        self._write(name)

    def stash(self, name: str) -> None:
        self._write(name)
        _try(self.clone, "stash", "push", "-q")

    def branch(self, name: str) -> None:
        _try(self.clone, "switch", "-q", "-c", name.replace("/", "-") + "-branch")

    def main(self, _: str) -> None:
        _try(self.clone, "switch", "-q", "main")

    def detach(self, _: str) -> None:
        _try(self.clone, "switch", "-q", "--detach")

    def remove(self, name: str) -> None:
        _try(self.clone, "rm", "-q", "--cached", name)

    def delete(self, name: str) -> None:
        file = self.clone.path / name
        if file.is_file():
            file.unlink()

    def bisect(self, _: str) -> None:
        _try(self.clone, "bisect", "start")

    def _other(self, name: str) -> None:
        """A branch that is in conflict with the current one."""
        _try(self.clone, "switch", "-q", "-c", "conflict", "HEAD~1")
        self.commit(name)
        _try(self.clone, "switch", "-q", "-")
        self.commit(name)

    def merge(self, name: str) -> None:
        self._other(name)
        _try(self.clone, "merge", "-q", "conflict")

    def rebase(self, name: str) -> None:
        self._other(name)
        _try(self.clone, "rebase", "-q", "conflict")

    @property
    def _inner(self) -> "Local":
        return Local(Repo(self.clone.path / "inner", self.clone.environ))

    def submodule_change(self, name: str) -> None:
        self._inner.change("README" if name in _TRACKED else "new")

    def submodule_commit(self, _: str) -> None:
        self._inner.commit("README")

    def submodule_branch(self, _: str) -> None:
        _try(self._inner.clone, "switch", "-q", "-c", "mine")


_LOCAL = sorted(name for name in vars(Local) if not name.startswith("_"))


class Upstream:
    """What happened on the server meanwhile."""

    def __init__(self, server: Repo, inner: Repo):
        self.server = server
        self.inner = inner

    def commit(self, name: str) -> None:
        if (self.server.path / name).is_dir():
            _try(self.server, "rm", "-q", "-r", name)
        elif any((self.server.path / name).parent.is_file() for _ in "1"):
            return
        old = self.server.read(name) if (self.server.path / name).is_file() else ""
        self.server.commit(name, f"theirs {name}\n{old}")

    def remove(self, name: str) -> None:
        _try(self.server, "rm", "-q", "-r", name)
        _try(self.server, "commit", "-q", "-m", "remove")

    def rewrite(self, name: str) -> None:
        _try(self.server, "reset", "-q", "--hard", "HEAD~1")
        self.commit(name)

    def submodule(self, name: str) -> None:
        self.inner.commit("new" if "new" in name else "README")
        inner = Repo(self.server.path / "inner", self.server.environ)
        inner.git("pull", "-q", "--ff-only", "origin", "main")
        _try(self.server, "commit", "-q", "-a", "-m", "bump")


_UPSTREAM = sorted(name for name in vars(Upstream) if not name.startswith("_"))


class Place:
    """A world that is made once, and put back for every example."""

    def __init__(self, folder: Path):
        self.pristine, self.folder = folder / "pristine", folder / "world"
        world = World(self.folder)
        inner, server = world.server("inner"), world.server("a")
        for name in _TRACKED:
            server.commit(name)
        server.git("submodule", "--quiet", "add", f"file://{inner.path}", "inner")
        server.git("commit", "-q", "-m", "submodule")
        server.commit("one")
        world.clone(server, "a", "--recursive")
        world.clone(server, "shallow", "--recursive", "--depth=2")
        self.table = world.table
        for name in self.table:
            (self.folder / "src" / name / ".git" / "info" / "exclude").write_text("*.o\n")
        bin_folder = self.folder / "bin"
        bin_folder.mkdir()
        (bin_folder / "git").write_text(_KILLER)
        (bin_folder / "git").chmod(0o755)
        self.folder.rename(self.pristine)

    def again(self, name: str) -> World:
        """The world as it was made, with one of its clones in the table."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.pristine, self.folder, symlinks=True)
        world = World(self.folder)
        world.table = {name: self.table[name]}
        return world


def _killed(world: World, at: int | None, when: str, *words: str) -> int:
    """Runs the tool, killed at a call of git; its exit code."""
    count = world.folder / "count"
    count.write_text("")
    environ = {
        **world.environ,
        "PATH": f"{world.folder / 'bin'}:{world.environ['PATH']}",
        "REAL_GIT": shutil.which("git") or "git",
        "KILL_AT": str(at),
        "KILL_WHEN": when,
        "KILL_COUNT": str(count),
    }
    command = world.command(*words, "--json")
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    wait_for_orphans(world.folder)
    return done.returncode


def _reachable(repo: Repo) -> set[str]:
    """All commits that refs, HEAD and stashes reach; what only a reflog knows does not count."""
    stashes = repo.git("stash", "list", "--format=%H").split()
    return set(repo.git("rev-list", "--all", "HEAD", *stashes).split())


def _in_progress(repo: Repo) -> dict[str, str]:
    """Files of the git folder that hold what is under way."""
    git_dir = Path(repo.git("rev-parse", "--absolute-git-dir"))
    names = ("MERGE_HEAD", "MERGE_MSG", "BISECT_LOG", "BISECT_START")
    files = [git_dir / name for name in names]
    files += sorted((git_dir / "rebase-merge").glob("*"))
    return {str(file): file.read_text() for file in files if file.is_file()}


def _stashed(repo: Repo) -> set[str]:
    """Contents of all files in all stashes, staged ones too; as blobs."""
    found = set()
    kept = [ref for ref in repo.kept() if ref.endswith("/stash")]
    for commit in {*repo.git("stash", "list", "--format=%H").split(), *kept}:
        for tree in (commit, f"{commit}^2"):
            for line in repo.git("ls-tree", "-r", tree).splitlines():
                found.add(line.split()[2])
    return found


def _blob(repo: Repo, data: bytes) -> str:
    return repo.git("hash-object", "--stdin", "--no-filters", text=data.decode())


def _dirty(repo: Repo) -> set[str]:
    """Paths with local content: changed, untracked or ignored."""
    words = ("status", "--porcelain", "-z", "-uall", "--ignored", "--no-renames")
    entries = repo.git(*words, "--ignore-submodules").split("\0")
    return {entry[3:].rstrip("/") for entry in entries if entry} if entries else set()


def _assert_nothing_is_lost(repo: Repo, before: dict[str, Any], stashing: bool) -> None:
    assert before["reachable"] <= _reachable(repo)
    stashes = repo.git("stash", "list", "--format=%H").split()
    assert set(before["all"]["stashes"].split()) <= set(stashes)
    assert before["in progress"] == _in_progress(repo)
    files, staged = repo.files(), repo.git("ls-files", "-s").splitlines()
    put_aside = _stashed(repo) if stashing else set()
    for name in before["dirty"]:
        old = before["all"]["files"].get(name)
        if old is not None and files.get(name) != old:
            assert stashing, f"{name} was {old!r} and is {files.get(name)!r}"
            merged = set(old.splitlines()) <= set(files.get(name, b"").splitlines())
            assert merged or _blob(repo, old) in put_aside, f"{name} was {old!r}"
    for entry in before["staged"]:
        assert entry in staged or (stashing and entry.split()[1] in put_aside), entry


def _seen(repo: Repo) -> dict[str, Any]:
    committed = {line.split()[2] for line in repo.git("ls-tree", "-r", "HEAD").splitlines()}
    staged = repo.git("ls-files", "-s").splitlines()
    return {
        "reachable": _reachable(repo),
        "in progress": _in_progress(repo),
        "dirty": _dirty(repo),
        "staged": [entry for entry in staged if entry.split()[1] not in committed],
        "all": repo.everything(),
    }


def _without_tracking(state: dict[str, Any]) -> dict[str, Any]:
    refs = {n: v for n, v in state["refs"].items() if not n.startswith("refs/remotes/")}
    return {**state, "refs": refs}


_STEPS = st.lists(st.tuples(st.sampled_from(_LOCAL), st.sampled_from(_PLAIN)), max_size=6)
_NEWS = st.lists(
    st.tuples(st.sampled_from(_UPSTREAM), st.sampled_from(_PLAIN)), min_size=1, max_size=4
)
_OPTIONS = st.tuples(
    st.sampled_from(["", "", "--rebase", "--merge"]),
    st.sampled_from(["", "--keep-untracked"]),
    st.sampled_from(["", "", "", "--plan", "--dry-run"]),
)
_KILL = st.tuples(st.one_of(st.none(), st.integers(0, 60)), st.sampled_from(["before", "after"]))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("property"))


@hypothesis.settings(
    max_examples=int(EXAMPLES or 20),
    # What is found by chance is found by who looks for it, not by who changed something else.
    derandomize=EXAMPLES is None,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)
@hypothesis.given(
    name=st.sampled_from(["a", "a", "a", "shallow"]),
    steps=_STEPS,
    news=_NEWS,
    options=_OPTIONS,
    kill=_KILL,
    kill_undo=_KILL,
)
def test_nothing_is_lost_and_undo_restores_every_ref(
    place: Place,
    name: str,
    steps: list[tuple[str, str]],
    news: list[tuple[str, str]],
    options: tuple[str, ...],
    kill: tuple[int | None, str],
    kill_undo: tuple[int | None, str],
):
    world = place.again(name)
    clone = world.repo(world.folder / "src" / name)
    inner = world.repo(clone.path / "inner")
    local = Local(clone)
    for verb, what in steps:
        getattr(local, verb)(what)
    upstream = Upstream(
        world.repo(world.folder / "servers" / "a"), world.repo(world.folder / "servers" / "inner")
    )
    for verb, what in news:
        getattr(upstream, verb)(what)
    repos = [repo for repo in (clone, inner) if (repo.path / ".git").exists()]
    before = [_seen(repo) for repo in repos]
    words = [word for word in options if word]
    stashing = "--autostash" in words

    code = _killed(world, *kill, *words)

    assert code in (0, 1, 3, -9)
    for repo, seen in zip(repos, before, strict=True):
        _assert_nothing_is_lost(repo, seen, stashing and repo is clone)
    if "--dry-run" in words:
        assert [repo.everything() for repo in repos] == [seen["all"] for seen in before]
        return

    undone = _killed(world, *kill_undo, "undo")

    for repo, seen in zip(repos, before, strict=True):
        _assert_nothing_is_lost(repo, seen, stashing and repo is clone)
    if undone == -9:
        undone = _killed(world, None, "", "undo")
    # 2: there was nothing to undo, or the one that was killed had done it all.
    assert undone in (0, 2)
    for repo, seen in zip(repos, before, strict=True):
        after, was = repo.everything(), seen["all"]
        if "--plan" in words:
            after, was = _without_tracking(after), _without_tracking(was)
        if stashing:
            assert after.pop("stashes").endswith(was.pop("stashes"))
            after["refs"].pop("refs/stash", None), was["refs"].pop("refs/stash", None)
        assert after == was
