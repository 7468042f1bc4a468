"""The upstream remote is verified; a wrong or missing one is named, and corrected on request."""

import shlex
from pathlib import Path

import pytest

from scripts.repos import remotes
from scripts.repos.model import Entry
from scripts.repos.model import Repo as Record
from test.scripts.servers import silent_port
from test.scripts.world import Repo, World

_OFFICIAL = Entry(
    "pytorch",
    upstream=("https://github.com/pytorch/pytorch.git", "git@github.com:pytorch/pytorch.git"),
)
_FORK = "git@github.com:me/pytorch.git"


def _judge(config: list[tuple[str, str]], entry: Entry = _OFFICIAL) -> Record:
    return remotes.choose(Record(entry, path=Path("/")), config)


def _choose(**urls: str) -> Record:
    return _judge([(f"remote.{name}.url", url) for name, url in urls.items()])


def test_the_official_one_is_found_under_any_name():
    assert (
        _choose(origin=_FORK, official="https://github.com/pytorch/pytorch").official == "official"
    )


def test_upstream_is_preferred():
    url = "https://github.com/pytorch/pytorch"
    assert _choose(a=url, origin=url, upstream=url).official == "upstream"


def test_origin_may_be_a_fork():
    choice = _choose(origin=_FORK, upstream="https://github.com/pytorch/pytorch")
    assert (choice.official, choice.reason) == ("upstream", "")


@pytest.mark.parametrize("fork", [_FORK, "https://github.com/me/pytorch", "mine"])
def test_a_fork_is_what_the_table_names_by_address_or_by_remote(fork: str):
    config = [("remote.upstream.url", _OFFICIAL.upstream[0]), ("remote.mine.url", _FORK)]
    entry = _OFFICIAL._replace(fork=fork)
    assert _judge(config, entry).fork == "mine"


@pytest.mark.parametrize(("named", "fork"), [("mine", "mine"), ("upstream", None), ("gone", None)])
def test_a_fork_is_what_git_pushes_to_unless_that_is_the_upstream(named: str, fork: str | None):
    config = [("remote.upstream.url", _OFFICIAL.upstream[0]), ("remote.mine.url", _FORK)]
    config.append(("remote.pushdefault", named))
    assert _judge(config).fork == fork


@pytest.mark.parametrize("url", [_FORK, "git@github.com:openxla/pytorch.git"])
def test_a_repository_of_the_same_name_is_no_fork(url: str):
    assert _choose(origin=_OFFICIAL.upstream[0], other=url).fork is None


def test_origin_is_official_beside_an_upstream_that_is_something_else():
    choice = _choose(origin="https://github.com/pytorch/pytorch", upstream=_FORK)
    assert choice.official == "origin"


def test_a_missing_one_is_added_by_the_first_address_of_the_table():
    choice = _choose(origin=_FORK)
    assert choice.reason.startswith("no remote is https://github.com/pytorch/pytorch.git")
    added = "git -C / remote add upstream https://github.com/pytorch/pytorch.git"
    assert choice.remedy == (added,)


def test_a_wrong_one_is_set():
    choice = _choose(origin="https://github.com/me/pytorch", upstream="https://example.invalid/x")
    assert "upstream: https://example.invalid/x, origin: https://github.com/me/" in choice.reason
    corrected = "git -C / remote set-url upstream https://github.com/pytorch/pytorch.git"
    assert choice.remedy == (corrected,)


def test_addresses_that_git_rewrites_are_compared_as_rewritten_too():
    config = [
        ("remote.origin.url", "gh:pytorch/pytorch"),
        ("url.https://github.com/.insteadof", "gh:"),
    ]
    assert _judge(config).official == "origin"


def test_an_address_that_git_rewrites_to_another_host_is_not_the_official_one():
    config = [
        ("remote.origin.url", "https://github.com/pytorch/pytorch"),
        ("url.https://mirror.invalid/.insteadof", "https://github.com/"),
    ]
    choice = _judge(config)
    assert (choice.official, choice.remedy[0].split()[3]) == (None, "config")
    assert "git rewrites https://github.com/pytorch/pytorch.git to https://mirror" in choice.reason


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def forked(world: World) -> tuple[Repo, Repo, Repo]:
    """The official repository, a fork of it, and a clone of the fork that knows nothing else."""
    server = world.server("a")
    fork = world.repo(world.folder / "forks" / "a")
    fork.path.parent.mkdir()
    server.git("clone", "-q", "--bare", ".", str(fork.path))
    clone = world.clone(fork, "a")
    world.table["a"]["upstream"] = [f"file://{server.path}"]
    return server, fork, clone


def test_without_the_upstream_nothing_happens_and_the_command_is_named(
    world: World, forked: tuple[Repo, Repo, Repo]
):
    server, _, clone = forked
    before = clone.everything()
    ran = world.run()
    assert (ran.code, clone.everything()) == (1, before)
    assert ran.one()["remedy"] == [f"git -C {clone.path} remote add upstream file://{server.path}"]


def test_an_address_that_git_rewrites_is_named_with_a_command_that_shows_why(world: World):
    server, clone = world.pair()
    clone.git("config", "url.https://example.invalid/.insteadOf", f"file://{server.path.parent}/")
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "skipped")
    done = clone.git(*shlex.split(ran.one()["remedy"][0])[3:])
    assert "url.https://example.invalid/.insteadof" in done


@pytest.fixture
def with_upstream(world: World, forked: tuple[Repo, Repo, Repo]) -> tuple[Repo, Repo, Repo]:
    server, _, clone = forked
    clone.git("remote", "add", "upstream", f"file://{server.path}")
    clone.git("config", "remote.pushDefault", "origin")
    return forked


def test_push_fork_pushes_to_nothing_that_the_user_did_not_name(
    world: World, with_upstream: tuple[Repo, Repo, Repo]
):
    server, fork, clone = with_upstream
    clone.git("config", "--unset", "remote.pushDefault")
    old, new = clone.head, server.commit()
    ran = world.run("--push-fork")
    assert (ran.code, clone.head, fork.git("rev-parse", "main")) == (0, new, old)
    assert any("no remote is named as the fork" in note for note in ran.one()["notes"])
    world.table["a"]["fork"] = f"file://{fork.path}"
    assert world.run("--push-fork").code == 0
    assert fork.git("rev-parse", "main") == new


def test_push_fork_moves_the_forks_default_branch(
    world: World, with_upstream: tuple[Repo, Repo, Repo]
):
    server, fork, clone = with_upstream
    new = server.commit()
    ran = world.run("--push-fork")
    assert (ran.code, fork.git("rev-parse", "main"), clone.head) == (0, new, new)


def test_push_fork_works_beside_local_work(world: World, with_upstream: tuple[Repo, Repo, Repo]):
    server, fork, clone = with_upstream
    new = server.commit("README", "theirs\n")
    clone.write("README", "mine\n")
    assert world.run("--push-fork").code == 1
    assert (fork.git("rev-parse", "main"), clone.read("README")) == (new, "mine\n")


def test_a_push_that_cannot_be_recorded_takes_nothing_from_what_was_updated(
    world: World, with_upstream: tuple[Repo, Repo, Repo]
):
    server, fork, clone = with_upstream
    old, new = clone.head, server.commit()
    # Where the place is taken at which the old value of refs/remotes/origin/main is kept.
    kept = "$(git for-each-ref --format='%(refname)' refs/update-repos | cut -d / -f 1-3 | head -1)"
    text = f"#!/bin/sh\ngit update-ref {kept}/remotes/origin HEAD\n"
    clone.write(".git/hooks/post-merge", text).chmod(0o755)
    ran = world.run("--push-fork")
    assert (ran.code, ran.one()["status"], ran.one()["new"]) == (1, "updated", new)
    assert (ran.json["run"] is None, fork.git("rev-parse", "main")) == (False, old)


def test_push_fork_never_forces(world: World, with_upstream: tuple[Repo, Repo, Repo]):
    server, fork, clone = with_upstream
    clone.git("switch", "-q", "-c", "mine")
    mine = clone.commit("mine")
    clone.git("push", "-q", "origin", "mine:main")
    clone.git("switch", "-q", "main")
    server.commit()
    ran = world.run("--push-fork")
    assert (ran.code, fork.git("rev-parse", "main")) == (1, mine)
    assert "did not take it" in ran.one()["reason"]
    assert ran.one()["status"] == "updated"


def test_a_push_that_is_refused_is_not_tried_again(
    world: World, with_upstream: tuple[Repo, Repo, Repo]
):
    server, _, clone = with_upstream
    clone.git("switch", "-q", "-c", "mine")
    clone.commit("mine")
    clone.git("push", "-q", "origin", "mine:main")
    clone.git("switch", "-q", "main")
    server.commit()
    world.settings["retries"] = 2
    hook = clone.write(".git/hooks/pre-push", f"#!/bin/sh\necho tried >>{world.folder}/tries\n")
    hook.chmod(0o755)
    assert world.run("--push-fork").code == 1
    assert (world.folder / "tries").read_text() == "tried\n"


def test_a_fork_that_cannot_be_reached_is_a_problem_of_the_network(
    world: World, with_upstream: tuple[Repo, Repo, Repo]
):
    server, _, clone = with_upstream
    new = server.commit()
    with silent_port(answers=False) as port:
        clone.git("remote", "set-url", "--push", "origin", f"http://127.0.0.1:{port}/a")
        ran = world.run("--push-fork")
    assert (ran.code, ran.one()["status"], clone.head) == (3, "updated", new)


def test_push_fork_needs_no_person_where_there_is_no_fork(world: World):
    world.pair("b")
    ran = world.run("--push-fork")
    assert (ran.code, ran.one("b")["status"]) == (0, "current")
    assert any("no remote is named as the fork" in note for note in ran.one("b")["notes"])


def test_undo_says_that_a_push_stays(world: World, with_upstream: tuple[Repo, Repo, Repo]):
    server, fork, _ = with_upstream
    new = server.commit()
    world.run("--push-fork")
    ran = world.run("undo")
    assert fork.git("rev-parse", "main") == new
    assert any("stays as it was pushed" in note for note in ran.one()["notes"])


@pytest.mark.parametrize(
    "setting", ["remote.fork.pushurl", "url.{other}.pushInsteadOf"], ids=["pushurl", "insteadOf"]
)
def test_a_push_goes_to_the_address_that_the_user_named_alone(
    world: World, with_upstream: tuple[Repo, Repo, Repo], setting: str
):
    upstream, fork, clone = with_upstream
    other = world.repo(world.folder / "other")
    fork.git("clone", "-q", "--bare", ".", str(other.path))
    named = clone.git("remote", "get-url", "origin")
    clone.git("remote", "rename", "origin", "fork")
    world.table["a"]["fork"] = named
    value = named if "pushInsteadOf" in setting else str(other.path)
    clone.git("config", setting.format(other=other.path), value)
    upstream.commit()
    before = other.head, fork.head
    ran = world.run("--push-fork")
    assert (ran.code, (other.head, fork.head)) == (1, before)
    assert "fork is pushed to" in ran.one()["reason"]
