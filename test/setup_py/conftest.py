"""The tree in which the tests of setup.py build, one for all of them."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from test.build.nested import First, Nested


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="session")
def first_build(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Iterator[First]:
    tree = Nested(tmp_path_factory.mktemp("nested"), shared)
    # Otherwise Bazel leaves out of its profile what takes a short time.
    options = f"--profile={shared}/profile.gz --record_full_profiler_data"
    # What the start of an interpreter prints is no answer to a repository rule.
    (tree.site / "sitecustomize.py").write_text("print('sitecustomize says [1]', flush=True)\n")
    try:
        report = tree.develop(TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS=options)
        profile = gzip.decompress((shared / "profile.gz").read_bytes())
        yield First(tree, report, json.loads(profile))
    finally:
        tree.close()


@pytest.fixture
def nested(first_build: First) -> Nested:
    """The tree, whose sources and packages are those of before the first `develop`."""
    first_build.tree.restore()
    return first_build.tree


@pytest.fixture
def built(nested: Nested) -> Nested:
    """The tree after a `develop`."""
    nested.develop()
    return nested
