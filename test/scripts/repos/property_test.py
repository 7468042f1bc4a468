"""Nothing is lost, whatever state a repository is in and whenever the tool is killed.

Hypothesis does local work in a clone by random steps, lets its server move on, runs update_repos.py
with random options, and kills or interrupts it at a random call of git. Then checker.py finds
nothing lost, and `undo`, which is killed and repeated too, restores everything.

    UPDATE_REPOS_EXAMPLES=500 .venv/bin/python -m pytest test/scripts/repos/property_test.py

tries new examples; without the variable there are a few, always the same, and more of them with
`-m nightly`. A failure prints the steps, and the seed to repeat it.
"""

import os
import shutil
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from test.scripts.repos.checker import differences, losses
from test.scripts.repos.scenes import CHANGES, STATES, Scenes, plain, point
from test.scripts.repos.snapshots import snapshot
from test.scripts.repos.world import World, wait_for_orphans

EXAMPLES = os.environ.get("UPDATE_REPOS_EXAMPLES")
_IS_NIGHTLY = os.environ.get("NIGHTLY_TESTS") == "1"
_FEW = 20 if _IS_NIGHTLY else 8
pytestmark = [pytest.mark.nightly] if _IS_NIGHTLY else []

# Calls git as asked for, and ends its caller before or after the call with the given number.
_KILLER = """
n=$(wc -c <"$count")
printf x >>"$count"
[ "$n" = "$at" ] && [ "$when" = before ] && { kill -9 $PPID; exit 1; }
[ "$n" = "$at" ] && [ "$when" = after ] && kill -9 $PPID
[ "$n" = "$at" ] && [ "$when" = interrupted ] && kill -INT $PPID
"""

# Beside the changes of the matrix.
_MORE_CHANGES = {"rewrite": "git reset -q --soft HEAD~1; git commit -qm rewritten --allow-empty"}
_SCRIPTS = {**CHANGES, **_MORE_CHANGES}

Kill = tuple[int | None, str]


class Place:
    """Servers and clones that are made once, and copied for every example."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.scenes = Scenes(folder)
        self.scenes.base("base", {})
        server = self.scenes.world.repo(self.scenes.server("base"))
        server.commit("README")
        self.scenes.clone("base", folder / "clones" / "full")
        self.scenes.clone("base", folder / "clones" / "shallow", "--depth=1")

    def example(self, kind: str, steps: list[str], news: list[str]) -> World:
        """A clone after local work, and its server after changes."""
        shutil.rmtree(self.folder / "example", ignore_errors=True)
        world = World(self.folder / "example")
        server, clone = world.folder / "server", world.folder / "a" / "repo"
        shutil.copytree(self.folder / "clones" / kind, clone, symlinks=True)
        shutil.copytree(self.scenes.server("base"), server, symlinks=True)
        point(clone / ".git/config", self.scenes.server("base"), server)
        for step in steps:
            self.scenes.shell(clone, STATES[step], check=False)
        for change in news:
            self.scenes.shell(server, _SCRIPTS[change], check=False)
            self.scenes.shell(server, f"git add -Af; git commit -qm {plain(change)}", check=False)
        world.table["a"] = {"path": str(clone), "upstream": [f"file://{server}"]}
        return world

    def run(self, world: World, kill: Kill, *words: str) -> int:
        """Runs the tool, ended at a call of git; its exit code."""
        at, when = kill
        count = world.folder / "count"
        count.write_text("")
        environ = world.wrapped_git(f'at={at} when={when} count="{count}"\n{_KILLER}')
        code = world.run(*words, **environ).code
        wait_for_orphans(world.folder)
        return code


_KILL = st.tuples(
    st.one_of(st.none(), st.integers(0, 60)), st.sampled_from(["before", "after", "interrupted"])
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("property"))


@hypothesis.settings(
    max_examples=int(EXAMPLES or _FEW),
    # New examples are tried only on request: others must not fail by chance.
    derandomize=EXAMPLES is None,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)
@hypothesis.given(
    kind=st.sampled_from(["full", "full", "full", "shallow"]),
    steps=st.lists(st.sampled_from(sorted(STATES)), max_size=4),
    news=st.lists(st.sampled_from(sorted(_SCRIPTS)), min_size=1, max_size=4),
    options=st.tuples(
        st.sampled_from(["", "", "--rebase", "--merge"]),
        st.sampled_from(["", "", "", "--plan", "--dry-run"]),
    ),
    kill=_KILL,
    kill_undo=_KILL,
)
def test_nothing_is_lost_and_undo_restores_everything(
    place: Place,
    kind: str,
    steps: list[str],
    news: list[str],
    options: tuple[str, ...],
    kill: Kill,
    kill_undo: Kill,
):
    world = place.example(kind, steps, news)
    before = snapshot(world.folder / "a")

    code = place.run(world, kill, *(word for word in options if word))

    assert code in (0, 1, 3, 130, -9)
    after = snapshot(world.folder / "a")
    assert losses(before, after) == []
    if "--dry-run" in options:
        assert differences(before, after) == []
        return

    undone = place.run(world, kill_undo, "undo")

    assert losses(before, snapshot(world.folder / "a")) == []
    if undone in (-9, 130):
        undone = place.run(world, (None, ""), "undo")
    # 2: there was nothing to undo but a fetch, or the one that was killed had done it all.
    assert undone in (0, 2)
    assert differences(before, snapshot(world.folder / "a"), tracking=undone == 0) == []
