"""The world of each test of update_repos.py, and a nest of submodules where a test asks for one."""

from pathlib import Path

import pytest

from test.scripts.repos.world import Nest, Template, World


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template[Nest]:
    return Template(tmp_path_factory.mktemp("nest"), Nest)


@pytest.fixture
def built(template: Template[Nest]) -> tuple[World, Nest]:
    return template.copy()


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    if "nest" in request.fixturenames:
        return request.getfixturevalue("built")[0]
    return World(tmp_path)


@pytest.fixture
def nest(built: tuple[World, Nest]) -> Nest:
    return built[1]
