"""MODULE.bazel and WORKSPACE declare the same external dependencies."""

import re
from pathlib import Path

_NAME = re.compile(r'^ {4}"(\w+)"', re.MULTILINE)


def _repositories() -> list[str]:
    """The repositories that both files declare."""
    return _NAME.findall(Path("bazel/external.bzl").read_text())


def test_the_module_uses_every_repository():
    used = Path("MODULE.bazel").read_text().partition("use_repo(")[2]
    assert _NAME.findall(used) == _repositories()


def test_both_load_the_same_list():
    for file in ("repositories.bzl", "extensions.bzl"):
        code = Path("bazel", file).read_text()
        assert 'load("//bazel:external.bzl", "declare_external_repositories")' in code
        assert not re.search(r"\brepository\(", code)
