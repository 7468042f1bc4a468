"""Which addresses mean one place; which remote is the upstream, and what is said of a wrong one."""

from pathlib import Path

import pytest

from scripts.repos import git, remotes
from scripts.repos.model import Entry
from scripts.repos.model import Repo as Record
from test.scripts.repos.world import World

_OFFICIAL = Entry(
    "pytorch",
    upstream=("https://github.com/pytorch/pytorch.git", "git@github.com:pytorch/pytorch.git"),
)
_GIT = "https://github.com/pytorch/pytorch.git"
_FORK, _URL = "git@github.com:me/pytorch.git", "https://github.com/pytorch/pytorch"


def _choose(**urls: str) -> tuple[str | None, tuple[str, ...]]:
    """The upstream of a repository with these remotes, and the problem with its command."""
    repo, problem = remotes.choose(Record(_OFFICIAL, path=Path("/")), urls)
    return repo.official, problem


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
    assert _choose(**urls) == (official, ())


def test_a_missing_one_is_added_by_the_first_address_of_the_table():
    _, (reason, command) = _choose(origin=_FORK)
    assert reason.startswith("no remote is https://github.com/pytorch/pytorch.git")
    assert command == "git -C / remote add upstream https://github.com/pytorch/pytorch.git"


def test_a_wrong_one_is_set():
    wrong = {"origin": "https://github.com/me/pytorch", "upstream": "https://example.invalid/x"}
    _, (reason, command) = _choose(**wrong)
    assert "upstream: https://example.invalid/x, origin: https://github.com/me/" in reason
    assert command == "git -C / remote set-url upstream https://github.com/pytorch/pytorch.git"


def test_addresses_are_compared_as_git_rewrites_them(world: World):
    server, clone = world.pair()
    new = server.commit()
    clone.git("remote", "set-url", "origin", "short:a")
    clone.git("config", f"url.file://{server.path.parent}/.insteadOf", "short:")
    assert (world.run().code, clone.head) == (0, new)
    clone.git("config", "url.https://mirror.invalid/.insteadOf", "short:a")
    assert "(git calls origin: https://mirror.invalid/)" in world.run().one()["reason"]


def test_without_the_upstream_nothing_happens_and_the_command_is_named(world: World):
    server, clone = world.pair()
    fork = world.init(world.folder / "forks" / "a")
    world.table["a"]["upstream"] = [f"file://{fork.path}"]
    server.commit()
    before = clone.everything()
    ran = world.run()
    assert (ran.code, clone.everything()) == (1, before)
    assert ran.one()["remedy"] == [f"git -C {clone.path} remote add upstream file://{fork.path}"]


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/pytorch/pytorch",
        "https://github.com/pytorch/pytorch/",
        "https://GitHub.com/PyTorch/pytorch.git",
        "https://me:secret@github.com/pytorch/pytorch.git",
        "https://github.com:443/pytorch/pytorch.git",
        "https://www.github.com/pytorch/pytorch",
        "http://github.com/pytorch/pytorch",
        "git://github.com/pytorch/pytorch.git",
        "git@github.com:pytorch/pytorch.git",
        "git@github.com:/pytorch/pytorch",
        "github.com:pytorch/pytorch",
        "ssh://git@github.com/pytorch/pytorch.git",
        "ssh://git@github.com:22/pytorch/pytorch.git",
        "ssh://git@ssh.github.com:443/pytorch/pytorch.git",
        "git+ssh://git@github.com/pytorch//pytorch.git",
    ],
)
def test_forms_of_one_address_are_the_same(url: str):
    assert remotes.same(url, _GIT)


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/me/pytorch.git",
        "https://github.com/pytorch/pytorch2.git",
        "https://github.com/pytorch/vision.git",
        "https://gitlab.com/pytorch/pytorch.git",
        "https://github.com:8443/pytorch/pytorch.git",
        "https://github.com.example/pytorch/pytorch.git",
        "/github.com/pytorch/pytorch.git",
        "file:///github.com/pytorch/pytorch",
    ],
)
def test_other_addresses_are_not(url: str):
    assert not remotes.same(url, _GIT)


def test_case_matters_where_the_host_is_not_known_to_ignore_it():
    assert not remotes.same("https://example.invalid/A/b", "https://example.invalid/a/b")


@pytest.mark.parametrize(
    "url", ["/srv/a", "/srv/a.git", "/srv/a/.git", "file:///srv/a", "../srv/a"]
)
def test_folders_are_compared_as_places(url: str):
    assert remotes.same(url, "file:///srv/a.git", folder="/home")


@pytest.mark.parametrize(
    "text",
    [
        "fatal: unable to access 'https://me:s3cret@host/x.git/'",
        "fatal: unable to access 'https://s3cret@host/x.git/'",
        "fatal: unable to access 'https://me:p@s3cret@host/x.git/'",
        "fatal: unable to access 'ssh://me:s3cret@host/x.git/'",
        "Authorization: Basic s3cret",
        "authorization=s3cret",
        "https://host/x.git?access_token=s3cret&x=1",
        "remote: ghp_s3cret0123456789",
        "github_pat_s3cret_0123456789",
    ],
)
def test_credentials_are_hidden(text: str):
    assert "s3cret" not in git.redact(text)


def test_what_is_no_credential_is_printed():
    text = "https://github.com/pytorch/pytorch.git, git@github.com:pytorch/pytorch.git"
    text += ", ssh://git@github.com/pytorch/pytorch.git"
    assert git.redact(text) == text
