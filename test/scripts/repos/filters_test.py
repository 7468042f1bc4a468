"""A required filter that fails stops an update before a file is lost."""

import pytest

from test.scripts.repos.nests import Nest
from test.scripts.repos.world import Repo, World


def _set_up(repo: Repo, program: str) -> None:
    for key, value in (("smudge", program), ("clean", "cat"), ("required", "true")):
        repo.git("config", f"filter.large.{key}", value)


@pytest.fixture
def pair(world: World) -> tuple[Repo, Repo]:
    """A server with a file that needs a filter, and a clone that has the filter."""
    files = {".gitattributes": "*.big filter=large\n", "one.big": "large\n"}
    server, clone = world.pair(files=files)
    _set_up(clone, "cat")
    return server, clone


def test_a_filter_that_is_missing_is_named_and_changes_nothing(
    world: World, pair: tuple[Repo, Repo]
):
    server, clone = pair
    server.commit("other")
    new = server.commit("one.big")
    _set_up(clone, "/no/such/program smudge")
    old, before = clone.head, clone.everything()
    ran = world.run()
    assert (ran.code, ran.one()["status"], clone.head) == (1, "skipped", old)
    assert "one.big needs the filter large (/no/such/program)" in ran.one()["reason"]
    assert {**clone.everything(), "refs": None} == {**before, "refs": None}
    _set_up(clone, "cat")
    assert (world.run().code, clone.head) == (0, new)


def test_undo_stops_at_a_filter_that_is_missing(world: World, pair: tuple[Repo, Repo]):
    server, clone = pair
    server.commit("one.big")
    assert world.run().code == 0
    _set_up(clone, "/no/such/program")
    before = clone.everything()
    ran = world.run("undo")
    assert (ran.code, ran.one()["status"], clone.everything()) == (1, "skipped", before)


def test_a_filter_that_the_new_commit_brings_counts(world: World, pair: tuple[Repo, Repo]):
    server, clone = pair
    server.commit(".gitattributes", "*.big filter=large\n*.huge filter=large\n")
    server.commit("new.huge")
    _set_up(clone, "false")
    before = clone.files()
    ran = world.run()
    assert (ran.code, ran.one()["status"], clone.files()) == (1, "skipped", before)
    assert "new.huge needs the filter large (false)" in ran.one()["reason"]


def test_a_filter_is_not_called_for_other_files_and_outside_of_a_sparse_checkout(
    world: World, pair: tuple[Repo, Repo]
):
    server, clone = pair
    clone.git("sparse-checkout", "set", "--no-cone", "/*", "!/one.big")
    _set_up(clone, "false")
    server.commit("one.big")
    new = server.commit("other")
    assert (world.run().code, clone.head) == (0, new)


def test_a_filter_that_is_not_required_stops_nothing(world: World, pair: tuple[Repo, Repo]):
    server, clone = pair
    _set_up(clone, "false")
    clone.git("config", "filter.large.required", "false")
    new = server.commit("one.big")
    assert (world.run().code, clone.head) == (0, new)


def test_a_filter_that_is_missing_in_a_submodule_stops_the_submodule(world: World, nest: Nest):
    nest.middle.commit(".gitattributes", "*.big filter=large\n")
    nest.middle.commit("one.big")
    nest.top.bump("middle")
    assert world.run().code == 0
    _set_up(nest.in_middle, "false")
    nest.middle.commit("one.big")
    nest.top.bump("middle")
    before = nest.in_middle.everything()
    ran = world.run()
    assert (ran.code, ran.one()["status"]) == (1, "failed")
    assert "submodule middle: one.big needs the filter large" in ran.one()["reason"]
    assert nest.in_middle.everything() == before
