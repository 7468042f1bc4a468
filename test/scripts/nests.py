"""Repositories with submodules, for tests of update_repos.py: a module with fixtures."""

from pathlib import Path

import pytest

from test.scripts.world import Repo, Template, World


class Nest:
    """A repository with a submodule that has one itself: servers, and a clone of all."""

    def __init__(self, world: World):
        self.leaf = world.server("leaf")
        self.middle = world.server("middle")
        add(self.middle, self.leaf, "leaf")
        self.top = world.server("a")
        add(self.top, self.middle, "middle")
        self.clone = world.clone(self.top, "a", "--recursive")
        self.in_middle = world.repo(self.clone.path / "middle")
        self.in_leaf = world.repo(self.clone.path / "middle" / "leaf")

    def advance(self) -> tuple[str, str, str]:
        """New commits in all three, each recording the one below."""
        leaf = self.leaf.commit()
        middle = bump(self.middle, "leaf")
        return bump(self.top, "middle"), middle, leaf


def add(outer: Repo, inner: Repo, path: str) -> None:
    outer.git("submodule", "--quiet", "add", f"file://{inner.path}", path)
    outer.git("commit", "-q", "-m", f"add {path}")


def bump(outer: Repo, path: str) -> str:
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
