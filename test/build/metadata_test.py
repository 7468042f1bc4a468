"""What pyproject.toml says reaches installers, and agrees with requirements.txt."""

import tomllib

from bazel.pybuild import backend
from bazel.pybuild.dist import metadata
from bazel.pybuild.machine import packages
from test.build.tree import ROOT


def test_the_dependencies_are_the_versions_that_the_code_is_built_against():
    pins = packages.wanted(ROOT)
    expected = {f"{name}=={pins[name]}" for name in ("jax", "jaxlib", "torch")}
    assert expected <= set(metadata.read(ROOT).dependencies)


def test_an_isolated_build_has_nothing_to_download():
    with (ROOT / "pyproject.toml").open("rb") as file:
        requires = tomllib.load(file)["build-system"]["requires"]
    asked = (
        backend.get_requires_for_build_wheel()
        + backend.get_requires_for_build_sdist()
        + backend.get_requires_for_build_editable()
    )
    assert requires + asked == []


def test_sections_of_entry_points_are_apart():
    described = metadata.read(ROOT)._replace(entry_points={"a": {"x": "m:f"}, "b": {"y": "m:g"}})
    assert described.entry_points_text() == "[a]\nx = m:f\n\n[b]\ny = m:g\n"
