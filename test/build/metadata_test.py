"""What pyproject.toml says reaches installers, and agrees with requirements.txt."""

from bazel.pybuild import metadata, packages
from test.build.tree import ROOT


def test_the_dependencies_are_the_versions_that_the_code_is_built_against():
    pins = packages.wanted(ROOT)
    expected = {f"{name}=={pins[name]}" for name in ("jax", "jaxlib", "torch")}
    assert expected <= set(metadata.read(ROOT).dependencies)


def test_no_build_requirement_pulls_torch_or_jax():
    import tomllib

    with (ROOT / "pyproject.toml").open("rb") as file:
        requires = tomllib.load(file)["build-system"]["requires"]
    assert not [name for name in requires if name.startswith(("torch", "jax"))]


def test_sections_of_entry_points_are_apart():
    described = metadata.read(ROOT)._replace(entry_points={"a": {"x": "m:f"}, "b": {"y": "m:g"}})
    assert described.entry_points_text() == "[a]\nx = m:f\n\n[b]\ny = m:g\n"
