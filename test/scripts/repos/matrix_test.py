"""Every kind of local work against every kind of upstream change, judged from outside.

A cell is a clone with one piece of local work (a state), a server that has moved on (a change), and
the options of a run. Several cells are updated by one call of the tool, and then undone. checker.py
compares what was there before with what is there after:

  * nothing is lost;
  * the JSON and the exit code agree with what happened;
  * a clone with nothing in the way is updated, and its other files are those of the upstream;
  * `undo` restores refs, HEAD, index, settings and files.

The nightly set (`-m nightly`) covers all pairs in fewer cells than their product. Each
state meets each change of the same path in a cell of its own, and the options take turns; a renamed
file is a deleted one. Each state meets all changes of other files at once (the change `wide`).
Changes of other submodules (`wide-s`) cost ten times as much; the states that submodules could
disturb meet all of them at once. The everyday set is a third of these cells, with one for each
decision of the tool. More by a variable:

    UPDATE_REPOS_MATRIX=all python -m pytest test/scripts/repos/matrix_test.py         # all cells
    UPDATE_REPOS_MATRIX='d:to-file s:* plain' python -m pytest test/scripts/repos/matrix_test.py

A failure names its cells, with the command that runs each of them alone.
"""

import collections
import concurrent.futures
import dataclasses
import fnmatch
import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from test.scripts.repos.checker import differences, losses
from test.scripts.repos.scenes import CHANGES, STATES, Scenes, plain, point
from test.scripts.repos.snapshots import Checkout, Snapshot, snapshot
from test.scripts.repos.world import Ran, Repo, World

CHOSEN = os.environ.get("UPDATE_REPOS_MATRIX", "")

# Cells that one call of the tool updates, and calls that run at once.
_GROUP, _THREADS = 100, 2

OPTIONS = {
    "plain": (),
    "rebase": ("--rebase",),
    "merge": ("--merge",),
    "pinned": ("--pinned",),
    "to": ("--to=frozen.toml",),
    "plan": ("--plan",),
    "dry-run": ("--dry-run",),
}
# Runs whose clones are on a feature branch: elsewhere these options do nothing.
_ON_FEATURE_BRANCH = ("rebase", "merge")

# Changes that stop the update of a clone whose submodule is checked out.
_KINDS_OF_SUBMODULES = ("s:to-file", "s:to-symlink", "s:to-dir")

# Changes that happen at once, by what the paths of each end in: of files, and of submodules.
_WIDE: dict[str, dict[str, str]] = {"wide": {}, "wide-s": {}}
for _name in CHANGES:
    if _name not in _KINDS_OF_SUBMODULES:
        _is_submodule = _name[0] == "s" or _name.endswith("submodule")
        _WIDE["wide-s" if _is_submodule else "wide"][f"-{plain(_name)}"] = _name

# States that meet `wide-s` every day: what moves submodules, or reads what git says of them.
_BESIDE_SUBMODULES = (
    *("-:clean", "-:topic", "f:sparse", "s:unstaged", "s:branch", "s:git-folder-branch"),
    "s:deinit",
)

# States in which the checked-out branch stays whatever the change is.
_STAYS = {
    *("-:ahead", "-:detached", "-:detached-ahead", "-:topic", "-:main-elsewhere", "-:locked"),
    *("-:merging", "-:rebasing", "-:picking", "-:bisecting", "f:commit", "f:topic"),
    # git takes it for a fault of the repository.
    "s:to-symlink",
    # It changes .gitmodules, and so does upstream.
    "s:rm",
}


# git makes no submodule of a folder that holds files of the user: undo names them instead.
_STAYS_UPDATED = {
    (state, change)
    for state in ("s:deinit-with-files", "s:deinit-ignored", "s:to-dir")
    for change in ("s:delete", "s:rename")
}

# git takes a submodule outside of a sparse checkout for changed: undo leaves it, with a note.
_STAYS_CLONED = ("f:sparse", "f:to-submodule")


# Changes that are a deletion at the path of the states, and a new file where one state has one.
_RENAMES, _AT_NEW_PATH = ("f:rename", "f:case", "d:rename"), "f:renamed-as-theirs"


class Cell(NamedTuple):
    """One clone, its server, and a run."""

    state: str
    change: str
    option: str

    @property
    def wide(self) -> bool:
        return self.change in _WIDE

    @property
    def is_fetched(self) -> bool:
        """Whether the clone has the commits of its server before the run."""
        return not self.wide and self.option not in ("plan", "dry-run")

    @property
    def base(self) -> str:
        """The server that it is a clone of."""
        return f"{self.change}-base" if self.wide else "base"

    @property
    def branch(self) -> str:
        """The branch that is checked out at first."""
        return "feature" if self.option in _ON_FEATURE_BRANCH else "main"

    @property
    def template(self) -> str:
        """Names the clone that it begins with."""
        return plain(f"{self.state} {self.base} {self.branch}")

    def __str__(self) -> str:
        return " ".join(self)


# States with a decision that depends on the change: they meet all changes every day.
_EVERY_CHANGE = (
    *("f:commit", "f:topic", "f:sparse", "f:renamed-as-theirs"),
    *("s:deinit", "s:deinit-with-files"),
)


def _everyday() -> Iterator[Cell]:
    """One cell of each kind: a state meets one of the changes, and every fifth one all others."""
    by_state: dict[str, list[Cell]] = {}
    for cell in dict.fromkeys(_nightly()):
        by_state.setdefault(cell.state, []).append(cell)
    for number, (state, cells) in enumerate(by_state.items()):
        same = [cell for cell in cells if cell.change[0] == state[0] and not cell.wide]
        if state in _EVERY_CHANGE or not same:
            yield from cells
            continue
        yield same[number % len(same)]
        yield from (cell for cell in same if cell.change == "s:bump")
        if number % 5 == 0:
            yield from (cell for cell in cells if cell.wide)


def _nightly() -> Iterator[Cell]:
    turns = itertools.cycle(["plain", "rebase", "to", "pinned", "plain", "merge"])
    for state in STATES:
        for change in CHANGES:
            is_deletion = change in _RENAMES and state != _AT_NEW_PATH
            if state[0] == change[0] and not is_deletion:
                yield Cell(state, change, next(turns))
        yield Cell(state, "wide", next(turns))
    for change in CHANGES:
        yield Cell("-:clean", change, "plain")
    for state in ("-:clean", "-:topic", "f:unstaged", "s:unstaged"):
        for change in ("wide", "f:modify", "s:to-file"):
            yield from (Cell(state, change, option) for option in OPTIONS)
    for state in _BESIDE_SUBMODULES:
        yield Cell(state, "wide-s", next(turns))


_IS_NIGHTLY = os.environ.get("NIGHTLY_TESTS") == "1"
pytestmark = [pytest.mark.nightly] if _IS_NIGHTLY else []


def _cells() -> list[Cell]:
    full = itertools.starmap(Cell, itertools.product(STATES, [*CHANGES, *_WIDE], OPTIONS))
    if not CHOSEN:
        return list(dict.fromkeys(_nightly() if _IS_NIGHTLY else _everyday()))
    return [cell for cell in full if CHOSEN == "all" or fnmatch.fnmatch(str(cell), CHOSEN)]


CELLS = _cells()


class Place:
    """The servers, and the clones that cells are copies of."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.scenes = Scenes(folder)
        self.scenes.base("base", {})
        for name, changes in _WIDE.items():
            self.scenes.base(f"{name}-base", changes)
        self.tips: dict[str, tuple[str, str]] = {}
        for cell in {cell.change: cell for cell in CELLS}.values():
            name = cell.change
            server = self.scenes.move_on(name, cell.base, _WIDE.get(name, {"": name}))
            # The tip is one commit further than what is pinned.
            self.tips[name] = server.head, server.commit("last")
        self.uses = collections.Counter(cell.template for cell in CELLS)
        for base, branch in sorted({(cell.base, cell.branch) for cell in CELLS}):
            clone = folder / "clones" / f"{base}-{branch}"
            self.scenes.clone(base, clone)
            if branch != "main":
                self.scenes.shell(clone, f"git switch -q -c {branch}; commit on-{branch}")
        for cell in {cell.template: cell for cell in CELLS}.values():
            clone = folder / "clones" / f"{cell.base}-{cell.branch}"
            path = folder / "templates" / cell.template / "repo"
            shutil.copytree(clone, path, symlinks=True)
            self.scenes.shell(path, STATES[cell.state])

    def take(self, cell: Cell, folder: Path) -> Repo:
        """A clone in its state, of the server with its change."""
        template = self.folder / "templates" / cell.template
        if self.uses[cell.template] == 1:
            template.rename(folder)
        else:
            subprocess.run(["cp", "-a", template, folder], check=True)
        base, server = self.scenes.server(cell.base), self.scenes.server(cell.change)
        point(folder / "repo/.git/config", base, server)
        linked = [*folder.glob("repo/.git/**/worktrees/*/gitdir"), *folder.glob("linked/.git")]
        for file in linked:
            point(file, template, folder)
        if cell.is_fetched:
            # As after an earlier fetch: the run and its undo make half as many calls of git.
            objects = folder / "repo/.git/objects"
            subprocess.run(["cp", "-alf", f"{server / '.git/objects'}/.", objects], check=True)
            ref = folder / "repo/.git/refs/remotes/origin/main"
            ref.parent.mkdir(parents=True, exist_ok=True)
            ref.write_text(self.tips[cell.change][1] + "\n")
        return self.scenes.world.repo(folder / "repo")


class Group:
    """Cells that one call of the tool updates."""

    def __init__(self, place: Place, cells: Sequence[Cell], folder: Path):
        self.place, self.cells, self.option = place, cells, cells[0].option
        self.world = World(folder)
        self.repos = [place.take(cell, folder / f"c{n}") for n, cell in enumerate(cells)]
        self.names = [f"c{n}" for n in range(len(cells))]
        for name, repo, cell in zip(self.names, self.repos, cells, strict=True):
            upstream = [f"file://{place.scenes.server(cell.change)}"]
            self.world.table[name] = {"path": str(repo.path), "upstream": upstream}
        if self.option == "pinned":
            self._pin()
        if self.option == "to":
            tips = [place.tips[cell.change][1] for cell in cells]
            self.world.frozen(**dict(zip(self.names, tips, strict=True)))

    def _pin(self) -> None:
        server, clone = self.world.pair("pinning")
        for name, cell in zip(self.names, self.cells, strict=True):
            server.write(name, self.place.tips[cell.change][0] + "\n")
        server.git("add", ".")
        server.git("commit", "-q", "-m", "pins")
        clone.git("pull", "-q")
        self.world.table["pinning"]["pins"] = {name: name for name in self.names}

    def _snapshots(self) -> list[Snapshot]:
        return [snapshot(repo.path.parent) for repo in self.repos]

    def run(self) -> dict[Cell, list[str]]:
        """What is wrong with each cell."""
        before = self._snapshots()
        ran = self.world.run(*OPTIONS[self.option])
        after = self._snapshots()
        wrong = {
            cell: self._judge(cell, repo, ran.one(name), was, now)
            for cell, repo, name, was, now in zip(
                self.cells, self.repos, self.names, before, after, strict=True
            )
        }
        wrong[self.cells[0]] += _judge_code(ran)
        if self.option == "dry-run":
            return wrong
        undone = self.world.run("undo")
        # 2: there was nothing to undo.
        reports = (
            {one["name"]: one for one in undone.json["repositories"]} if undone.code != 2 else {}
        )
        again = self._snapshots()
        for name, cell, *states in zip(self.names, self.cells, before, after, again, strict=True):
            wrong[cell] += self._judge_undo(cell, reports.get(name), *states)
        return wrong

    def _judge_undo(
        self,
        cell: Cell,
        report: dict[str, Any] | None,
        was: Snapshot,
        now: Snapshot,
        then: Snapshot,
    ) -> list[str]:
        if (
            report
            and (cell.state, cell.change) in _STAYS_UPDATED
            and "in the way" in report["reason"]
        ):
            was = now
        undone = report is not None and report["status"] == "undone"
        found = losses(was, then)
        if (cell.state, cell.change) != _STAYS_CLONED:
            found += differences(was, then, tracking=undone)
        if report and found:
            found.append(f"reported: {report['status']}, {report['reason']}")
        return [f"after undo: {words}" for words in found]

    def _judge(
        self, cell: Cell, repo: Repo, report: dict[str, Any], was: Snapshot, now: Snapshot
    ) -> list[str]:
        if "repo/moved" in now.checkouts and "repo/s" in was.checkouts:
            was = _renamed(was)
        wrong = [*losses(was, now), *self._judge_status(cell, repo, report, was, now)]
        return [*wrong, f"reported: {report['status']}, {report['reason']}"] if wrong else []

    def _judge_status(
        self, cell: Cell, repo: Repo, report: dict[str, Any], was: Snapshot, now: Snapshot
    ) -> Iterator[str]:
        status, old, new = report["status"], was.checkouts["repo"], now.checkouts["repo"]
        target = self.place.tips[cell.change][self.option != "pinned"]
        if status not in ("planned", "failed") and (report["old"], report["new"]) != (
            old.commit,
            new.commit,
        ):
            yield f"reported: {report['old']} to {report['new']}, is: {old.commit} to {new.commit}"
        if status == "updated":
            # Beside another branch it is the default branch alone that is updated.
            places = {new.commit, now.stores[new.store].refs.get("refs/heads/main")}
            contained = target in places or target in repo.git("rev-list", "HEAD").split()
            moved = was.stores[old.store].refs != now.stores[new.store].refs
            if not contained or not (moved or was != now):
                yield f"HEAD is {new.commit}, the upstream {target}"
            yield from _judge_files(was, now)
        elif status in ("skipped", "current", "planned"):
            yield from differences(was, now, tracking=self.option == "dry-run")
        elif status == "kept":
            if differences(was, now, tracking=False) and old.commit != new.commit:
                yield "HEAD has moved"
        elif status != "failed" or "submodule s: in the way" not in report["reason"]:
            # What is in the way in a submodule is known when its new commit is fetched.
            yield "an unexpected status"
        acting = self.option not in ("plan", "dry-run")
        clean = cell.state == "-:clean" and cell.change not in _KINDS_OF_SUBMODULES
        free = clean or (cell.wide and cell.state not in _STAYS)
        if acting and free and status != "updated":
            yield "nothing is in the way, so it has to be updated"
        if acting and clean:
            yield from _judge_submodules(now)


def _renamed(was: Snapshot) -> Snapshot:
    """The snapshot with the submodule s at the path to which the tool moves it."""

    def place(name: str) -> str:
        return re.sub(r"^repo/s(?=/|$)", "repo/moved", name)

    files = {place(name): file for name, file in was.files.items()}
    checkouts = {
        place(name): dataclasses.replace(checkout, store=place(checkout.store))
        for name, checkout in was.checkouts.items()
    }
    stores = {place(name): store for name, store in was.stores.items()}
    return dataclasses.replace(was, files=files, checkouts=checkouts, stores=stores)


def _judge_files(was: Snapshot, now: Snapshot) -> Iterator[str]:
    """After an update only what was local before differs from what HEAD has."""
    for name, checkout in now.checkouts.items():
        before = _local(was.checkouts[name]) if name in was.checkouts else set()
        for path in sorted(_local(checkout) - before):
            yield f"{name}/{path} is not as HEAD has it, and was no local change"


def _local(checkout: Checkout) -> set[str]:
    """Paths that differ from HEAD in the index or in the work tree."""
    changed = {path for (path, _), entry in checkout.staged.items() if entry.flag != "S"}
    return {*checkout.own, *checkout.deleted, *changed}


def _judge_submodules(now: Snapshot) -> Iterator[str]:
    for path, (mode, commit) in now.checkouts["repo"].tree.items():
        inner = now.checkouts.get(f"repo/{path}")
        if mode == "160000" and (inner is None or inner.commit != commit):
            yield f"submodule {path} is at {inner and inner.commit}, not at {commit}"


def _judge_code(ran: Ran) -> list[str]:
    """Whether the exit code agrees with what is reported of the repositories."""
    statuses = {one["status"] for one in ran.json["repositories"]}
    bad = bool(statuses & {"skipped", "failed", "missing"})
    if ran.code == 1 if bad else ran.code == 0 or (ran.code == 1 and "kept" in statuses):
        return []
    return [f"exit code {ran.code} with {sorted(statuses)}: {ran.err}"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("matrix"))


@pytest.mark.parametrize("option", [o for o in OPTIONS if any(c.option == o for c in CELLS)])
def test_nothing_is_lost_and_the_report_is_true(place: Place, option: str):
    cells = [cell for cell in CELLS if cell.option == option]
    groups = [cells[start : start + _GROUP] for start in range(0, len(cells), _GROUP)]

    def run(number: int) -> dict[Cell, list[str]]:
        folder = place.folder / f"{option}-{number}"
        wrong = Group(place, groups[number], folder).run()
        shutil.rmtree(folder)
        return wrong

    with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
        results = list(pool.map(run, range(len(groups))))
    wrong = {cell: words for result in results for cell, words in result.items() if words}
    lines = [f"{len(wrong)} of {len(cells)} cells:"]
    for cell, words in wrong.items():
        lines += [f"{cell}:", *(f"    {line}" for line in words)]
        lines += [
            f"    UPDATE_REPOS_MATRIX='{cell}' python -m pytest test/scripts/repos/matrix_test.py"
        ]
    assert not wrong, "\n".join(lines)
