"""--pinned: a repository is updated to the commit that another one wants, and no further."""

from typing import NamedTuple

import pytest

from bazel.pytest_plugin import mostly_nightly
from test.scripts.repos.world import Repo, World


class Pinned(NamedTuple):
    """Server and clone of what is pinned, and the server of the one that pins it."""

    server: Repo
    clone: Repo
    wheel: Repo

    def pin(self, commit: str) -> None:
        self.wheel.commit(".torch_commit", f"# a comment\n{commit}\n")


@pytest.fixture
def torch(world: World) -> Pinned:
    server, clone = world.pair("torch")
    wheel, _ = world.pair("wheel", depends=["torch"], pins={"torch": ".torch_commit"})
    return Pinned(server, clone, wheel)


def test_a_pinned_repository_stops_at_its_pin(world: World, torch: Pinned):
    pinned = torch.server.commit()
    torch.server.commit()
    torch.pin(pinned)
    ran = world.run("--pinned")
    assert (ran.code, torch.clone.head) == (0, pinned)
    assert "pinned by wheel" in ran.one("torch")["reason"]
    assert world.run("--pinned").one("torch")["status"] == "current"


@pytest.mark.nightly
def test_a_repository_past_its_pin_stays_and_is_reported(world: World, torch: Pinned):
    pinned, new = torch.server.commit(), torch.server.commit()
    world.run()
    torch.pin(pinned)
    ran = world.run("--pinned")
    assert (ran.code, torch.clone.head) == (1, new)
    assert ran.one("torch")["remedy"] == [f"git -C {torch.clone.path} switch --detach {pinned}"]


@pytest.mark.nightly
def test_a_detached_head_at_the_pin_is_fine(world: World, torch: Pinned):
    pinned = torch.server.commit()
    torch.server.commit()
    world.run("torch")
    torch.pin(pinned)
    torch.clone.git("switch", "-q", "--detach", pinned)
    assert world.run("--pinned").code == 0
    assert torch.clone.head == pinned


_WRONG = [
    (None, "wheel has no .torch_commit"),
    ("release/2.9\n", "names no commit"),
    ("# nothing\n", "names no commit"),
    ("0123456789012345678901234567890123456789\n", "cannot be fetched"),
]


@pytest.mark.parametrize("case", mostly_nightly(_WRONG, _WRONG[3:]))
def test_a_pin_that_cannot_be_respected_is_named(
    world: World, torch: Pinned, case: tuple[str | None, str]
):
    content, reason = case
    old = torch.clone.head
    torch.server.commit()
    if content is not None:
        torch.wheel.commit(".torch_commit", content)
    ran = world.run("--pinned")
    assert (ran.code, ran.one("torch")["status"], torch.clone.head) == (1, "skipped", old)
    assert reason in ran.one("torch")["reason"]


@pytest.mark.nightly
def test_commands_name_the_pinned_commit(world: World, torch: Pinned):
    pinned = torch.server.commit()
    torch.pin(pinned)
    torch.clone.commit("mine")
    git = f"git -C {torch.clone.path}"
    assert world.run("--pinned").one("torch")["remedy"] == [
        f"{git} log --oneline {pinned}..main",
        f"{git} switch -c my-work main && {git} branch -f main {pinned}",
    ]


@pytest.mark.nightly
def test_pins_chain(world: World):
    a, in_a = world.pair("a")
    b, in_b = world.pair("b", pins={"a": "pin"})
    c, _ = world.pair("c", pins={"b": "pin"})
    wanted_a = a.commit()
    wanted_b = b.commit("pin", f"{wanted_a}\n")
    b.commit("pin", f"{a.commit()}\n")
    c.commit("pin", f"{wanted_b}\n")
    assert world.run("--pinned").code == 0
    assert (in_a.head, in_b.head) == (wanted_a, wanted_b)


def test_without_the_option_a_run_moves_past_a_pin_and_says_so(world: World, torch: Pinned):
    pinned, new = torch.server.commit(), torch.server.commit()
    torch.pin(pinned)
    note = f"1 commit past {pinned[:10]}, which wheel pins; --pinned stops there"
    assert (world.run().one("torch")["notes"], torch.clone.head) == ([note], new)
    assert world.run().one("torch")["notes"] == []
