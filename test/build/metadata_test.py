"""What pyproject.toml says reaches installers, and agrees with requirements.txt."""

import fnmatch
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.metadata import Metadata
from packaging.requirements import Requirement

from bazel import pybuild
from bazel.pybuild.dist import metadata, sources
from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import packages
from bazel.pybuild.options import Options, WheelKind
from bazel.pybuild.variables import VARIABLES
from test.build import tree


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tree.linked(tmp_path_factory.mktemp("tree"))


def test_a_wheel_requires_the_versions_that_it_is_built_against(root: Path):
    found = packages.installed(("jax", "jaxlib", "torch"), packages.search_path())
    expected = {f"{name}=={p.version.partition('+')[0]}" for name, p in found.items()}
    assert set(metadata.for_wheel(root, Options(), "").dependencies) == expected


def test_a_source_distribution_requires_what_a_build_takes(root: Path):
    accepted = packages.accepted(root)
    assert set(accepted) == {"jax", "jaxlib", "torch"}
    requirements = map(Requirement, metadata.read(root).dependencies)
    for requirement in requirements:
        versions = accepted[requirement.name]
        for version in (
            "0.9.1",
            "0.10.0",
            "0.12.5",
            "0.13.0",
            "2.12.1",
            "2.13.0",
            "2.15.3",
            "2.16",
        ):
            assert requirement.specifier.contains(version) == versions.contain(version)


def test_the_pins_are_among_the_versions_that_a_build_takes(root: Path):
    pins = packages.wanted(root)
    assert all(v.contain(pins[name]) for name, v in packages.accepted(root).items())


def test_the_group_for_development_takes_the_pins(root: Path):
    groups = tomllib.loads((root / "pyproject.toml").read_text())["dependency-groups"]
    pins = packages.wanted(root)
    asked = [Requirement(text) for text in groups["dev"]]
    assert asked and all(str(r.specifier) == f"=={pins[r.name]}" for r in asked)


def test_uv_builds_again_for_each_variable_that_changes_what_is_built(root: Path):
    keys = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["uv"]["cache-keys"]
    variables = {row.name for row in VARIABLES if row.changes_flags}
    assert {key["env"] for key in keys if "env" in key} == {
        *variables,
        "TORCH_XLA_LITE_BUILD_VERSION",
    }


def test_uv_builds_again_for_each_kind_of_source_and_for_nothing_that_a_build_writes(root: Path):
    keys = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["uv"]["cache-keys"]
    patterns = [key["file"] for key in keys if "file" in key]
    assert not any(fnmatch.fnmatch(".bazelrc.generated", pattern) for pattern in patterns)
    found = {file for pattern in patterns for file in root.glob(pattern)}
    paths = {str(file.relative_to(root)) for file in found}
    assert not [path for path in paths if sources.is_product(path)]
    packaged = set(sources.package_files(root))
    code = {file for file in sources.all_files(root) if file.endswith((".cc", ".h", ".bazel"))}
    code = {file for file in code if file.startswith("torch_xla_lite/")}
    missing = (packaged | code) - paths
    assert {Path(file).suffix for file in missing} <= {".pyi", ".typed"}


def test_the_least_python_is_the_one_that_the_build_checks(root: Path):
    oldest = ".".join(map(str, pybuild.OLDEST))
    text = (root / "pyproject.toml").read_text()
    assert metadata.read(root).requires_python == f">={oldest}"
    assert f'target-version = "py{oldest.replace(".", "")}"' in text


def test_sections_of_entry_points_are_apart(root: Path):
    described = metadata.read(root)._replace(entry_points={"a": {"x": "m:f"}, "b": {"y": "m:g"}})
    assert described.entry_points_text() == "[a]\nx = m:f\n\n[b]\ny = m:g\n"


def _read(folder: Path, *lines: str) -> metadata.Metadata:
    """What a pyproject.toml says that has some lines more than it needs."""
    needed = ["name='a'", "version='1'", "description='b'", "requires-python='>=3'"]
    text = "\n".join(["[project]", *needed, "dependencies=[]", *lines])
    (folder / "pyproject.toml").write_text(text)
    return metadata.read(folder)


@pytest.mark.parametrize("kind", WheelKind)
def test_packaging_reads_the_metadata_and_finds_nothing_wrong(root: Path, kind: WheelKind):
    described = metadata.for_wheel(root, Options(wheel_kind=kind), "13.0.88")
    found = Metadata.from_email(described.text(), validate=True)
    assert str(found.version) == "0.1.0+cu130"
    assert found.author == "torch_xla_lite developers"


def test_the_python_that_runs_the_tests_is_among_the_classifiers(root: Path):
    this = f"Programming Language :: Python :: {sys.version_info.major}.{sys.version_info.minor}"
    assert this in metadata.read(root).classifiers


def test_links_of_the_readme_to_files_are_absolute(tmp_path: Path):
    (tmp_path / "docs").mkdir()
    for name in ("docs/a.md", "docs/b.svg"):
        (tmp_path / name).touch()
    (tmp_path / "README.md").write_text(
        "[a](docs/a.md#part) ![b](docs/b.svg) [c](https://x.org/d) [e](#here) `f[0](x)`\n"
    )
    said = _read(tmp_path, "readme='README.md'", "urls.Source='https://host/p'").description
    assert said == (
        "[a](https://host/p/blob/HEAD/docs/a.md#part) ![b](https://host/p/raw/HEAD/docs/b.svg) "
        "[c](https://x.org/d) [e](#here) `f[0](x)`\n"
    )


def test_without_an_address_links_of_the_readme_to_files_become_text(tmp_path: Path):
    (tmp_path / "LICENSE").touch()
    (tmp_path / "README.md").write_text("[the licence](LICENSE#a) [LICENSE](LICENSE) [e](#here)\n")
    described = _read(tmp_path, "readme='README.md'")
    assert described.description == "the licence (LICENSE) LICENSE [e](#here)\n"


@pytest.mark.parametrize("line", ["maintainers=[{name='c'}]", "gui-scripts.c='d:e'", "dynamic=[]"])
def test_a_key_that_no_metadata_is_made_of_is_an_error(tmp_path: Path, line: str):
    with pytest.raises(BuildError, match=re.split("[=.]", line)[0]):
        _read(tmp_path, line)


def test_a_requirement_of_an_extra_keeps_its_marker(tmp_path: Path):
    marker = "os_name == 'nt' or os_name == 'java'"
    described = _read(tmp_path, f'optional-dependencies.x = ["d; {marker}"]')
    (line,) = [line for line in described.text().splitlines() if line.startswith("Requires-Dist")]
    found = Requirement(line.partition(": ")[2]).marker
    assert found.evaluate({"os_name": "nt", "extra": "x"})
    assert not found.evaluate({"os_name": "nt", "extra": ""})
