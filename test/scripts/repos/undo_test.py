"""`undo` restores all that a run changed, and touches nothing that a person did since."""

import json

import pytest

from test.scripts.repos.world import World


def test_undo_restores_all_of_a_run_also_what_has_left_the_table(world: World):
    pairs = [world.pair(name) for name in "ab"]
    for server, _ in pairs:
        server.commit()
    olds = [clone.head for _, clone in pairs]
    assert world.run().code == 0
    del world.table["b"]
    ran = world.run("--config", str(world.write_table()), "undo")
    assert [r["status"] for r in ran.json["repositories"]] == ["undone", "undone"]
    assert (ran.code, [clone.head for _, clone in pairs]) == (0, olds)


def test_undo_names_a_run_and_the_list_has_what_moved(world: World):
    server, clone = world.pair()
    heads, runs = [clone.head], []
    for _ in range(2):
        heads.append(server.commit())
        runs.append(world.run().json["run"])
    listed = world.run("undo", "--list").json["runs"]
    assert [(r["run"], r["state"]) for r in listed] == [(run, "update") for run in runs[::-1]]
    assert listed[1]["moves"] == [{"ref": "refs/heads/main", "old": heads[0], "new": heads[1]}]
    assert runs[0] in world.run("undo", "--list", json=False).out
    assert (world.run("undo", runs[1]).code, clone.head) == (0, heads[1])
    assert (world.run("undo").code, clone.head) == (0, heads[0])
    assert world.run("undo").code == 2


@pytest.mark.nightly
def test_an_undo_can_be_undone_by_its_name(world: World):
    server, clone = world.pair()
    server.commit()
    world.run()
    after = clone.everything()
    world.run("undo")
    runs = world.run("undo", "--list").json["runs"]
    (undo,) = [run["run"] for run in runs if run["state"] == "undo"]
    assert (world.run("undo", undo).code, clone.everything()) == (0, after)


def test_undo_leaves_a_branch_that_has_moved_since(world: World):
    server, clone = world.pair()
    server.commit()
    world.run()
    mine = clone.commit("mine")
    ran = world.run("undo")
    assert (ran.code, clone.head, "has moved since" in ran.one()["reason"]) == (1, mine, True)


@pytest.mark.parametrize("hidden", ["", "exclude file; "])
def test_undo_leaves_local_work_that_is_in_the_way(world: World, hidden: str):
    server, clone = world.pair(files={"file": "theirs\n"})
    server.git("rm", "-q", "file")
    server.git("commit", "-q", "-m", "remove")
    world.run()
    clone.shell(f"{hidden}echo precious > file")
    before = clone.everything()
    ran = world.run("undo")
    assert (ran.code, clone.everything()) == (1, before)
    assert "in the way: file" in ran.one()["reason"]


@pytest.mark.nightly
def test_undo_moves_a_branch_that_is_not_checked_out_any_more(world: World):
    server, clone = world.pair()
    old = clone.head
    server.commit()
    world.run()
    clone.git("switch", "-q", "-c", "feature")
    assert world.run("undo").code == 0
    assert (clone.git("rev-parse", "main"), clone.branch) == (old, "feature")


@pytest.mark.nightly
def test_undo_does_not_move_a_branch_that_is_rebased(world: World):
    server, clone = world.pair()
    server.commit("p")
    server.commit("q")
    assert world.run().code == 0
    clone.git("-c", "sequence.editor=sed -i 1s/pick/edit/", "rebase", "-q", "-i", "HEAD~1")
    old = clone.git("rev-parse", "main")
    ran = world.run("undo")
    assert (ran.code, clone.git("rev-parse", "main")) == (1, old)
    assert ran.one()["reason"] == "rebase in progress"


@pytest.mark.nightly
def test_old_runs_are_forgotten_by_count_except_those_of_other_worktrees(world: World):
    server, clone = world.pair()
    tree = world.repo(clone.path.parent / "tree")
    clone.git("worktree", "add", "-q", "-b", "topic", str(tree.path))
    world.table["b"] = {**world.table["a"], "path": str(tree.path)}
    world.settings["keep_runs"] = 2
    server.commit()
    runs = [world.run("b", "--rebase").json["run"]]
    for _ in range(3):
        server.commit()
        runs.append(world.run("a").json["run"])
    left = {runs[0], *runs[2:]}
    assert {ref.split("/")[2] for ref in clone.kept()} == left
    assert {run["run"] for run in world.run("undo", "--list").json["runs"]} == left


_DAMAGES: tuple[str | dict[str, object], ...] = (
    *("", "{", "[]", "{}", '{"schema": "x"}', "\0\xff"),
    # Values of a wrong kind, and the record of another version.
    *({"peers": peers} for peers in (None, [1], "abc")),
    *({"changes": {"a": 1}}, {"changes": [{"ref": 3}]}, {"schema": "update-repos-run/1"}),
)


@pytest.mark.nightly
def test_damaged_records_and_repositories_are_named_and_the_others_are_undone(world: World):
    pairs = {f"a{number}": world.pair(f"a{number}") for number in range(len(_DAMAGES))}
    (server, sound), (other, broken) = world.pair("sound"), world.pair("broken")
    old = sound.head
    for changed in (*(server for server, _ in pairs.values()), server, other):
        changed.commit()
    run = world.run().json["run"]
    for damage, (_, clone) in zip(_DAMAGES, pairs.values(), strict=True):
        record = clone.path / ".git/update-repos" / f"{run}.json"
        if isinstance(damage, dict):
            damage = json.dumps({**json.loads(record.read_text()), **damage})
        record.write_text(damage)
        record.with_name("state.json").write_text(damage)
    broken.write(".git/HEAD", "")
    assert {r["state"] for r in world.run("undo", "--list").json["runs"]} == {"damaged", "update"}
    ran = world.run("undo")
    assert (ran.code, sound.head) == (1, old)
    assert "does not accept it as a repository" in ran.one("broken")["reason"]
    for name in pairs:
        one = ran.one(name)
        said = one["status"], "is damaged" in one["reason"], one["branch"]
        assert said == ("skipped", True, "main")
