"""Nothing is lost, whatever repositories are like and whenever the tool is killed.

Hypothesis makes a repository with submodules by random steps, clones it, does local work in the
clone, lets the server move on, runs update_repos.py with random options, and kills it at a random
call of git. Then nothing that the user had is lost (holdings.py), and `undo`, which is killed and
repeated too, restores everything; or loses nothing of what the user has done since.

Each kind of local work is a case, with few examples: among random ones the rare kinds would hide
behind those at which the tool stops. The first example of a case is the simplest one: the server
changes the same path. What chance hits seldom are examples of their own: a kill at each call that
writes, and a submodule that git refuses, without local work that would stop the update before.

    python -m pytest test/scripts/repos/property_test.py -m nightly --hypothesis-seed=7   # others
    UPDATE_REPOS_EXAMPLES=20 python -m pytest test/scripts/repos/property_test.py

A failure prints its steps, and the seed.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import hypothesis
import pytest
from hypothesis import strategies as st

from bazel.pytest_plugin import mostly_nightly
from test.scripts.repos import holdings
from test.scripts.repos.world import World, wait_for_orphans

_EXAMPLES = int(os.environ.get("UPDATE_REPOS_EXAMPLES", 2))

# Both sides start with a file f, a folder d, a link l, and a submodule s with a submodule t.
_BASE = """
echo file > f; mkdir d; echo a > d/a; echo b > d/b; ln -s f l; echo '*.o' > .gitignore
submodule s
"""
# What happens to the server's repository, before it is cloned and after. The letter is the path.
_CHANGES = """
f: echo theirs > f
f: rm -rf f
f: git mv f moved
f: chmod +x f
f: rm -r f; mkdir f; echo theirs > f/x
f: rm -r f; ln -s theirs f
f: git rm -q f; submodule f
d: echo theirs > d/a
d: echo theirs > d/new
d: rm -r d
d: git mv d moved
d: rm -r d; echo theirs > d
d: rm -r d; ln -s theirs d
d: git rm -qr d; submodule d
l: ln -sfn theirs l
l: rm l; mkdir l; echo theirs > l/x
s: git -C s pull -q origin main
s: git -C s pull -q origin main
s: git rm -qf s
s: git mv s moved
s: git rm -qf s; echo theirs > s
s: git rm -qf s; mkdir s; echo theirs > s/new
n: echo theirs > n
n: mkdir n; echo theirs > n/x
n: submodule n
n: hostile n
-: printf '*.o\\n/own\\n/d\\n/n\\n' > .gitignore
-: git reset -q --soft HEAD~1; git commit -qm rewritten --allow-empty
"""
# What a person does in the clone.
_WORK = """
-: commit own
-: git switch -q --detach; commit own
-: git switch -q -c topic; commit own
-: conflict merge
-: conflict rebase
-: git bisect start
-: touch .git/index.lock
-: echo mine | tee f > own; git stash -qu
-: git worktree add -q -b linked ../linked; cd ../linked; commit own; echo 2 > f
-: echo mine > own; exclude own
-: git config branch.main.mergeOptions --autostash; echo mine > own; git add own
-: git config branch.main.mergeOptions '--squash --no-commit'; echo mine > own
f: git switch -q -c topic; commit f
f: commit f
f: echo mine > f; git add f
f: echo mine > f
f: echo staged > f; git add f; echo mine > f
f: echo theirs > f; git add f
f: chmod +x f
f: rm f
f: git rm -q f
f: rm f; mkdir f; echo mine > f/x.o
f: git mv f own
f: git update-index --assume-unchanged f; echo mine > f
f: git update-index --skip-worktree f; echo mine > f
f: git sparse-checkout set --no-cone '/*' '!/f'
d: echo mine > d/a
d: git update-index --assume-unchanged d/a; echo mine > d/a
d: rm -r d; echo mine > d
d: rm -r d; mkdir own; echo mine > own/a; ln -s own d
d: rm -r d; embed d
d: echo mine > d/new
d: exclude new; echo mine > d/new
d: echo mine > d/x.o
d: embed d/own
d: mkfifo d/own
l: rm l; echo mine > l
l: rm l; mkdir l; echo mine > l/x
s: echo mine > s/f
s: echo mine > s/f; git -C s add f
s: echo mine > s/own
s: echo mine > s/x.o; echo '*.o' >> .git/modules/s/info/exclude
s: echo mine > s/new
s: cd s; exclude new; echo mine > new
s: cd s; commit own
s: cd s; git switch -qc mine; commit own; git checkout -q --detach HEAD~1
s: cd s; echo mine > f; git stash -q
s: echo mine > s/t/f
s: cd s/t; commit own
s: git submodule -q deinit s
s: git submodule -q deinit s; echo mine > s/new
s: rm -r s; echo mine > s
s: own_git_folder s
n: echo mine > n
n: echo theirs > n
n: mkdir n; echo mine > n/x
n: exclude n; echo mine > n
n: exclude n; mkdir n; echo mine | tee n/x > n/own
n: embed n
n: exclude n; embed n
n: echo mine > n; git add n
"""

# Calls git as asked for, and ends its caller before or after the call with the given number, among
# those that have the words $among.
_KILLER = """
case " $* " in *$among*) ;; *) exec $git "$@" ;; esac
n=$(wc -c <"$count")
printf x >>"$count"
[ "$n" = "$at" ] && [ "$when" = before ] && { kill -9 $PPID; exit 1; }
[ "$n" = "$at" ] && [ "$when" = after ] && kill -9 $PPID
[ "$n" = "$at" ] && [ "$when" = interrupted ] && kill -INT $PPID
"""

Kill = tuple[int | None, str, str]
_NO_KILL: Kill = (None, "after", "")
_OPTIONS = ["", "", "", "--rebase", "--merge", "--plan", "--dry-run", "--rebase --plan"]
_DAILY = ("f: git update-index --assume-unchanged f; echo mine > f", "s: cd s; commit own")


def _lines(steps: str) -> list[str]:
    return steps.strip().split("\n")


class Example(NamedTuple):
    """What happens; `past` is before the clone, `news` after it, `later` before the undo."""

    news: Sequence[str]
    work: Sequence[str] = ()
    options: Sequence[str] = ()
    kill: Kill = _NO_KILL
    past: Sequence[str] = ()
    is_shallow: bool = False
    later: Sequence[str] = ()
    kill_undo: Kill = _NO_KILL


# Two branches, a submodule that is on a branch, and one in it have to move.
_MOVING = Example(
    ["f: echo theirs > f", "s: git -C s pull -q origin main"],
    ["-: git switch -q -c topic", "s: git -C s switch -q -c mine"],
    ["--rebase"],
)
_WRITES = {"checkout": 2, "fetch": 1, "merge": 1, "update-ref": 6}  # How often each is called.
_RARE = {
    f"{when} {word} {n}": _MOVING._replace(kill=(n, when, f" {word} "))
    for when in ("after", "before")
    for word, count in _WRITES.items()
    for n in range(count)
} | {"hostile": Example(["n: hostile n"])}
_DAILY_RARE = ("hostile", "after checkout 0")


@st.composite
def _examples(draw: st.DrawFn, work: str) -> Example:
    path = work[0] if work[0] != "-" else draw(st.sampled_from("fdlsn"))

    # Steps at one path, most of them: elsewhere they would not meet each other.
    def near(listed: str) -> st.SearchStrategy[str]:
        return st.sampled_from([step for step in _lines(listed) if step[0] == path])

    def at_most_one(listed: str) -> list[str]:
        anywhere = st.sampled_from(_lines(listed))
        return draw(st.lists(st.one_of(near(listed), anywhere), max_size=1))

    number = st.one_of(st.none(), st.none(), st.integers(0, 60))
    kill = st.tuples(number, st.sampled_from(["before", "after", "interrupted"]), st.just(""))
    return Example(
        past=at_most_one(_CHANGES),
        is_shallow=draw(st.sampled_from([False, False, False, True])),
        work=[work, *at_most_one(_WORK)],
        news=[draw(near(_CHANGES)), *at_most_one(_CHANGES)],
        options=draw(st.sampled_from(_OPTIONS)).split(),
        kill=draw(kill),
        later=at_most_one(_WORK),
        kill_undo=draw(kill),
    )


class Servers:
    """Repositories to clone, made once; examples change copies of them."""

    def __init__(self, folder: Path):
        self.folder, world = folder, World(folder)
        self.environ = world.environ
        leaf, inner = (world.server(name) for name in ("leaf", "inner"))
        for server in (leaf, inner):
            server.commit("f", "old\n")
            server.commit("f", "new\n")
        inner.add_submodule(leaf, "t")
        leaf.commit("late", "theirs\n")
        inner.write("new", "theirs\n")
        inner.git("add", "new")
        inner.bump("t")
        self.url = f"file://{inner.path}"
        self.top = world.server("top")
        self.shell(world, self.top.path, _BASE)
        self.shell(world, self.top.path, "git add -Af; git commit -qm base")

    def shell(self, world: World, place: Path, script: str, *, check: bool = True) -> None:
        world.repo(place).shell(script, check=check, INNER=self.url)

    def build(self, example: Example) -> World:
        """A clone after local work, and its server after changes."""
        shutil.rmtree(self.folder / "example", ignore_errors=True)
        world = World(self.folder / "example")
        server, clone = world.folder / "server", world.folder / "a" / "repo"
        shutil.copytree(self.top.path, server, symlinks=True)
        self.change(world, server, example.past)
        url, depth = f"file://{server}", ["--depth=1"] if example.is_shallow else []
        words = ["git", "clone", "-q", "--recursive", *depth, url, str(clone)]
        subprocess.run(words, env=world.environ, capture_output=True, check=True)
        self.work(world, example.work)
        self.change(world, server, example.news)
        world.table["a"] = {"path": str(clone), "upstream": [url]}
        return world

    def work(self, world: World, steps: Sequence[str]) -> None:
        for step in steps:
            self.shell(world, world.folder / "a" / "repo", step[3:], check=False)

    def change(self, world: World, server: Path, steps: Sequence[str]) -> None:
        for step in steps:
            self.shell(world, server, step[3:], check=False)
            self.shell(world, server, "git add -Af; git commit -qm change", check=False)

    def run(self, world: World, kill: Kill, *words: str) -> int:
        """Runs the tool, ended at a call of git; its exit code."""
        at, when, among = kill
        count = world.folder / "count"
        count.write_text("")
        environ = world.wrapped_git(
            f'at={at} when={when} among="{among}" count="{count}"\n{_KILLER}'
        )
        code = world.run(*words, **environ).code
        wait_for_orphans(world.folder)
        return code


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Servers:
    return Servers(tmp_path_factory.mktemp("property"))


@pytest.mark.parametrize("work", mostly_nightly(_lines(_WORK), _DAILY))
@hypothesis.settings(
    max_examples=_EXAMPLES,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)
@hypothesis.given(data=st.data())
def test_nothing_is_lost_and_undo_restores_everything(
    servers: Servers, pytestconfig: pytest.Config, work: str, data: st.DataObject
):
    hypothesis.note(f"--hypothesis-seed={pytestconfig.getoption('hypothesis_seed')}")
    _check(servers, data.draw(_examples(work)))


@pytest.mark.parametrize("name", mostly_nightly([*_RARE], _DAILY_RARE))
def test_nothing_is_lost_where_chance_looks_seldom(servers: Servers, name: str):
    _check(servers, _RARE[name])


def _check(servers: Servers, example: Example) -> None:
    world = servers.build(example)
    before = holdings.read(world.folder / "a")

    code = servers.run(world, example.kill, *example.options)

    assert code in (0, 1, 3, 130, -9)
    after = holdings.read(world.folder / "a")
    assert holdings.lost(before, after) == []
    # What git would refuse half-way is refused before.
    if "--dry-run" in example.options or (code == 1 and not example.work):
        assert holdings.different(before, after) == []

    servers.work(world, example.later)
    updated = holdings.read(world.folder / "a")
    undone = servers.run(world, example.kill_undo, "undo")

    after = holdings.read(world.folder / "a")
    assert holdings.lost(updated, after) == []
    if undone in (-9, 130):
        undone = servers.run(world, (None, ""), "undo")
        after = holdings.read(world.folder / "a")
        assert holdings.lost(updated, after) == []
    if not example.later:
        assert holdings.lost(before, after) == []
        # 2: there was nothing to undo, or the one that was killed had done it all.
        assert undone in (0, 2)
        assert holdings.different(before, after) == []
