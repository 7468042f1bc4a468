"""Addresses: which mean one place, and which parts of a text are hidden."""

import pytest

from scripts.repos import git, remotes

_OFFICIAL = "https://github.com/pytorch/pytorch.git"


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
    assert remotes.same(url, _OFFICIAL)


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
    assert not remotes.same(url, _OFFICIAL)


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
