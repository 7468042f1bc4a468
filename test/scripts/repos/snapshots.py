"""Takes snapshots of repositories on disk, for checker.py.

A snapshot covers a folder with everything below it: work trees, submodules, embedded repositories,
linked worktrees, and every git folder. It is read without the tool that is tested: objects from
`git cat-file --batch-all-objects`, the index from `git ls-files`, the rest from the files.
"""

import hashlib
import os
import re
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

# The tool's own records: recoverable from, and not the user's.
OWN_REFS, OWN_FILES = "refs/update-repos/", "update-repos"
# The reflog that has the stashes.
STASH = "logs/refs/stash"

# Parts of a git folder that hold objects, refs and caches; the snapshot has these in other ways.
_NOT_STATE = {
    *("objects", "refs", "packed-refs", "logs", "modules", "worktrees", "index", "HEAD", "gc.log"),
    *("FETCH_HEAD", "ORIG_HEAD", "AUTO_MERGE", "COMMIT_EDITMSG", "description", "branches"),
    *("index.lock", "HEAD.lock", "config.lock", "commondir", "gitdir", OWN_FILES),
}
_OBJECT_ID = re.compile(rb"\b[0-9a-f]{40}\b")
_ENVIRON = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
}


@dataclass(frozen=True)
class File:
    """One entry of a work tree; `blob` is the id that git would give its content."""

    kind: str
    mode: int
    blob: str

    @property
    def tracked_as(self) -> tuple[str, str]:
        """Mode and blob as a tree or an index would have them."""
        executable = self.kind == "file" and self.mode & stat.S_IXUSR
        modes = {"link": "120000", "file": "100755" if executable else "100644"}
        return modes.get(self.kind, self.kind), self.blob

    def __str__(self) -> str:
        return f"a {self.kind} of mode {self.mode:o} with blob {self.blob[:10]}"


@dataclass(frozen=True)
class Entry:
    """One entry of an index; `flag` is that of `git ls-files -v`."""

    flag: str
    mode: str
    blob: str
    stage: str


@dataclass(frozen=True)
class Store:
    """One git folder.

    Attributes:
      refs: full names and what they hold, also symbolic ones.
      logs: new values of each reflog, oldest first.
      state: other files: operations under way, hooks, info/.
      config: settings, one line each with its section.
      existing: ids of all objects.
      held: ids of objects that refs, HEAD, index, stashes or an operation under way reach.
      logged: ids of objects that only reflogs reach beside these.
    """

    refs: Mapping[str, str]
    logs: Mapping[str, tuple[str, ...]]
    state: Mapping[str, bytes]
    config: tuple[str, ...]
    existing: frozenset[str]
    held: frozenset[str]
    logged: frozenset[str]


@dataclass(frozen=True)
class Checkout:
    """One work tree; all paths are relative to the folder of the snapshot.

    Attributes:
      store: its git folder.
      head: content of HEAD.
      commit: what HEAD means; empty when there is none.
      index: path and stage to entry.
      tree: path to mode and id, of HEAD.
      own: paths with local content.
      deleted: tracked paths that are not there, or not the index's any more.
    """

    store: str
    head: str
    commit: str
    index: Mapping[tuple[str, str], Entry]
    tree: Mapping[str, tuple[str, str]]
    own: frozenset[str]
    deleted: frozenset[str]

    @property
    def staged(self) -> dict[tuple[str, str], Entry]:
        """Entries of the index that HEAD does not have."""
        return {
            key: entry
            for key, entry in self.index.items()
            if entry.flag != "H" or self.tree.get(key[0]) != (entry.mode, entry.blob)
        }


@dataclass(frozen=True)
class Snapshot:
    """Everything below a folder; `addresses` are those that .gitmodules files name."""

    files: Mapping[str, File]
    checkouts: Mapping[str, Checkout]
    stores: Mapping[str, Store]
    addresses: frozenset[str]

    @property
    def held(self) -> frozenset[str]:
        return frozenset().union(*(store.held for store in self.stores.values()))

    @property
    def logged(self) -> frozenset[str]:
        return self.held.union(*(store.logged for store in self.stores.values()))

    @property
    def existing(self) -> frozenset[str]:
        return frozenset().union(*(store.existing for store in self.stores.values()))


def snapshot(root: Path) -> Snapshot:
    """Reads a folder with all repositories in it, and linked worktrees outside."""
    return _Reader(root).read()


@dataclass
class _Objects:
    """All objects of a git folder, with what they refer to; trees with their entries."""

    links: dict[str, tuple[str, ...]] = field(default_factory=dict)
    trees: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    roots: dict[str, str] = field(default_factory=dict)

    def reach(self, start: Iterable[str]) -> frozenset[str]:
        found: set[str] = set()
        queue = [name for name in start if name in self.links]
        while queue:
            name = queue.pop()
            if name not in found:
                found.add(name)
                queue += [link for link in self.links[name] if link in self.links]
        return frozenset(found)

    def flat(self, tree: str, prefix: str = "") -> Iterator[tuple[str, tuple[str, str]]]:
        """Paths of a tree with all that is below."""
        for name, (mode, identity) in self.trees.get(tree, {}).items():
            if mode == "40000":
                yield from self.flat(identity, f"{prefix}{name}/")
            else:
                yield prefix + name, (mode, identity)


class _Reader:
    def __init__(self, root: Path):
        self.root = root.resolve()
        self.files: dict[str, File] = {}
        self.places: list[tuple[Path, Path]] = []  # work trees and their git folders
        self.folders: set[Path] = set()  # git folders that share nothing with another

    def read(self) -> Snapshot:
        self._walk(self.root)
        for folder in list(self.folders):
            self._find_worktrees(folder)
        objects = {folder: _read_objects(folder) for folder in self.folders}
        indexes = {place: _read_index(place[1]) for place in self.places}
        checkouts = {}
        for place, git_dir in self.places:
            common = _common(git_dir)
            found = self._checkout(
                place, git_dir, objects.get(common, _Objects()), indexes[place, git_dir]
            )
            checkouts[self._name(place)] = found
        stores = {}
        for folder in self.folders:
            blobs = [
                entry.blob
                for place in self.places
                if _common(place[1]) == folder
                for entry in indexes[place].values()
            ]
            stores[self._name(folder)] = _read_store(folder, objects[folder], blobs)
        settings = [
            line for place, _ in self.places for line in _read_config(place / ".gitmodules")
        ]
        addresses = {line.partition(" url = ")[2] for line in settings if " url = " in line}
        return Snapshot(self.files, checkouts, stores, frozenset(addresses))

    def _name(self, path: Path) -> str:
        return os.path.relpath(path, self.root)

    def _walk(self, folder: Path) -> None:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except PermissionError:
            self.files[self._name(folder)] = File("unreadable folder", 0, "")
            return
        for entry in entries:
            path = Path(entry.path)
            if entry.name == ".git":
                self._found_repository(folder, path)
            elif entry.is_dir(follow_symlinks=False):
                self._walk(path)
            else:
                self.files[self._name(path)] = _read_file(path)

    def _found_repository(self, folder: Path, git: Path) -> None:
        git_dir = git
        if git.is_file():
            git_dir = Path(os.path.normpath(folder / git.read_text()[len("gitdir: ") :].strip()))
            self.files[self._name(git)] = _read_file(git)
        if not (git_dir / "HEAD").is_file():
            return
        git_dir = git_dir.resolve()
        self.places.append((folder, git_dir))
        self._add(_common(git_dir))

    def _add(self, folder: Path) -> None:
        """Adds a git folder with those of its submodules, checked out or not."""
        if folder in self.folders:
            return
        self.folders.add(folder)
        for head in sorted(folder.glob("modules/**/HEAD")):
            if (head.parent / "objects").is_dir():
                self._add(head.parent.resolve())

    def _find_worktrees(self, folder: Path) -> None:
        for file in sorted(folder.glob("worktrees/*/gitdir")):
            place = Path(file.read_text().strip()).parent
            if place.is_dir() and place not in {path for path, _ in self.places}:
                self._walk(place)

    def _checkout(
        self, place: Path, git_dir: Path, objects: _Objects, index: dict[tuple[str, str], Entry]
    ) -> Checkout:
        prefix = "" if place == self.root else self._name(place) + "/"
        head = (git_dir / "HEAD").read_text().strip()
        refs = _read_refs(_common(git_dir))
        commit = refs.get(head.removeprefix("ref: "), "") if head.startswith("ref: ") else head
        tree = dict(objects.flat(objects.roots.get(commit, "")))
        inner = [self._name(other) + "/" for other, _ in self.places if other != place]
        inner = [name for name in inner if name.startswith(prefix)]
        own, there = set(), set()
        for name, file in self.files.items():
            if not name.startswith(prefix) or any(name.startswith(other) for other in inner):
                continue
            path = name[len(prefix) :]
            there.add(path)
            if path != ".git" and tree.get(path) != file.tracked_as:
                own.add(path)
        there |= {name.rstrip("/")[len(prefix) :] for name in inner}
        tracked = {path for path, (mode, _) in tree.items() if mode != "160000"}
        hidden = {path for (path, _), entry in index.items() if entry.flag in "Ss"}
        deleted = (tracked - there - hidden) | (set(tree) - {path for path, _ in index})
        return Checkout(
            store=self._name(_common(git_dir)),
            head=head,
            commit=commit,
            index=index,
            tree=tree,
            own=frozenset(own),
            deleted=frozenset(deleted),
        )


def _common(git_dir: Path) -> Path:
    """The git folder that a worktree's one shares refs and objects with."""
    file = git_dir / "commondir"
    return (git_dir / file.read_text().strip()).resolve() if file.is_file() else git_dir


def _read_file(path: Path) -> File:
    about = path.lstat()
    mode = stat.S_IMODE(about.st_mode)
    if stat.S_ISLNK(about.st_mode):
        return File("link", 0o777, _blob(os.fsencode(os.readlink(path))))
    if not stat.S_ISREG(about.st_mode):
        return File("special file", mode, "")
    try:
        return File("file", mode, _blob(path.read_bytes()))
    except PermissionError:
        return File("unreadable file", mode, "")


def _blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%s" % (len(content), content)).hexdigest()


def _git(folder: Path, *words: str) -> bytes:
    command = ["git", "-c", "safe.directory=*", *words]
    done = subprocess.run(command, cwd=folder, env=_ENVIRON, capture_output=True, check=False)
    return done.stdout


def _names(folder: Path, below: str = "", skipped: Iterable[str] = ()) -> list[str]:
    """Paths of all files, sorted; what is named in `skipped` at the top is left out."""
    found = []
    for place, folders, names in os.walk(folder / below):
        prefix = os.path.relpath(place, folder) + "/" if place != str(folder) else ""
        if not prefix:
            folders[:] = [name for name in folders if name not in skipped]
        found += [prefix + name for name in names]
    return sorted(found)


def _read_objects(git_dir: Path) -> _Objects:
    # The names of object files say what is in them; of many copies one is read.
    key = tuple((name, (git_dir / name).stat().st_size) for name in _names(git_dir, "objects"))
    if (git_dir / "objects/info/alternates").exists() or key not in _OBJECTS:
        _OBJECTS[key] = _list_objects(git_dir)
    return _OBJECTS[key]


_OBJECTS: dict[tuple[tuple[str, int], ...], _Objects] = {}


def _list_objects(git_dir: Path) -> _Objects:
    words = ("cat-file", "--batch", "--batch-all-objects", "--unordered", "--buffer")
    # The work tree that core.worktree names may be gone.
    output = _git(git_dir, f"--git-dir={git_dir}", f"--work-tree={git_dir}", *words)
    objects, position = _Objects(), 0
    while position < len(output):
        end = output.index(b"\n", position)
        name, kind, size = output[position:end].decode().split(" ")[:3]
        content = output[end + 1 : end + 1 + int(size)]
        position = end + int(size) + 2
        objects.links[name] = ()
        if kind == "tree":
            objects.trees[name] = dict(_tree_entries(content))
            entries = objects.trees[name].values()
            objects.links[name] = tuple(link for mode, link in entries if mode != "160000")
        elif kind in ("commit", "tag"):
            header = content.partition(b"\n\n")[0].decode(errors="replace").split("\n")
            lines = [line.split(" ", 1) for line in header]
            links = [line[1] for line in lines if line[0] in ("tree", "parent", "object")]
            objects.links[name] = tuple(links)
            if kind == "commit":
                objects.roots[name] = links[0]
    return objects


def _tree_entries(content: bytes) -> Iterator[tuple[str, tuple[str, str]]]:
    while content:
        about, _, rest = content.partition(b"\0")
        mode, _, name = about.partition(b" ")
        yield os.fsdecode(name), (mode.decode(), rest[:20].hex())
        content = rest[20:]


def _read_index(git_dir: Path) -> dict[tuple[str, str], Entry]:
    file = git_dir / "index"
    content = file.read_bytes() if file.is_file() else b""
    if content not in _INDEXES:
        _INDEXES[content] = dict(_list_index(git_dir))
    return _INDEXES[content]


_INDEXES: dict[bytes, dict[tuple[str, str], Entry]] = {}


def _list_index(git_dir: Path) -> Iterator[tuple[tuple[str, str], Entry]]:
    words = (f"--git-dir={git_dir}", f"--work-tree={git_dir}", "ls-files", "-svz")
    for line in os.fsdecode(_git(git_dir, *words)).split("\0")[:-1]:
        about, _, path = line.partition("\t")
        flag, mode, blob, stage = about.split(" ")
        yield (path, stage), Entry(flag, mode, blob, stage)


def _read_refs(git_dir: Path) -> dict[str, str]:
    refs = {}
    packed = git_dir / "packed-refs"
    if packed.is_file():
        for line in packed.read_text(errors="surrogateescape").split("\n"):
            if line and line[0] not in "#^":
                value, _, name = line.partition(" ")
                refs[name] = value
    for name in _names(git_dir, "refs"):
        if not name.endswith(".lock"):
            refs[name] = (git_dir / name).read_text().strip()
    return refs


def _read_store(git_dir: Path, objects: _Objects, blobs: list[str]) -> Store:
    refs = _read_refs(git_dir)
    logs, state, heads = {}, {}, []
    for name in _names(git_dir, skipped=("objects", "modules")):
        file, parts = git_dir / name, name.split("/")
        if parts[0] == "worktrees" and len(parts) > 2:
            parts = parts[2:]
        if parts[0] == "logs":
            lines = file.read_bytes().decode(errors="surrogateescape").split("\n")
            logs[name] = tuple(line.split(" ")[1] for line in lines if line)
        elif parts[0] == "HEAD":
            heads.append(file.read_text().strip())
        elif parts[0] not in _NOT_STATE and name != "config":
            state[name] = file.read_bytes()
    under_way = [found.decode() for data in state.values() for found in _OBJECT_ID.findall(data)]
    held = objects.reach([*refs.values(), *heads, *blobs, *under_way, *logs.get(STASH, ())])
    original = git_dir / "ORIG_HEAD"
    logged = [name for log in logs.values() for name in log]
    logged += [original.read_text().strip()] if original.is_file() else []
    return Store(
        refs=refs,
        logs=logs,
        state=state,
        config=_read_config(git_dir / "config"),
        existing=frozenset(objects.links),
        held=held,
        logged=objects.reach(logged) - held,
    )


def _read_config(file: Path) -> tuple[str, ...]:
    lines, section = [], ""
    for line in file.read_text(errors="surrogateescape").split("\n") if file.is_file() else ():
        if line.startswith("["):
            section = line.strip()
        elif line.strip():
            lines.append(f"{section} {line.strip()}")
    return tuple(lines)
