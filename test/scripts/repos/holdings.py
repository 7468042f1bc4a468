"""What a person would miss in a folder of repositories, read without the code that is tested.

    before = read(folder)
    ...                                  # run what is tested
    assert lost(before, read(folder)) == []
    assert different(before, read(folder)) == []      # stricter, as after an undo

Held are commits and contents that a branch, a tag, a stash, HEAD, the index or an operation in
progress reaches; what is only in the work tree; what is staged; files that the user deleted;
branches, stashes, settings, hooks. Remote-tracking refs and the tool's own refs are none of the
user's, but they may keep what a branch held.
"""

import hashlib
import os
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/", "GIT_CONFIG_NOSYSTEM": "1"}
# Parts of a git folder that are read by git, or are the tool's or git's own notes.
_NOT_STATE = re.compile(
    r"(worktrees/[^/]+/)?(objects|refs|logs|modules|update-repos)/.*|worktrees/update-repos.*"
    r"|(worktrees/[^/]+/)?(packed-refs|index|HEAD|FETCH_HEAD|ORIG_HEAD|AUTO_MERGE|COMMIT_EDITMSG)"
    r"|(worktrees/[^/]+/)?(description|config|gc\.log|commondir|gitdir|[a-zA-Z]+\.lock)"
)
_NOT_THE_USERS = ("refs/remotes/", "refs/update-repos/")

File = tuple[str, str]  # Mode and blob, as a tree has them.


class Checkout(NamedTuple):
    """One work tree; paths of files are relative to it."""

    head: str  # The content of HEAD.
    tree: dict[str, File]  # The files of HEAD's commit.
    index: dict[tuple[str, str], tuple[str, ...]]  # By path and stage: flag, mode and blob.
    files: dict[str, File]  # On disk.


class Store(NamedTuple):
    """One git folder: of a repository, or of a submodule, checked out or not."""

    refs: dict[str, str]
    stashes: list[str]
    state: dict[str, bytes]  # Operations in progress, hooks, info/.
    settings: set[str]
    held: frozenset[str]  # Objects that the user's refs, HEADs, indexes and stashes reach.
    kept: frozenset[str]  # Objects that all refs reach.


class Holdings(NamedTuple):
    """All that is below a folder; `now == before` if nothing is different."""

    checkouts: dict[str, Checkout]
    stores: dict[str, Store]

    def __eq__(self, before: object) -> bool:
        return isinstance(before, Holdings) and not different(before, self)


def read(root: Path) -> Holdings:
    """Reads all repositories below a folder."""
    places, stores = {}, {}
    for top, folders, files in os.walk(root):
        folders[:] = sorted(folders)
        if ".git" in (*folders, *files):
            git_dir = _git_dir(Path(top))
            if git_dir is not None:
                places[top] = git_dir
        folders[:] = [name for name in folders if name != ".git"]
    checkouts = {top: _checkout(Path(top), git_dir, [*places]) for top, git_dir in places.items()}
    heads: dict[Path, list[str]] = {}
    for top, git_dir in places.items():
        common = (
            git_dir / (git_dir / "commondir").read_text().strip()
            if (git_dir / "commondir").exists()
            else git_dir
        )
        blobs = [entry[2] for entry in checkouts[top].index.values() if entry[1] != "160000"]
        heads.setdefault(common.resolve(), []).extend([*blobs, _git(git_dir, "rev-parse", "HEAD")])
    for common in [*heads]:
        for head in common.glob("modules/**/HEAD"):
            if (head.parent / "objects").is_dir():
                heads.setdefault(head.parent, [_git(head.parent, "rev-parse", "HEAD")])
    for common, held in heads.items():
        stores[os.path.relpath(common, root)] = _store(common, held)
    return Holdings({os.path.relpath(top, root): one for top, one in checkouts.items()}, stores)


def _git_dir(top: Path) -> Path | None:
    inside = top / ".git"
    if inside.is_file():
        inside = top / inside.read_text().removeprefix("gitdir:").strip()
    return inside.resolve() if (inside / "HEAD").is_file() else None


def _git(git_dir: Path, *words: str, text: str = "") -> str:
    where = (f"--git-dir={git_dir}", f"--work-tree={git_dir}")
    command = ["git", "-c", "safe.directory=*", *where, *words]
    done = subprocess.run(command, env=_ENVIRON, input=text.encode(), capture_output=True)
    return os.fsdecode(done.stdout).removesuffix("\n")


def _checkout(top: Path, git_dir: Path, places: list[str]) -> Checkout:
    tree, index = {}, {}
    for entry in _git(git_dir, "ls-tree", "-r", "-z", "HEAD").split("\0")[:-1]:
        about, _, path = entry.partition("\t")
        tree[path] = (about.split()[0], about.split()[2])
    for entry in _git(git_dir, "ls-files", "-s", "-v", "-z").split("\0")[:-1]:
        about, _, path = entry.partition("\t")
        flag, mode, blob, stage = about.split()
        index[path, stage] = (flag, mode, blob)
    head = (git_dir / "HEAD").read_text().strip()
    return Checkout(head, tree, index, dict(_files(top, places)))


def _files(top: Path, places: list[str]) -> Iterator[tuple[str, File]]:
    for folder, folders, names in os.walk(top):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        inner = [name for name in folders if os.path.join(folder, name) in places]
        folders[:] = [name for name in folders if name not in (".git", *links, *inner)]
        for name in (*names, *links):
            file = Path(folder, name)
            if name != ".git":
                yield os.path.relpath(file, top), _file(file)


def _file(file: Path) -> File:
    mode = file.lstat().st_mode
    if stat.S_ISLNK(mode):
        kind, data = "120000", os.fsencode(os.readlink(file))
    elif stat.S_ISREG(mode):
        kind, data = "100755" if mode & stat.S_IXUSR else "100644", file.read_bytes()
    else:
        kind, data = "special", b""
    return kind, hashlib.sha1(b"blob %d\0%s" % (len(data), data)).hexdigest()


def _store(common: Path, heads: list[str]) -> Store:
    form = "--format=%(refname) %(objectname) %(symref)"
    lines = [line.split(" ") for line in _git(common, "for-each-ref", form).split("\n") if line]
    refs = {name: symref or value for name, value, symref in lines}
    commits = {name: value for name, value, _ in lines}
    stashes = _git(common, "log", "-g", "--format=%H", "refs/stash", "--").split()
    files = [Path(top, name) for top, _, names in os.walk(common) for name in names]
    named = {os.path.relpath(file, common): file for file in files}
    state = {n: f.read_bytes() for n, f in named.items() if not _NOT_STATE.fullmatch(n)}
    in_progress = [f for n, data in state.items() for f in re.findall(rb"\b[0-9a-f]{40}\b", data)]
    roots = [*heads, *stashes, *map(bytes.decode, in_progress)]
    users = [value for name, value in commits.items() if not name.startswith(_NOT_THE_USERS)]
    settings = set(_git(common, "config", "--file", str(common / "config"), "--list").split("\n"))
    # Where the work tree is, and what .gitmodules gives, may change with it.
    settings = {s for s in settings if not re.match(r"core\.worktree=|submodule\..*\.active=", s)}
    held = _reached(common, [*roots, *users])
    return Store(
        refs, stashes, state, settings, held, _reached(common, [*roots, *commits.values()])
    )


def _reached(common: Path, roots: list[str]) -> frozenset[str]:
    known = _git(common, "cat-file", "--batch-check", text="\n".join(roots)).split("\n")
    there = [line.split()[0] for line in known if line and not line.endswith("missing")]
    if not there:
        return frozenset()
    words = ("rev-list", "--objects", "--no-object-names", "--stdin")
    return frozenset(_git(common, *words, text="\n".join(there)).split("\n"))


def lost(before: Holdings, after: Holdings) -> list[str]:
    """What was held and is not any more, in words."""
    found = [*_lost_files(before, after)]
    kept = frozenset().union(*(store.kept for store in after.stores.values()))
    for name, was in before.stores.items():
        now = after.stores.get(name)
        if now is None:
            found.append(f"the git folder {name} is gone")
            continue
        users = [ref for ref in was.refs if not ref.startswith(_NOT_THE_USERS)]
        found += [f"{name}: {ref} is gone" for ref in users if ref not in now.refs]
        found += [f"{name}: the object {one} is gone" for one in sorted(was.held - kept)]
        if now.stashes != was.stashes:
            found.append(f"{name}: stashes were {was.stashes}, are {now.stashes}")
        changed = [file for file, data in was.state.items() if now.state.get(file) != data]
        found += [f"{name}: {file} has changed" for file in changed]
        found += [f"{name}: the setting {s} is gone" for s in sorted(was.settings - now.settings)]
    return found


def _lost_files(before: Holdings, after: Holdings) -> Iterator[str]:
    now = {
        os.path.normpath(os.path.join(top, path)): file
        for top, checkout in after.checkouts.items()
        for path, file in checkout.files.items()
    }
    known = {
        os.path.normpath(os.path.join(top, path))
        for top, checkout in before.checkouts.items()
        for path in checkout.files
    }
    for top, was in before.checkouts.items():
        for path, file in was.files.items():
            place = os.path.normpath(os.path.join(top, path))
            if was.tree.get(path) != file and now.get(place) != file:
                yield f"the file {place} was {file}, is {now.get(place)}"
        for path in was.tree.keys() - was.files.keys():
            place = os.path.normpath(os.path.join(top, path))
            if was.tree[path][0] != "160000" and place in now and place not in known:
                flag = was.index.get((path, "0"), ("",))[0]
                if flag != "S":
                    yield f"the file {place} was deleted, and is there again"
        index = after.checkouts[top].index if top in after.checkouts else {}
        for key, entry in was.index.items():
            is_staged = was.tree.get(key[0]) != entry[1:]
            if is_staged and entry[1] != "160000" and index.get(key) != entry:
                yield f"{top}: {key} was staged as {entry}, is {index.get(key)}"
            if entry[0] != "H" and index.get(key, entry)[0] != entry[0]:
                yield f"{top}: {key} had the flag {entry[0]}"
        staged = {path for path, _ in was.index}
        for path in was.tree.keys() - staged:
            if was.tree[path][0] != "160000" and (path, "0") in index:
                yield f"{top}: the staged deletion of {path} is gone"


def different(before: Holdings, after: Holdings) -> list[str]:
    """What is not as it was; remote-tracking refs do not count, nor git folders that are new."""
    was, now = _parts(before), _parts(after)
    counted = [key for key in {*was, *now} if key in was or key[0] in after.checkouts]
    return [
        f"{place}: {what} was {_short(one, other)}, is {_short(other, one)}"
        for place, what in sorted(counted)
        if (one := was.get((place, what))) != (other := now.get((place, what)))
    ]


def _parts(holdings: Holdings) -> dict[tuple[str, str], object]:
    """By place and kind, what has to be as it was."""
    found = {(x, what): v for x, c in holdings.checkouts.items() for what, v in c._asdict().items()}
    for name, store in holdings.stores.items():
        refs = {k: v for k, v in store.refs.items() if not k.startswith(_NOT_THE_USERS)}
        same = {key: getattr(store, key) for key in ("stashes", "state", "settings")}
        found |= {(name, what): value for what, value in {"refs": refs, **same}.items()}
    return found


def _short(value: object, other: object) -> object:
    """A value, without what is the same in the other one."""
    if isinstance(value, dict) and isinstance(other, dict):
        return {k: v for k, v in value.items() if other.get(k, "") != v}
    if isinstance(value, set) and isinstance(other, set):
        return value - other
    return value
