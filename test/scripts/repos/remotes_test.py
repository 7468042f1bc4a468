"""The upstream remote is verified; a wrong or missing one is named, and corrected on request."""

import shlex
from pathlib import Path

import pytest

from scripts.repos import remotes
from scripts.repos.model import Entry
from scripts.repos.model import Repo as Record
from test.scripts.repos.world import Repo, World

_OFFICIAL = Entry(
    "pytorch",
    upstream=("https://github.com/pytorch/pytorch.git", "git@github.com:pytorch/pytorch.git"),
)
_FORK, _URL = "git@github.com:me/pytorch.git", "https://github.com/pytorch/pytorch"


def _judge(config: list[tuple[str, str]], entry: Entry = _OFFICIAL) -> Record:
    return remotes.choose(Record(entry, path=Path("/")), config)


def _choose(**urls: str) -> Record:
    return _judge([(f"remote.{name}.url", url) for name, url in urls.items()])


@pytest.mark.parametrize(
    ("urls", "official"),
    [
        ({"origin": _FORK, "any-name": _URL}, "any-name"),
        ({"a": _URL, "origin": _URL, "upstream": _URL}, "upstream"),
        ({"origin": _FORK, "upstream": _URL}, "upstream"),
        ({"origin": _URL, "upstream": _FORK}, "origin"),
    ],
)
def test_the_official_one_is_found_by_its_address(urls: dict[str, str], official: str):
    choice = _choose(**urls)
    assert (choice.official, choice.reason) == (official, "")


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
