"""Submodules follow their repository after HEAD has moved.

What is to follow is written to state.json before HEAD moves (`expect`), and `follow` takes it from
there, so an interrupted run is continued by the next one. Submodules move recursively, several at
once, and never over local changes. Each keeps its old commit under refs/update-repos/<run>/ in its
own git folder before it moves.
"""

import threading
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scripts.repos import git, inspect, journal, layout, move, network, obstacles
from scripts.repos.model import LocalWork, Settings

_Pending = Mapping[str, str | None]


def recorded(path: Path, commit: str = "HEAD") -> dict[str, tuple[str, str]]:
    """Submodules of a commit: path to name in .gitmodules and recorded commit."""
    names = {value: name for name, value in _modules(path, commit, "path").items()}
    if not names:
        return {}
    found = {}
    tree = git.ask(path, "--literal-pathspecs", "ls-tree", "-z", commit, "--", *names)
    for entry in tree.split("\0"):
        about, _, place = entry.partition("\t")
        if about.startswith("160000 "):
            found[place] = (names[place], about.split()[2])
    return found


def _modules(path: Path, commit: str, key: str) -> dict[str, str]:
    """The values of a key in the .gitmodules of a commit, by name of the submodule."""
    listed = git.run(path, "config", "--blob", f"{commit}:.gitmodules", "--list", "-z")
    pairs = [entry.partition("\n") for entry in listed.out.split("\0")]
    first, last = "submodule.", f".{key}"
    is_ours = [name.startswith(first) and name.endswith(last) for name, _, _ in pairs]
    return {
        pair[0][len(first) : -len(last)]: pair[2]
        for pair, ours in zip(pairs, is_ours, strict=True)
        if ours
    }


def find_obstacles(
    path: Path,
    old: str,
    new: str,
    local: LocalWork,
    ignore_case: bool = False,
    emptied: Collection[str] = (),
    undoing: bool = False,
) -> obstacles.Obstacles:
    """As `obstacles.find`; with submodules that get another path, which git would set up twice."""
    found = obstacles.find(
        *(path, old, new, local), ignore_case=ignore_case, emptied=emptied, undoing=undoing
    )
    places = {name: place for place, (name, _) in recorded(path, new).items()}
    moved = [
        (place, f"moves to {places[name]}; git submodule deinit it first")
        for place, (name, _) in recorded(path, old).items()
        if places.get(name, place) != place and is_there(path / place)
    ]
    return found._replace(submodules=(*found.submodules, *moved))


def is_there(place: Path) -> bool:
    """Whether a submodule is checked out."""
    return (place / ".git").exists()


def expected(path: Path, old: str, new: str) -> tuple[dict[str, str | None], list[str]]:
    """Submodules that have to follow from one commit to another, and those that are gone.

    The first by path, with the commit that each has now: None for one that has to be cloned.
    The folders of the others stay.
    """
    before, after = recorded(path, old), recorded(path, new)
    # Where the user left out some, new ones are not wanted either.
    all_there = all(is_there(path / place) for place in before)
    found: dict[str, str | None] = {}
    for place, recording in after.items():
        if is_there(path / place):
            if before.get(place) != recording:
                found[place] = git.commit(path / place, "HEAD")
        elif all_there and place not in before:
            found[place] = None
    gone = [place for place in before if place not in after and is_there(path / place)]
    return found, gone


def waiting(path: Path, pending: _Pending) -> dict[str, str | None]:
    """Those of the pending submodules that nobody has moved or removed since."""
    found = {}
    for name, old in pending.items():
        outer = _outer(path, name)
        records = recorded(path / outer) if is_there(path / outer) else {}
        inner = name[len(outer) + 1 :] if outer else name
        if inner not in records:
            continue
        now = git.commit(path / name, "HEAD") if is_there(path / name) else None
        if now == old and now != records[inner][1]:
            found[name] = old
    return found


def _outer(path: Path, name: str) -> str:
    """The submodule that another one is in; empty at the top."""
    parts = name.split("/")
    above = ["/".join(parts[:i]) for i in range(len(parts) - 1, 0, -1)]
    return next((folder for folder in above if is_there(path / folder)), "")


class Followers:
    """The submodules of one repository that still have to follow."""

    def __init__(self, record: journal.Journal, settings: Settings, pending: _Pending):
        """Takes over what an earlier run left behind (`pending`)."""
        self.path, self.record, self.settings = record.path, record, settings
        self.pending = dict(pending)
        self._guard = threading.Lock()

    def expect(self, place: str, submodules: _Pending) -> None:
        """Writes that submodules of `place` have to follow; empty for the repository itself."""
        with self._guard:
            for name, old in submodules.items():
                self.pending.setdefault(f"{place}/{name}" if place else name, old)
            journal.set_pending(self.record.git_dir, self.pending)

    def forget(self, *names: str) -> None:
        """Writes that submodules need not follow any more."""
        with self._guard:
            for name in names:
                self.pending.pop(name, None)
            journal.set_pending(self.record.git_dir, self.pending)

    def follow(self) -> list[str]:
        """Moves all that are pending; returns what could not be done, in words."""
        return self._follow("")

    def _follow(self, place: str) -> list[str]:
        """Moves the pending submodules of one repository, and those in them."""
        path = self.path / place
        records = recorded(path)
        prefix = f"{place}/" if place else ""
        names = [name for name in records if self._concerns(prefix + name)]
        settings = _updates(path) if names else {}
        addresses = _modules(path, "HEAD", "url") if names else {}
        new_ones = [name for name in names if not is_there(path / name)]
        if new_ones:
            git.change(path, "--literal-pathspecs", "submodule", "init", "--", *new_ones)

        def one(name: str) -> list[str]:
            full, (key, commit) = prefix + name, records[name]
            try:
                if not is_there(path / name):
                    self._clone(path, name, full, commit)
                    return []
                configured, address = settings.get(key, ""), addresses.get(key, "")
                problem = self._move(path / name, full, commit, configured, address)
                return [f"submodule {full}: {problem}"] if problem else self._follow(full)
            except (git.GitError, network.Unreachable, OSError) as error:
                return [f"submodule {full}: {error}"]

        with ThreadPoolExecutor(self.settings.jobs) as pool:
            return [problem for found in pool.map(one, names) for problem in found]

    def _concerns(self, full: str) -> bool:
        return any(name == full or name.startswith(f"{full}/") for name in self.pending)

    def _clone(self, path: Path, name: str, full: str, commit: str) -> None:
        self.record.note("submodule", path=str(path / name), old=None, new=commit, branch=None)
        # A submodule of that name may have been here before.
        old = layout.git_dir(path) / "modules" / recorded(path)[name][0]
        if (old / "HEAD").exists():
            head = git.commit(old, "HEAD")
            journal.keep_refs(old, self.record.run, [journal.Move("HEAD", head, commit)])
        words = ("submodule", "update", "--init", "--recursive", "--progress", "--", name)
        network.call(path, self.settings, "--literal-pathspecs", *words)
        self.forget(full)

    def _move(self, place: Path, full: str, new: str, configured: str, address: str) -> str:
        """Moves a submodule, unless it is `configured` otherwise; returns what hinders."""
        inner = {n[len(full) + 1 :]: c for n, c in self.pending.items() if n.startswith(f"{full}/")}
        before = inspect.checkout(place, pending=inner)
        old = before.head or ""
        if configured not in ("", "checkout"):
            return f"submodule.{full}.update is {configured}"
        if old == new:
            self.forget(full)
            return ""
        problem = before.local._replace(untracked=()).words()
        if problem:
            return problem
        self._fetch(place, new, address)
        found = find_obstacles(place, old, new, before.local)
        if found.files or found.submodules:
            return f"in the way: {', '.join(found.files or [name for name, _ in found.submodules])}"
        expecting, _ = expected(place, old, new)
        added = {f"{full}/{name}" for name in expecting} - set(self.pending)
        self.expect(full, expecting)
        journal.keep_refs(place, self.record.run, [journal.Move("HEAD", old, new)])
        self.record.note("submodule", path=str(place), old=old, new=new, branch=before.branch)
        words = ("checkout", "--quiet", "--no-overwrite-ignore", "--detach", new)
        try:
            move.to(place, words, old, new)
        except git.GitError:
            self.forget(*added)
            raise
        self.forget(full)
        return ""

    def _fetch(self, place: Path, commit: str, address: str) -> None:
        """Fetches a commit into a submodule; its remote-tracking refs stay as they are.

        The address is the one in .gitmodules, which may have changed since the clone.
        """
        if git.known(place, commit):
            return
        depth = ["--depth=1"] if (layout.git_dir(place) / "shallow").exists() else []
        # A server may refuse to be asked for a commit by its name.
        branches = f"+refs/heads/*:{journal.PREFIX}/{self.record.run}/fetched/*"
        is_whole = address and not address.startswith((".", "-"))
        problem = network.Unreachable(f"{commit} is not in origin", refused=True)
        for remote in ("origin", address) if is_whole else ("origin",):
            for wanted in (commit, branches):
                try:
                    network.fetch_commit(place, remote, wanted, self.settings, *depth)
                except network.Unreachable as error:
                    problem = error
                if git.known(place, commit):
                    return
                if not problem.refused:
                    break
        raise problem


def _updates(path: Path) -> dict[str, str]:
    """How submodules are configured to be updated, by name, where that is configured."""
    found = {}
    for key, value in git.config(path):
        if key.startswith("submodule.") and key.endswith(".update"):
            found[key[len("submodule.") : -len(".update")]] = value
    return found


def is_pristine(place: Path) -> bool:
    """Whether a submodule and those in it hold nothing but their recorded commits' files."""
    listed = git.ask(
        place,
        *("status", "--porcelain", "--untracked-files=all", "--ignored", "--no-renames"),
        "--ignore-submodules=none",
    )
    inner = [place / name for name in recorded(place) if is_there(place / name)]
    return not listed and all(is_pristine(one) for one in inner)
