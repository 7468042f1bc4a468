"""status, freeze, --to, --clone and -j."""

import shutil
import tomllib
from pathlib import Path

import pytest

from test.scripts.repos.nests import Nest
from test.scripts.repos.world import Repo, World, wait_for_orphans

_JOBS = pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.nightly), 2])


def test_status_is_one_table_that_changes_nothing_and_asks_no_server(world: World):
    server, clone = world.pair("a")
    world.pair("b")
    server.commit("README", "theirs\n")
    clone.git("fetch", "-q")
    clone.write("README", "mine\n")
    server.path.rename(server.path.with_name("gone"))
    before = clone.everything()
    ran = world.run("status", json=False)
    assert (ran.code, ran.err, clone.everything()) == (0, "", before)
    lines = ran.out.splitlines()
    assert len(lines) == 4
    assert lines[2].split()[:4] == ["a", "a", "main", "+0"]
    assert "1 unstaged" in lines[2]
    ran = world.run("status", "a")
    one = ran.one()
    assert (one["behind"], one["local"]["unstaged"], one["status"]) == (1, 1, "skipped")
    assert ran.json["exit_code"] == ran.code == 0


def test_status_of_a_missing_repository_needs_no_person(world: World):
    world.table["a"] = {"upstream": ["https://example.invalid/a.git"]}
    ran = world.run("status")
    assert (ran.code, ran.one()["status"]) == (0, "missing")


@pytest.fixture
def file(world: World) -> Path:
    return world.folder / "frozen.toml"


def test_what_is_frozen_is_checked_out_again_and_undo_goes_back(world: World, file: Path):
    server_a, a = world.pair("a")
    _, b = world.pair("b")
    old = [a.head, b.head]
    assert world.run("freeze", str(file)).code == 0
    new = server_a.commit("file", "new\n")
    assert world.run().code == 0
    before = [a.everything(), b.everything()]
    ran = world.run(f"--to={file}")
    assert (ran.code, [a.head, b.head]) == (0, old)
    assert [r["status"] for r in ran.json["repositories"]] == ["updated", "current"]
    # Branches stay where they are; a clone that is there already stays on its branch.
    assert (a.branch, a.git("rev-parse", "main"), b.branch) == ("HEAD", new, "main")
    assert not (a.path / "file").exists()
    assert world.run("undo").code == 0
    assert [a.everything(), b.everything()] == before


def test_an_undo_of_an_undo_goes_to_what_was_frozen(world: World, file: Path):
    server, clone = world.pair()
    assert world.run("freeze", str(file)).code == 0
    server.commit()
    assert world.run().code == 0
    assert world.run(f"--to={file}").code == 0
    frozen = clone.everything()
    assert world.run("undo").code == 0
    runs = world.run("undo", "--list").json["runs"]
    (own,) = [run["run"] for run in runs if run["state"] == "undo"]
    assert world.run("undo", own).code == 0
    assert clone.everything() == frozen


def test_a_frozen_commit_that_is_not_here_is_fetched(world: World):
    server, clone = world.pair()
    new = server.commit()
    server.commit()
    option = world.frozen(a=new)
    assert (world.run(option, "--plan").one()["new"], clone.branch) == (new, "main")
    assert world.run(option).code == 0
    assert clone.head == new


def test_a_frozen_commit_that_is_nowhere_is_named(world: World):
    _, clone = world.pair()
    before = clone.everything()
    ran = world.run(world.frozen(a="0" * 40))
    assert (ran.code, ran.one()["status"], clone.everything()) == (1, "skipped", before)
    assert "cannot be fetched" in ran.one()["reason"]


def test_submodules_go_to_what_was_frozen_with_their_repository(
    world: World, nest: Nest, file: Path
):
    old = nest.in_leaf.head
    assert world.run("freeze", str(file)).code == 0
    _, _, new = nest.advance()
    assert (world.run().code, nest.in_leaf.head) == (0, new)
    assert (world.run(f"--to={file}").code, nest.in_leaf.head) == (0, old)
    assert (world.run("undo").code, nest.in_leaf.head) == (0, new)
    assert nest.clone.git("status", "--porcelain") == ""


def test_own_commits_of_a_detached_head_are_not_left_behind(world: World, file: Path):
    _, clone = world.pair()
    assert world.run("freeze", str(file)).code == 0
    clone.git("switch", "-q", "--detach")
    mine = clone.commit("mine")
    ran = world.run(f"--to={file}")
    assert (ran.code, ran.one()["status"], clone.head) == (1, "skipped", mine)
    assert "on no branch" in ran.one()["reason"]


def test_freeze_reports_what_others_cannot_fetch(world: World, file: Path):
    _, clone = world.pair()
    clone.commit("mine")
    clone.write("README", "mine\n")
    ran = world.run("freeze", str(file))
    assert tomllib.loads(file.read_text())["repository"]["a"] == {"commit": clone.head}
    assert (ran.code, len(ran.one()["notes"])) == (0, 2)


def test_freeze_names_what_it_cannot_freeze(world: World, file: Path):
    _, clone = world.pair("a")
    world.table["b"] = {"upstream": ["https://example.invalid/b.git"]}
    assert world.run("freeze", str(file)).code == 1
    assert list(tomllib.loads(file.read_text())["repository"]) == ["a"]
    assert clone.path.exists()


def test_freeze_writes_over_its_own_files_alone(world: World, file: Path):
    world.pair()
    assert world.run("freeze", str(file)).code == 0
    assert world.run("freeze", str(file)).code == 0
    file.write_text("precious = true\n")
    ran = world.run("freeze", str(file))
    assert (ran.code, file.read_text()) == (2, "precious = true\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[repository.a]\ncommit = 'main'\n",
        'schema = "update-repos-freeze/1"\n[repository.a]\ncommit = "main"\n',
        f'schema = "update-repos-freeze/1"\n[repository.other]\ncommit = "{"1" * 40}"\n',
        'schema = "update-repos-freeze/1"\nrepository = 1\n',
    ],
)
def test_a_file_that_freeze_did_not_write_is_refused(world: World, file: Path, text: str):
    world.pair()
    file.write_text(text)
    assert world.run(f"--to={file}").code == 2


def _missing(world: World, name: str = "a", **keys: object) -> Repo:
    server = world.server(name)
    world.table[name] = {"upstream": [f"file://{server.path}"], "folders": [name], **keys}
    return server


def test_clone_clones_what_is_missing_with_its_submodules_and_undo_leaves_it(world: World):
    inner, server = world.server("inner"), _missing(world)
    server.add_submodule(inner, "inner")
    ran = world.run("--clone")
    clone = world.repo(world.folder / "src" / "a")
    assert (ran.code, ran.one()["status"], clone.head) == (0, "cloned", server.head)
    assert (clone.path / "inner" / "README").exists()
    assert sorted(path.name for path in clone.path.parent.iterdir()) == ["a", "project"]
    assert world.run().one()["status"] == "current"
    ran = world.run("undo")
    assert (ran.code, ran.one()["status"], clone.head) == (0, "kept", server.head)
    assert (clone.path / "inner" / "README").exists()


@pytest.mark.parametrize("option", ["--plan", "--dry-run"])
def test_a_plan_clones_nothing(world: World, option: str):
    _missing(world)
    ran = world.run("--clone", option)
    assert (ran.code, ran.one()["status"]) == (0, "planned")
    assert not (world.folder / "src" / "a").exists()


def test_clone_clones_one_into_another_in_the_order_of_dependencies(world: World):
    outer = _missing(world, "outer")
    inner = _missing(world, "inner", folders=["outer/inner"], depends=["outer"])
    assert world.run("--clone").code == 0
    src = world.folder / "src"
    assert world.repo(src / "outer").head == outer.head
    assert world.repo(src / "outer" / "inner").head == inner.head


def test_clone_overwrites_nothing(world: World):
    _missing(world)
    file = world.folder / "src" / "a" / "precious"
    file.parent.mkdir()
    file.write_text("mine\n")
    ran = world.run("--clone")
    assert (ran.code, ran.one()["status"], file.read_text()) == (1, "skipped", "mine\n")


def test_clone_leaves_nothing_behind_where_it_fails(world: World):
    server = _missing(world)
    server.path.rename(server.path.with_name("gone"))
    ran = world.run("--clone")
    assert (ran.code, ran.one()["status"]) == (3, "unreachable")
    assert [path.name for path in (world.folder / "src").iterdir()] == ["project"]


def test_clone_removes_what_one_that_was_killed_has_left(world: World):
    _missing(world)
    environ = world.wrapped_git('case "$*" in *" clone "*) kill -9 $PPID;; esac')
    assert world.run("--clone", **environ).code == -9
    wait_for_orphans(world.folder)
    assert any(path.name.startswith(".") for path in (world.folder / "src").iterdir())
    assert world.run("--clone").code == 0
    assert sorted(path.name for path in (world.folder / "src").iterdir()) == ["a", "project"]


# Counts the calls that run at the same time; each waits for a while.
_COUNTS = """\
touch {folder}/$$
for i in 1 2 3 4 5 6 7 8 9 10; do
    ls {folder} | wc -l >> {folder}.counts
    sleep 0.1
done
rm {folder}/$$
"""


def _most_calls_at_once(world: World, word: str, *options: str) -> int:
    folder = world.folder / "running"
    folder.mkdir()
    counts = _COUNTS.format(folder=folder)
    environ = world.wrapped_git(f'case "$*" in *" {word} "*)\n{counts};; esac')
    assert world.run(*options, **environ).code == 0
    return max(map(int, Path(f"{folder}.counts").read_text().split()))


@_JOBS
def test_no_more_repositories_are_cloned_at_once_than_jobs(world: World, jobs: int):
    for name in "abc":
        _missing(world, name)
    assert _most_calls_at_once(world, "clone", "--clone", f"-j{jobs}") == jobs


@_JOBS
def test_no_more_repositories_move_at_once_than_jobs(world: World, jobs: int):
    pairs = [world.pair(name) for name in "abc"]
    new = [server.commit() for server, _ in pairs]
    assert _most_calls_at_once(world, "merge", f"-j{jobs}") == jobs
    assert [clone.head for _, clone in pairs] == new


@_JOBS
def test_no_more_submodules_move_at_once_than_jobs(world: World, jobs: int):
    inner = world.server("inner")
    servers = [world.server(name) for name in "ab"]
    for server in servers:
        for path in ("one", "two"):
            server.add_submodule(inner, path)
        world.clone(server, server.path.name, "--recursive")
    inner.commit()
    for server in servers:
        server.git("submodule", "--quiet", "update", "--remote")
        server.git("commit", "-q", "-a", "-m", "move")
    assert _most_calls_at_once(world, "checkout", f"-j{jobs}") == jobs


def test_clone_takes_up_submodules_that_could_not_be_cloned(world: World):
    inner, server = world.server("inner"), _missing(world)
    server.add_submodule(inner, "inner")
    with inner.gone():
        assert world.run("--clone").one()["status"] == "failed"
    assert world.run().code == 0
    assert (world.folder / "src" / "a" / "inner" / "README").exists()


def test_clone_calls_no_other_host_than_the_upstreams(world: World):
    server = _missing(world)
    evil = world.server("evil")
    settings = f'[url "file://{evil.path}"]\n\tinsteadOf = file://{server.path}\n'
    with (world.home / ".gitconfig").open("a") as stream:
        stream.write(settings)
    ran = world.run("--clone")
    assert (ran.code, ran.one()["status"]) == (1, "skipped")
    assert "git rewrites" in ran.one()["reason"]
    assert not (world.folder / "src" / "a").exists()


def test_clone_clones_optional_repositories_only_when_they_are_named(world: World):
    _missing(world, optional=True)
    one = world.run("--clone").one()
    assert (one["status"], "--clone a clones it" in one["reason"]) == ("absent", True)
    assert world.run("--clone", "a").one()["status"] == "cloned"


def test_clone_checks_out_what_was_frozen(world: World, file: Path):
    server, clone = world.pair()
    old = clone.head
    world.table["a"] = {"upstream": world.table["a"]["upstream"], "folders": ["a"]}
    assert world.run("freeze", str(file)).code == 0
    server.commit()
    shutil.rmtree(clone.path)
    ran = world.run("--clone", f"--to={file}")
    assert (ran.code, ran.one()["status"], clone.head) == (0, "cloned", old)


def test_freeze_does_not_replace_a_file_by_one_that_names_less(world: World, file: Path):
    _, a = world.pair("a")
    world.pair("b")
    assert world.run("freeze", str(file)).code == 0
    before = file.read_text()
    a.write(".git/HEAD", "")
    assert world.run("freeze", str(file)).code == 1
    assert file.read_text() == before


@_JOBS
def test_no_more_servers_are_asked_at_once_than_jobs(world: World, jobs: int):
    for name in "abcd":
        world.pair(name)
    assert _most_calls_at_once(world, "ls-remote", f"-j{jobs}") == jobs


def test_the_old_commits_of_two_worktrees_are_kept(world: World):
    server = world.server("a")
    old = [server.head, server.commit()]
    clone = world.clone(server, "a")
    linked = clone.path.parent / "linked"
    clone.git("switch", "-q", "--detach", old[0])
    clone.git("worktree", "add", "-q", "--detach", str(linked), old[1])
    world.table["b"] = {**world.table["a"], "path": str(linked)}
    new = server.commit()
    assert world.run(world.frozen(a=new, b=new)).code == 0
    kept = clone.git("for-each-ref", "--format=%(objectname)", "refs/update-repos")
    assert set(kept.split()) >= set(old)
