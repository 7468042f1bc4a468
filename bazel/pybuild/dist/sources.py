"""Which files of the tree belong to the package, and which to a source distribution.

    package_files(root)     # torch_xla_lite/__init__.py, ...: what a wheel copies
    all_files(root)         # those, C++ sources, setup.py, tests ...: what a developer needs

git is not asked: a source distribution has none, and has to give the same wheel.
"""

from collections.abc import Iterator
from pathlib import Path

PACKAGE = "torch_xla_lite"

# In the root of the tree; those of them that are there.
FILES = (
    ".bazelignore",
    ".bazelrc",
    ".bazeliskrc",
    ".clang-format",
    "BUILD.bazel",
    "CONTRIBUTING.md",
    "LICENSE",
    "MODULE.bazel",
    "README.md",
    "WORKSPACE",
    "pyproject.toml",
    "requirements-cuda.txt",
    "requirements.txt",
    "setup.py",
)
_FOLDERS = ("bazel", "docs", "scripts", "test", "third_party", PACKAGE)

# What is read when the package runs.
_PACKAGED = frozenset({".py", ".pyi", ".typed"})
# Kinds of sources. Named, so that backups, objects and logs of a tree in use stay out.
_CODE = {".bazel", ".bzl", ".cc", ".cu", ".cuh", ".h", ".sh"}
_DATA = {".json", ".md", ".svg", ".toml", ".tpl", ".txt"}
_SOURCES = _PACKAGED | _CODE | _DATA
_WITHOUT_SUFFIX = frozenset({"BUILD", "LICENSE", "WORKSPACE"})
# Written by a build, among the sources.
_PRODUCTS = frozenset({"_build_info.py"})


def package_files(root: Path) -> list[str]:
    """Python sources of the package, relative to the root, without what a build has put there."""
    return [path for path in _walk(root, PACKAGE) if Path(path).suffix in _PACKAGED]


def all_files(root: Path) -> list[str]:
    """All that is written by hand, relative to the root, without what a build has put there."""
    found = [name for name in FILES if (root / name).is_file()]
    for folder in _FOLDERS:
        found += [
            path
            for path in _walk(root, folder)
            if Path(path).suffix in _SOURCES or Path(path).name in _WITHOUT_SUFFIX
        ]
    return sorted(found)


def _walk(root: Path, folder: str) -> Iterator[str]:
    for file in sorted((root / folder).rglob("*")):
        path = file.relative_to(root)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in path.parts)
        if not hidden and file.is_file() and file.name not in _PRODUCTS:
            yield str(path)
