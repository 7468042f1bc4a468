"""Submodules follow after the branch moved, recursively, and never over local changes."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from test.scripts.world import Repo, Template, World, wait_for_orphans


class Nest:
    """A repository with a submodule that has one itself: servers, and a clone of all."""

    def __init__(self, world: World):
        self.leaf = world.server("leaf")
        self.middle = world.server("middle")
        _add(self.middle, self.leaf, "leaf")
        self.top = world.server("a")
        _add(self.top, self.middle, "middle")
        self.clone = world.clone(self.top, "a", "--recursive")
        self.in_middle = world.repo(self.clone.path / "middle")
        self.in_leaf = world.repo(self.clone.path / "middle" / "leaf")

    def advance(self) -> tuple[str, str, str]:
        """New commits in all three, each recording the one below."""
        leaf = self.leaf.commit()
        middle = _bump(self.middle, "leaf")
        return _bump(self.top, "middle"), middle, leaf


def _add(outer: Repo, inner: Repo, path: str) -> None:
    outer.git("submodule", "--quiet", "add", f"file://{inner.path}", path)
    outer.git("commit", "-q", "-m", f"add {path}")


def _bump(outer: Repo, path: str) -> str:
    Repo(outer.path / path, outer.environ).git("pull", "-q", "--ff-only", "origin", "main")
    outer.git("commit", "-q", "-a", "-m", f"bump {path}")
    return outer.head


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template[Nest]:
    return Template(tmp_path_factory.mktemp("nest"), Nest)


@pytest.fixture
def built(template: Template[Nest]) -> tuple[World, Nest]:
    return template.copy()


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """That of the nest, where a test asks for one."""
    if "nest" in request.fixturenames:
        return request.getfixturevalue("built")[0]
    return World(tmp_path)


@pytest.fixture
def nest(built: tuple[World, Nest]) -> Nest:
    return built[1]


def test_submodules_follow_recursively(world: World, nest: Nest):
    new = nest.advance()
    assert world.run().code == 0
    assert (nest.clone.head, nest.in_middle.head, nest.in_leaf.head) == new
    assert nest.clone.git("status", "--porcelain") == ""


def test_undo_restores_submodules(world: World, nest: Nest):
    before = [repo.everything() for repo in (nest.clone, nest.in_middle, nest.in_leaf)]
    nest.advance()
    assert world.run().code == 0
    assert world.run("undo").code == 0
    assert [repo.everything() for repo in (nest.clone, nest.in_middle, nest.in_leaf)] == before


def test_undo_restores_the_branch_of_a_submodule(world: World, nest: Nest):
    nest.in_middle.git("switch", "-q", "main")
    nest.advance()
    assert world.run().code == 0
    assert nest.in_middle.branch == "HEAD"
    assert world.run("undo").code == 0
    assert nest.in_middle.branch == "main"


def test_a_hook_that_fails_in_a_submodule_stops_nothing(world: World, nest: Nest):
    new = nest.advance()
    git_dir = Path(nest.in_middle.git("rev-parse", "--absolute-git-dir"))
    hook = git_dir / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 2\n")
    hook.chmod(0o755)
    assert world.run().code == 0
    assert (nest.clone.head, nest.in_middle.head, nest.in_leaf.head) == new
    assert world.run("undo").code == 0


def test_a_checkout_that_fails_in_a_submodule_leaves_what_is_not_its_own(world: World, nest: Nest):
    nest.leaf.commit(".gitattributes", "*.bin filter=bad\n")
    nest.leaf.commit("added")
    nest.leaf.commit("file.bin")
    nest.advance()
    # As a person who works there at that moment.
    nest.in_leaf.git("config", "filter.bad.smudge", "echo mine > added; exit 1")
    nest.in_leaf.git("config", "filter.bad.required", "true")
    old = nest.in_leaf.head
    assert world.run().one()["status"] == "failed"
    assert (nest.in_leaf.head, nest.in_leaf.read("added")) == (old, "mine\n")


def test_the_old_commit_of_a_submodule_is_kept_in_it(world: World, nest: Nest):
    old = nest.in_leaf.head
    nest.advance()
    world.run()
    (kept,) = nest.in_leaf.kept()
    assert nest.in_leaf.git("rev-parse", kept) == old


def test_the_old_commits_of_submodules_are_forgotten_with_their_runs(world: World, nest: Nest):
    world.settings["keep_runs"] = 1
    for _ in range(2):
        nest.advance()
        assert world.run().code == 0
    kept = [ref for repo in (nest.clone, nest.in_middle, nest.in_leaf) for ref in repo.kept()]
    assert len({ref.split("/")[2] for ref in kept}) == 1


def test_a_new_submodule_is_cloned_with_what_is_in_it_and_undo_takes_it_away(
    world: World, nest: Nest
):
    before = nest.clone.everything()
    _add(nest.top, nest.middle, "second")
    assert world.run().code == 0
    assert (nest.clone.path / "second" / "leaf" / "README").exists()
    assert world.run("undo").code == 0
    assert nest.clone.everything() == before


@pytest.mark.parametrize("name", ["untracked", "ignored"])
def test_undo_leaves_a_new_submodule_in_which_a_person_works(world: World, nest: Nest, name: str):
    _add(nest.top, nest.leaf, "second")
    assert world.run().code == 0
    inner = world.repo(nest.clone.path / "second")
    Path(inner.git("rev-parse", "--absolute-git-dir"), "info", "exclude").write_text("ignored\n")
    inner.write(name, "mine\n")
    ran = world.run("undo")
    assert inner.read(name) == "mine\n"
    printed = [*ran.one()["notes"], ran.one()["reason"]]
    assert any("second" in words for words in printed)


def test_a_new_submodule_is_left_out_where_others_are(world: World):
    leaf, top = world.server("leaf"), world.server("a")
    _add(top, leaf, "first")
    clone = world.clone(top, "a")
    _add(top, leaf, "second")
    assert world.run().code == 0
    assert list((clone.path / "first").iterdir()) == []
    assert list((clone.path / "second").iterdir()) == []


def test_a_submodule_that_is_gone_upstream_stays_and_is_named(world: World, nest: Nest):
    nest.in_middle.write(".git-is-elsewhere")
    (nest.in_middle.path / ".git-is-elsewhere").unlink()
    nest.top.git("rm", "-q", "middle")
    nest.top.git("commit", "-q", "-m", "remove")
    ran = world.run()
    assert ran.one()["status"] == "updated"
    assert (nest.in_middle.path / "README").exists()
    assert any("its folder stays" in note for note in ran.one()["notes"])


def _changed(nest: Nest) -> None:
    nest.in_middle.write("README", "mine\n")


def _changed_below(nest: Nest) -> None:
    nest.in_leaf.write("README", "mine\n")


def _staged(nest: Nest) -> None:
    _changed(nest)
    nest.in_middle.git("add", "README")


def _unpushed(nest: Nest) -> None:
    nest.in_middle.commit("mine")


def _unpushed_below(nest: Nest) -> None:
    nest.in_leaf.commit("mine")


def _another_commit(nest: Nest) -> None:
    nest.in_middle.git("switch", "-q", "--detach", "HEAD~1")


def _bisect(nest: Nest) -> None:
    nest.in_middle.git("bisect", "start")


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (_changed, "submodule middle has changes"),
        (_changed_below, "submodule middle has changes"),
        (_staged, "submodule middle has changes"),
        (_unpushed, "submodule middle has unpushed commits"),
        (_unpushed_below, "submodule middle has changes"),
        (_another_commit, "is at another commit than recorded"),
        (_bisect, "submodule middle bisect in progress"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_local_work_in_a_submodule_stops_its_repository(
    world: World, nest: Nest, work: Callable[[Nest], None], reason: str
):
    work(nest)
    head = nest.clone.head
    before = [repo.everything() for repo in (nest.in_middle, nest.in_leaf)]
    nest.advance()
    ran = world.run()
    assert (ran.code, ran.one()["status"], nest.clone.head) == (1, "skipped", head)
    assert reason in ran.one()["reason"]
    assert [repo.everything() for repo in (nest.in_middle, nest.in_leaf)] == before


def _make_folder_in(nest: Nest) -> None:
    nest.top.write("middle/file", "now a folder\n")


def _make_link_in(nest: Nest) -> None:
    (nest.top.path / "middle").symlink_to("README")


def _make_file_in(nest: Nest) -> None:
    nest.top.write("middle", "now a file\n")


@pytest.mark.parametrize(
    "replace", [_make_file_in, _make_link_in, _make_folder_in], ids=lambda x: x.__name__
)
@pytest.mark.parametrize("holds", ["ignored", "untracked", "embedded"])
def test_a_submodule_that_becomes_something_else_is_not_removed_with_what_is_in_it(
    world: World, nest: Nest, replace: Callable[[Nest], None], holds: str
):
    if holds == "ignored":
        git_dir = Path(nest.in_middle.git("rev-parse", "--absolute-git-dir"))
        (git_dir / "info" / "exclude").write_text("precious\n")
    if holds == "embedded":
        _embed(nest)
    else:
        nest.in_middle.write("precious", "mine\n")
    nest.top.git("rm", "-q", "-r", "middle")
    replace(nest)
    nest.top.git("add", "-A")
    nest.top.git("commit", "-q", "-m", "no submodule any more")
    before, files = nest.in_middle.everything(), nest.clone.files()
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "skipped")
    assert "middle" in ran.one()["files"][0]
    assert (nest.in_middle.everything(), nest.clone.files()) == (before, files)


def _embed(nest: Nest) -> None:
    """Gives the submodule a .git folder of its own, with a branch that is nowhere else."""
    git_dir = Path(nest.in_middle.git("rev-parse", "--absolute-git-dir"))
    (nest.in_middle.path / ".git").unlink()
    git_dir.rename(nest.in_middle.path / ".git")
    nest.clone.git("config", "--file", "middle/.git/config", "--unset", "core.worktree")
    nest.in_leaf.write(".git", "gitdir: ../.git/modules/leaf\n")
    leaf = "middle/.git/modules/leaf/config"
    nest.clone.git("config", "--file", leaf, "core.worktree", "../../../leaf")
    nest.in_middle.git("switch", "-q", "-c", "mine")
    nest.in_middle.commit("mine")
    nest.in_middle.git("switch", "-q", "--detach", "mine~1")


def test_untracked_files_in_a_submodule_stay_beside_its_move(world: World, nest: Nest):
    nest.in_middle.write("mine", "mine\n")
    new = nest.advance()
    assert world.run().code == 0
    assert (nest.in_middle.head, nest.in_middle.read("mine")) == (new[1], "mine\n")


@pytest.mark.parametrize("work", [_changed, _changed_below, _staged, _unpushed, _bisect])
def test_local_work_in_a_submodule_that_upstream_does_not_touch_is_no_hindrance(
    world: World, nest: Nest, work: Callable[[Nest], None]
):
    work(nest)
    before = [repo.everything() for repo in (nest.in_middle, nest.in_leaf)]
    new = nest.top.commit("unrelated")
    assert (world.run().code, nest.clone.head) == (0, new)
    assert [repo.everything() for repo in (nest.in_middle, nest.in_leaf)] == before


def test_ignored_files_in_a_submodule_are_not_overwritten(world: World, nest: Nest):
    git_dir = nest.in_middle.git("rev-parse", "--absolute-git-dir")
    Path(git_dir, "info", "exclude").write_text("theirs\n")
    nest.in_middle.write("theirs", "precious\n")
    nest.middle.commit("theirs")
    _bump(nest.top, "middle")
    ran = world.run()
    assert (ran.code, nest.in_middle.read("theirs")) == (1, "precious\n")
    assert "submodule middle: in the way: theirs" in ran.one()["reason"]


def test_a_submodule_set_to_another_kind_of_update_is_left_alone(world: World, nest: Nest):
    nest.clone.git("config", "submodule.middle.update", "none")
    old = nest.in_middle.head
    nest.advance()
    ran = world.run()
    assert nest.in_middle.head == old
    assert "submodule.middle.update is none" in ran.one()["reason"]


def test_submodules_that_could_not_be_fetched_are_taken_up_by_the_next_run(
    world: World, nest: Nest
):
    new = nest.advance()
    nest.middle.path.rename(nest.middle.path.with_name("away"))
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "failed")
    assert ran.one()["remedy"] == ["scripts/update_repos.py a"]
    nest.middle.path.with_name("away").rename(nest.middle.path)
    assert world.run().code == 0
    assert (nest.clone.head, nest.in_middle.head, nest.in_leaf.head) == new


def test_the_submodules_of_a_feature_branch_follow(world: World, nest: Nest):
    nest.clone.git("switch", "-q", "-c", "feature")
    nest.clone.commit("mine")
    _, middle, leaf = nest.advance()
    assert world.run("--rebase").code == 0
    assert (nest.in_middle.head, nest.in_leaf.head) == (middle, leaf)


def test_two_hundred_submodules_follow(world: World):
    leaf = world.server("leaf")
    first, second = leaf.head, leaf.commit()
    top = world.server("a")
    modules = "".join(
        f'[submodule "m{i}"]\n\tpath = m{i}\n\turl = file://{leaf.path}\n' for i in range(200)
    )
    top.write(".gitmodules", modules)
    _record(top, first)
    clone = world.clone(top, "a")
    _populate(clone, leaf)
    _record(top, second)
    assert world.run().code == 0
    heads = {world.repo(clone.path / f"m{i}").git("rev-parse", "HEAD") for i in (0, 99, 199)}
    assert heads == {second}
    assert clone.git("status", "--porcelain") == ""


def _record(top: Repo, commit: str) -> None:
    top.git("add", ".gitmodules")
    entries = [f"160000 {commit}\tm{i}\n" for i in range(200)]
    top.git("update-index", "--index-info", text="".join(entries))
    top.git("commit", "-q", "-m", "record")


def _populate(clone: Repo, leaf: Repo) -> None:
    """As `git submodule update --init` leaves it, in a tenth of its time."""
    lines = (clone.path / ".git" / "config").read_text()
    clone.git("submodule", "--quiet", "update", "--init", "m0")
    first = clone.path / ".git" / "modules" / "m0"
    for i in range(200):
        lines += f'[submodule "m{i}"]\n\tactive = true\n\turl = file://{leaf.path}\n'
        if i:
            git_dir = clone.path / ".git" / "modules" / f"m{i}"
            shutil.copytree(first, git_dir)
            text = (git_dir / "config").read_text().replace("/m0\n", f"/m{i}\n")
            (git_dir / "config").write_text(text)
            shutil.copytree(clone.path / "m0", clone.path / f"m{i}", dirs_exist_ok=True)
        (clone.path / f"m{i}" / ".git").write_text(f"gitdir: ../.git/modules/m{i}\n")
    (clone.path / ".git" / "config").write_text(lines)


def test_submodules_left_behind_are_taken_up_after_other_runs(world: World, nest: Nest):
    nest.advance()
    away = nest.middle.path.rename(nest.middle.path.with_name("away"))
    assert world.run().one()["status"] == "failed"
    # A later run that keeps a record of its own, and does not come to the submodules.
    nest.clone.write("README", "mine\n")
    new = nest.top.commit("README", "theirs\n")
    assert world.run().one()["status"] == "skipped"
    nest.clone.git("checkout", "-q", "README")
    away.rename(nest.middle.path)
    assert world.run().code == 0
    assert (nest.clone.head, nest.in_middle.head) == (new, nest.middle.head)
    assert nest.clone.git("status", "--porcelain") == ""
    assert not (nest.clone.path / ".git" / "update-repos" / "state.json").exists()


def test_a_submodule_that_a_person_moved_meanwhile_is_theirs(world: World, nest: Nest):
    nest.advance()
    away = nest.middle.path.rename(nest.middle.path.with_name("away"))
    assert world.run().one()["status"] == "failed"
    away.rename(nest.middle.path)
    nest.in_middle.git("switch", "-q", "-c", "mine")
    mine = nest.in_middle.commit("mine")
    assert world.run().code == 0
    assert (nest.in_middle.head, nest.in_middle.branch) == (mine, "mine")


def test_undo_of_a_run_that_left_submodules_behind(world: World, nest: Nest):
    before = [repo.everything() for repo in (nest.clone, nest.in_middle, nest.in_leaf)]
    nest.advance()
    away = nest.middle.path.rename(nest.middle.path.with_name("away"))
    first = world.run().json["run"]
    away.rename(nest.middle.path)
    second = world.run().json["run"]
    assert world.run("undo", second).code == 0
    # As the first run left it: not local work, but still to be done.
    assert world.run("status").one()["local"]["submodules"] == []
    assert world.run("undo", first).code == 0
    assert [repo.everything() for repo in (nest.clone, nest.in_middle, nest.in_leaf)] == before


def test_undo_names_a_submodule_that_is_at_another_commit_since(world: World, nest: Nest):
    nest.advance()
    away = nest.middle.path.rename(nest.middle.path.with_name("away"))
    assert world.run().one()["status"] == "failed"
    away.rename(nest.middle.path)
    assert world.run().code == 0
    mine = nest.in_middle.commit("mine")
    ran = world.run("undo")
    assert (ran.code, nest.in_middle.head) == (1, mine)
    assert any("it is not where the run left it" in note for note in ran.one()["notes"])


def test_undo_of_a_run_that_moved_two_submodules_which_another_had_left_behind(world: World):
    top = world.server("a")
    inner = [world.server(name) for name in ("first", "second")]
    for server in inner:
        _add(top, server, server.path.name)
    clone = world.clone(top, "a", "--recursive")
    for server in inner:
        server.commit()
        _bump(top, server.path.name)
    away = [
        server.path.rename(server.path.with_name(f"{server.path.name}-away")) for server in inner
    ]
    assert world.run().one()["status"] == "failed"
    for folder, server in zip(away, inner, strict=True):
        folder.rename(server.path)
    assert world.run().code == 0
    assert world.run("undo").code == 0
    # Both are where the first run left them: not local work, but still to be done.
    assert world.run("status").one()["local"]["submodules"] == []
    assert world.run().code == 0
    assert clone.git("status", "--porcelain") == ""


def test_own_commits_of_a_submodule_that_comes_back_are_kept(world: World):
    inner, top = world.server("inner"), world.server("a")
    _add(top, inner, "inner")
    clone = world.clone(top, "a", "--recursive")
    below = world.repo(clone.path / "inner")
    top.git("rm", "-q", "inner")
    top.git("commit", "-q", "-m", "remove")
    assert world.run().code == 0
    mine = below.commit("mine")
    shutil.rmtree(below.path)
    top.git("revert", "--no-edit", "HEAD")
    assert world.run().code == 0
    assert mine in below.git("for-each-ref", "refs/update-repos", "--format=%(objectname)")


def _file(top: Repo) -> None:
    top.write("place", "a file\n")


def _link(top: Repo) -> None:
    (top.path / "place").symlink_to("README")


def _folder(top: Repo) -> None:
    top.write("place/file", "in a folder\n")


@pytest.mark.parametrize("kind", [_file, _link, _folder], ids=lambda x: x.__name__)
def test_what_becomes_a_submodule_is_followed_and_restored(
    world: World, kind: Callable[[Repo], None]
):
    inner, top = world.server("inner"), world.server("a")
    kind(top)
    top.git("add", "-A")
    top.git("commit", "-q", "-m", "no submodule yet")
    clone = world.clone(top, "a")
    before = clone.everything()
    top.git("rm", "-q", "-r", "place")
    _add(top, inner, "place")
    assert world.run().code == 0
    assert clone.read("place/README") == "first\n"
    assert world.run("undo").code == 0
    assert clone.everything() == before


@pytest.mark.parametrize("kind", [_file, _link, _folder], ids=lambda x: x.__name__)
def test_a_submodule_whose_folder_is_empty_may_become_something_else(
    world: World, kind: Callable[[Repo], None]
):
    inner, top = world.server("inner"), world.server("a")
    _add(top, inner, "place")
    clone = world.clone(top, "a", "--recursive")
    clone.git("submodule", "--quiet", "deinit", "place")
    top.git("rm", "-q", "place")
    kind(top)
    top.git("add", "-A")
    top.git("commit", "-q", "-m", "no submodule any more")
    assert (world.run().code, clone.head) == (0, top.head)
    assert clone.git("status", "--porcelain") == ""


def test_a_submodule_that_moves_to_another_address_is_fetched_from_there(world: World, nest: Nest):
    other = world.repo(world.folder / "servers" / "other")
    nest.leaf.git("clone", "-q", ".", str(other.path))
    new = other.commit("there alone")
    inner = Repo(nest.middle.path / "leaf", nest.middle.environ)
    inner.git("pull", "-q", f"file://{other.path}", "main")
    words = ("config", "--file", ".gitmodules", "submodule.leaf.url", f"file://{other.path}")
    nest.middle.git(*words)
    nest.middle.git("commit", "-q", "-a", "-m", "another address")
    _bump(nest.top, "middle")
    assert (world.run().code, nest.in_leaf.head) == (0, new)


def test_a_submodule_that_gets_another_path_is_not_set_up_twice(world: World, nest: Nest):
    nest.top.git("mv", "middle", "elsewhere")
    nest.top.git("commit", "-q", "-m", "move")
    before, old = nest.in_middle.everything(), nest.clone.head
    ran = world.run()
    assert (ran.code, ran.one()["status"], nest.clone.head) == (1, "skipped", old)
    assert "submodule middle moves to elsewhere" in ran.one()["reason"]
    assert nest.in_middle.everything() == before


# Ends its caller right after the settings of a new submodule are written.
_KILLER = """\
#!/bin/sh
case "$*" in *"submodule init"*) {git} "$@"; kill -9 $PPID;; esac
exec {git} "$@"
"""


def test_undo_removes_the_settings_of_a_submodule_that_was_not_cloned(world: World, nest: Nest):
    _add(nest.top, nest.leaf, "second")
    before = nest.clone.everything()
    program = world.folder / "bin" / "git"
    program.parent.mkdir()
    program.write_text(_KILLER.format(git=shutil.which("git")))
    program.chmod(0o755)
    assert world.run(PATH=f"{program.parent}:{world.environ['PATH']}").code == -9
    assert "submodule.second.url" in nest.clone.git("config", "--local", "--list")
    assert world.run("undo").code == 0
    assert nest.clone.everything() == before


@pytest.mark.parametrize("work", [_changed, _unpushed], ids=lambda x: x.__name__)
def test_local_work_in_a_submodule_that_status_is_set_to_ignore_stops_its_repository(
    world: World, nest: Nest, work: Callable[[Nest], None]
):
    work(nest)
    nest.clone.git("config", "submodule.middle.ignore", "all")
    head, before = nest.clone.head, nest.in_middle.everything()
    nest.advance()
    ran = world.run()
    assert (ran.code, ran.one()["status"], nest.clone.head) == (1, "skipped", head)
    assert nest.in_middle.everything() == before


def _add_unpublished(top: Repo, inner: Repo) -> str:
    """Adds a submodule whose recorded commit is not on its server yet; returns the commit."""
    _add(top, inner, "s")
    commit = Repo(top.path / "s", top.environ).commit("later")
    top.git("commit", "-q", "-a", "-m", "not published")
    return commit


def _publish(top: Repo) -> None:
    top.git("-C", "s", "push", "-q", "origin", "HEAD:refs/heads/later")


def test_a_clone_that_is_still_to_be_made_does_not_overwrite_files_of_the_user(world: World):
    inner, (top, clone) = world.server("inner"), world.pair()
    commit = _add_unpublished(top, inner)
    assert world.run().one()["status"] == "failed"
    shutil.rmtree(clone.path / "s")
    clone.write("s/README", "mine\n")
    _publish(top)
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "failed")
    assert "submodule s: in the way of its clone: README" in ran.one()["reason"]
    assert clone.files()["s/README"] == b"mine\n"
    (clone.path / "s" / "README").rename(clone.path / "mine")
    assert (world.run().code, world.repo(clone.path / "s").head) == (0, commit)


def test_undo_names_a_submodule_that_it_cannot_remove(world: World):
    inner, (top, clone) = world.server("inner"), world.pair()
    _add_unpublished(top, inner)
    assert world.run().one()["status"] == "failed"
    shutil.rmtree(clone.path / "s")
    clone.write("s/README", "mine\n")
    ran = world.run("undo")
    assert (ran.code, ran.one()["status"], clone.read("s/README")) == (1, "undone", "mine\n")
    assert "s stays: its folder is not empty" in ran.one()["notes"][0]
    assert ran.one()["reason"].endswith(", except what the notes name")


@pytest.mark.parametrize("is_published", [False, True])
def test_a_clone_of_a_submodule_that_stopped_half_way_is_finished_by_a_later_run(
    world: World, is_published: bool
):
    leaf, inner, (top, clone) = world.server("leaf"), world.server("inner"), world.pair()
    _add(inner, leaf, "leaf")
    commit = _add_unpublished(top, inner)
    for _ in range(2):
        ran = world.run()
        assert (ran.code, ran.one()["status"]) == (1, "failed")
    below = world.repo(clone.path / "s")
    if is_published:
        # As git leaves it when it is killed while it writes files.
        below.write("README", "first\n")
        below.write("later", "lat")
    else:
        shutil.rmtree(below.path)
    _publish(top)
    assert world.run().code == 0
    assert (below.head, below.git("status", "--porcelain")) == (commit, "")
    assert (below.path / "leaf" / "README").exists()
    assert clone.git("status", "--porcelain") == ""


def test_a_clone_that_stopped_half_way_keeps_what_the_user_wrote_there(world: World):
    inner, (top, clone) = world.server("inner"), world.pair()
    _add_unpublished(top, inner)
    assert world.run().one()["status"] == "failed"
    clone.write("s/README", "mine\n")
    _publish(top)
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "failed")
    assert "README" in ran.one()["reason"]
    assert clone.read("s/README") == "mine\n"


# Ends its caller while it writes the files of a submodule.
_ENDS_ITS_CALLER = """\
#!/bin/sh
caller=$PPID
while ! grep -qs update_repos.py /proc/$caller/cmdline; do
    caller=$(cut -d " " -f 4 /proc/$caller/stat)
done
kill -{signal} $caller
[ {signal} = INT ] && exec sleep 60
kill -KILL 0
"""


@pytest.mark.parametrize("signal", ["INT", "KILL"])
def test_a_clone_whose_submodules_were_interrupted_is_finished_by_the_next_run(
    world: World, signal: str
):
    inner, server = world.server("inner"), world.server("a")
    inner.commit(".gitattributes", "large filter=slow\n")
    inner.commit("large")
    inner.commit("z")
    _add(server, inner, "inner")
    clone = world.clone(server, "a")
    shutil.rmtree(clone.path)
    program = world.folder / "program"
    program.write_text(_ENDS_ITS_CALLER.format(signal=signal))
    program.chmod(0o755)
    ran = world.run("--clone", **_settings(f"filter.slow.smudge={program}"))
    assert ran.code == (130 if signal == "INT" else -9)
    wait_for_orphans(clone.path)
    below = world.repo(clone.path / "inner")
    (below.path.parent / ".git/modules/inner/index.lock").unlink(missing_ok=True)
    assert not (below.path / "z").exists()
    assert world.run().code == 0
    assert (below.head, below.git("status", "--porcelain")) == (inner.head, "")


def _settings(*words: str) -> dict[str, str]:
    """Settings of git, for a call of the tool."""
    pairs = [word.split("=", 1) for word in words]
    settings = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        settings |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return settings


def _stage_in_old(below: Repo) -> None:
    below.write("README", "staged alone\n")
    below.git("add", "README")
    below.write("README", "later\n")


def _merge_in_old(below: Repo) -> None:
    below.git("switch", "-q", "-c", "topic")
    below.commit("file", "mine\n")
    below.git("switch", "-q", "--detach", "HEAD~1")
    below.git("merge", "-q", "--no-ff", "--no-commit", "topic")


@pytest.mark.parametrize("work", [_stage_in_old, _merge_in_old], ids=lambda x: x.__name__)
@pytest.mark.parametrize("is_there", [True, False])
def test_a_submodule_with_the_name_of_one_that_is_gone_does_not_take_its_git_folder(
    world: World, work: Callable[[Repo], None], is_there: bool
):
    inner, top = world.server("inner"), world.server("a")
    _add(top, inner, "inner")
    clone = world.clone(top, "a", "--recursive")
    below = world.repo(clone.path / "inner")
    top.git("rm", "-q", "inner")
    top.git("commit", "-q", "-m", "remove")
    assert world.run().code == 0
    work(below)
    before = below.everything()
    place = below.path if is_there else below.path.rename(world.folder / "aside")
    shutil.rmtree(top.path / ".git" / "modules" / "inner")
    top.git("submodule", "--quiet", "add", "--name", "inner", f"file://{inner.path}", "other")
    top.git("commit", "-q", "-m", "at another path")
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "failed")
    assert "modules/inner" in ran.one()["reason"]
    if not is_there:
        place.rename(below.path)
    assert below.everything() == before
