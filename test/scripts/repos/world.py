"""A world for the tests of update_repos.py: servers, checkouts and a home folder, all real."""

import contextlib
import copy
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import pytest

from test.build.shell import AS_A_USER, program
from test.scripts.repos import holdings

T = TypeVar("T")

# A test runs among links to what it may read; the link to WORKSPACE leads to the tree itself.
ROOT = Path("WORKSPACE").resolve().parent
TOOL = ROOT / "scripts" / "update_repos.py"

# fsync: git does not wait for the disk, which takes most of the time of many commits.
_GIT_CONFIG = """\
[user]
	name = Test
	email = test@example.invalid
[init]
	defaultBranch = main
[protocol "file"]
	allow = always
[gc]
	auto = 0
[core]
	fsync = none
"""


needs_rights = pytest.mark.skipif(
    subprocess.run(["sh", "-c", '"$@"', "sh", *AS_A_USER, "true"], check=False).returncode != 0,
    reason="root may read and write everything here",
)

# For the shell commands of tests; property_test.py says what $INNER is.
_FUNCTIONS = """
set -e
submodule() {  # path, url
    git submodule --quiet add "${2:-$INNER}" "$1"
    [ -n "$2" ] || git -C "$1" checkout -q HEAD~1
}
commit() { echo mine > "$1"; git add -f "$1"; git commit -qm mine; }
exclude() { echo "$1" >> "$(git rev-parse --git-path info/exclude)"; }
embed() {  # a repository with a branch and a stash
    git init -q "$1"
    (cd "$1"; commit own; git branch mine; echo stashed > own; git stash -q)
}
conflict() {  # an operation that stops at a path of its own
    git checkout -q -b other; echo other > own; git add own; git commit -qm other
    git checkout -q -; commit own
    ! git $1 other >/dev/null 2>&1
}
hostile() {  # a submodule whose name leads to the git folder of another one
    mkdir "$1"; git update-index --add --cacheinfo "160000,$(git -C s rev-parse HEAD),$1"
    printf '[submodule "../modules/s"]\n path = %s\n url = %s\n' "$1" "$INNER" >> .gitmodules
}
own_git_folder() {  # as git submodules were made long ago
    rm $1/.git; mv .git/modules/$1 $1/.git; git config -f $1/.git/config --unset core.worktree
}
"""

# A symbolic ref as what it refers to.
_REF_FORMAT = "--format=%(refname) %(if)%(symref)%(then)%(symref)%(else)%(objectname)%(end)"


class Ran(NamedTuple):
    """How a call of the tool ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)

    def one(self, name: str = "a") -> dict[str, Any]:
        """What the JSON says of one repository."""
        return next(r for r in self.json["repositories"] if r["name"] == name)


class Repo:
    """A repository on disk."""

    def __init__(self, path: Path, environ: Mapping[str, str]):
        self.path = path
        self.environ = environ

    def git(self, *arguments: str, fails: bool = False, text: str = "") -> str:
        """Output of a git command that has to succeed, or to fail; `text` is its input."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env=self.environ,
            capture_output=True,
            input=text.encode(),
            check=False,
        )
        words = os.fsdecode(done.stdout + done.stderr)
        assert (done.returncode != 0) == fails, f"git {arguments[0]} in {self.path}: {words}"
        return os.fsdecode(done.stdout).strip()

    def shell(self, script: str, *, check: bool = True, **environ: str) -> None:
        """Runs shell commands that have to succeed, with the functions above."""
        done = subprocess.run(
            ["sh", "-c", _FUNCTIONS + script],
            cwd=self.path,
            env={**self.environ, **environ},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or not check, f"{script}: {done.stdout}{done.stderr}"

    def write(self, name: str, content: str | bytes = "text\n") -> Path:
        """Writes a file."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    def read(self, name: str) -> str:
        return (self.path / name).read_text()

    def commit(self, name: str = "file", content: str | bytes | None = None) -> str:
        """Commits a file, with new content each time; returns the commit."""
        if content is None:
            content = f"{name} {self.git('rev-list', '--count', '--all')}\n"
        self.write(name, content)
        self.git("add", "--force", "--", name)
        self.git("commit", "-q", "-m", f"write {name}")
        return self.head

    def commit_on_feature(self) -> str:
        """Commits the file `mine` on a new branch, which is checked out; returns the commit."""
        self.git("switch", "-q", "-c", "feature")
        return self.commit("mine")

    @contextlib.contextmanager
    def gone(self) -> Iterator[None]:
        """While this lasts, the repository is not at its place."""
        away = self.path.rename(self.path.with_name(f"{self.path.name}-away"))
        yield
        away.rename(self.path)

    def hook(self, name: str, script: str) -> None:
        """Makes git run a script."""
        program(self.path / self.git("rev-parse", "--git-path", f"hooks/{name}"), script)

    def add_submodule(self, inner: "Repo", path: str) -> None:
        """Commits another repository as a submodule."""
        self.git("submodule", "--quiet", "add", f"file://{inner.path}", path)
        self.git("commit", "-q", "-m", f"add {path}")

    def bump(self, path: str) -> str:
        """Commits the newest commit of a submodule; returns ours."""
        Repo(self.path / path, self.environ).git("pull", "-q", "--ff-only", "origin", "main")
        self.git("commit", "-q", "-a", "-m", f"bump {path}")
        return self.head

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    @property
    def branch(self) -> str:
        return self.git("rev-parse", "--abbrev-ref", "HEAD")

    def refs(self, *, tracking: bool = True) -> dict[str, str]:
        """All refs but those that the tool keeps."""
        listed = self.git("for-each-ref", _REF_FORMAT).split("\n")
        pairs = [line.split(" ") for line in listed if line]
        return {
            name: value
            for name, value in pairs
            if not name.startswith("refs/update-repos/")
            and (tracking or not name.startswith("refs/remotes/"))
        }

    def kept(self) -> list[str]:
        """The refs that the tool keeps."""
        listed = self.git("for-each-ref", "--format=%(refname)", "refs/update-repos")
        return listed.split("\n") if listed else []

    def files(self) -> dict[str, bytes]:
        """Content of all files, tracked or not; of links where they lead."""
        found = {}
        for folder, folders, names in os.walk(self.path):
            folders[:] = [name for name in folders if name != ".git"]
            for name in names:
                file = Path(folder, name)
                if name != ".git":
                    link = file.is_symlink()
                    data = os.readlink(file).encode() if link else file.read_bytes()
                    found[str(file.relative_to(self.path))] = data
        return found

    def everything(self) -> holdings.Holdings:
        """All that a user could miss."""
        return holdings.read(self.path)


class World:
    """Servers, checkouts, home.

    world = World(tmp_path)
    server, clone = world.pair("a")     # `clone` is a clone of `server`, named a in the table
    server.commit()
    world.run()
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.home = folder / "home"
        (self.home / ".config" / "torch_xla_lite").mkdir(parents=True, exist_ok=True)
        (folder / "src" / "project").mkdir(parents=True, exist_ok=True)
        (self.home / ".gitconfig").write_text(_GIT_CONFIG)
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "TORCH_XLA_LITE_CONTAINER": "0",
            "TZ": "UTC",
        }
        self.table: dict[str, dict[str, object]] = {}

    def repo(self, path: Path) -> Repo:
        return Repo(path, self.environ)

    def init(self, path: Path) -> Repo:
        """A new repository with one commit."""
        path.mkdir(parents=True)
        repo = self.repo(path)
        repo.git("init", "-q")
        repo.commit("README", "first\n")
        return repo

    def server(self, name: str) -> Repo:
        """A repository that others clone. Commits are made in it directly."""
        return self.init(self.folder / "servers" / name)

    def clone(self, server: Repo, name: str, *options: str, **keys: object) -> Repo:
        """A clone, and its entry in the table."""
        path = self.folder / "src" / name
        url = f"file://{server.path}"
        words = ["git", "clone", "-q", *options, url, str(path)]
        subprocess.run(words, env=self.environ, check=True, capture_output=True)
        self.table[name] = {"path": str(path), "upstream": [url], "rebuild": "make", **keys}
        return self.repo(path)

    def pair(
        self, name: str = "a", files: Mapping[str, str | bytes] | None = None, **keys: object
    ) -> tuple[Repo, Repo]:
        """A server, in which these files were committed one by one, and a clone of it."""
        server = self.server(name)
        for file, content in (files or {}).items():
            server.commit(file, content)
        return server, self.clone(server, name, **keys)

    def unconfigured(self, path: str, **keys: object) -> Repo:
        """A clone that the table knows by its address and usual folder alone."""
        server = self.repo(self.folder / "servers" / "a")
        if not server.path.exists():
            server = self.server("a")
        clone = self.clone(server, path)
        upstream = self.table.pop(path)["upstream"]
        self.table["a"] = {"upstream": upstream, "folders": ["usual"], **keys}
        return clone

    def wrapped_git(self, script: str) -> dict[str, str]:
        """A variable by which the tool calls a shell script in the place of git; $git is git, with
        which the script ends unless it does so before."""
        git = self.folder / "bin" / "git"
        program(git, f'git={shutil.which("git")}\n{script}\nexec $git "$@"')
        return {"PATH": f"{git.parent}:{self.environ['PATH']}"}

    def write_table(self) -> Path:
        """Writes the user's table; it becomes the default set."""
        lines = [f"default = {json.dumps(list(self.table))}"]
        for name, keys in self.table.items():
            lines.append(f"[repository.{name}]")
            lines += [f"{key} = {_toml(value)}" for key, value in keys.items()]
        file = self.home / ".config" / "torch_xla_lite" / "repositories.toml"
        file.write_text("\n".join(lines) + "\n")
        return file

    def command(self, *arguments: str, as_a_user: bool = False) -> list[str]:
        """The words of a call of the tool; of a user, without root's right to use all files."""
        self.write_table()
        words = [sys.executable, str(TOOL), *arguments]
        words += ["--allow-root", f"--project={self.folder / 'src' / 'project'}"]
        return [*AS_A_USER, *words] if as_a_user else words

    def run(
        self, *arguments: str, json: bool = True, as_a_user: bool = False, **environ: str
    ) -> Ran:
        """Runs the tool to its end."""
        done = subprocess.run(
            self.command(*arguments, *(["--json"] if json else []), as_a_user=as_a_user),
            env={**self.environ, **environ},
            cwd=self.folder,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="surrogateescape",
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)


class Template(Generic[T]):
    """What many tests begin with, built once, because copying files is faster than calling git.

    The copies are at one place, one after the other, because addresses of servers are in commits.
    """

    def __init__(self, folder: Path, build: Callable[[World], T]):
        self._place, self._kept = folder / "world", folder / "kept"
        world = World(self._place)
        self._built = world, build(world)
        self._place.rename(self._kept)

    def copy(self) -> tuple[World, T]:
        """The world, and what was built in it."""
        shutil.rmtree(self._place, ignore_errors=True)
        shutil.copytree(self._kept, self._place, symlinks=True)
        return copy.deepcopy(self._built)


class Nest:
    """A repository with a submodule that has one itself: servers, and a clone of all."""

    def __init__(self, world: World):
        self.leaf = world.server("leaf")
        self.middle = world.server("middle")
        self.middle.add_submodule(self.leaf, "leaf")
        self.top = world.server("a")
        self.top.add_submodule(self.middle, "middle")
        self.clone = world.clone(self.top, "a", "--recursive")
        self.in_middle = world.repo(self.clone.path / "middle")
        self.in_leaf = world.repo(self.clone.path / "middle" / "leaf")

    def advance(self) -> tuple[str, str, str]:
        """New commits in all three, each recording the one below."""
        leaf = self.leaf.commit()
        middle = self.middle.bump("leaf")
        return self.top.bump("middle"), middle, leaf


def _toml(value: object) -> str:
    if isinstance(value, dict):
        pairs = ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items())
        return f"{{ {pairs} }}"
    return json.dumps(value)


def wait_for_orphans(folder: Path) -> None:
    """Waits until no process works in a folder: git does for a moment after we are killed."""
    while any(_works_in(process, folder) for process in Path("/proc").glob("[0-9]*")):
        pass


def _works_in(process: Path, folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return Path(os.readlink(process / "cwd")).is_relative_to(folder)
    return False
