"""Lists the files of the tree that belong to the package and to a source distribution.

    package_files(root)     # torch_xla_lite/__init__.py, ...: what a wheel copies
    all_files(root)         # those, C++ sources, setup.py, tests ...: a source distribution

git is not used, because a tree from a source distribution has none and gives the same wheel.
"""

from collections.abc import Iterator
from pathlib import Path

PACKAGE = "torch_xla_lite"

# An entry point of torch calls this module, which must not import the package. So it is installed
# beside the package; the file in the tree follows.
AUTOLOAD = "torch_xla_lite_autoload.py"
AUTOLOAD_SOURCE = f"{PACKAGE}/device/autoload.py"

_FOLDERS = ("bazel", "docs", "scripts", "test", "third_party", PACKAGE)

# Kinds of files in a wheel.
_PACKAGED = frozenset({".json", ".py", ".pyi", ".typed"})
# Kinds of source files. A list, so that backups, object files and logs are left out.
_CODE = {".bazel", ".bzl", ".cc", ".cu", ".cuh", ".h", ".sh"}
_DATA = {".gz", ".md", ".png", ".svg", ".toml", ".tpl", ".txt"}
_SOURCES = _PACKAGED | _CODE | _DATA
_WITHOUT_SUFFIX = frozenset({"BUILD", "LICENSE", "WORKSPACE"})
# Written by a build, among the sources. Shared objects are the others.
_PRODUCTS = frozenset({"_build_info.py"})


def package_files(root: Path) -> list[str]:
    """Sources and data of the package, relative to the root, without products of a build."""
    return [path for path in _walk(root, PACKAGE) if Path(path).suffix in _PACKAGED]


def all_files(root: Path) -> list[str]:
    """All source files, relative to the root, without products of a build."""
    found = [name for name in root_files(root) if (root / name).is_file()]
    for folder in _FOLDERS:
        found += [
            path
            for path in _walk(root, folder)
            if Path(path).suffix in _SOURCES or Path(path).name in _WITHOUT_SUFFIX
        ]
    return sorted(found)


def is_product(path: str) -> bool:
    """Whether a build may write a path of the package, relative to the root."""
    file = Path(path)
    named = file.name in _PRODUCTS or ".so" in file.suffixes
    return named and file.parts[0] == PACKAGE and ".." not in file.parts


def root_files(root: Path) -> list[str]:
    """Names of the files in the root. Bazel reads the same list; its syntax is also Python's."""
    import ast

    code = ast.parse((root / "bazel" / "source_files.bzl").read_text(encoding="utf-8"))
    (assigned,) = [line for line in code.body if isinstance(line, ast.Assign)]
    return ast.literal_eval(assigned.value)


def _walk(root: Path, folder: str) -> Iterator[str]:
    for file in sorted((root / folder).rglob("*")):
        path = file.relative_to(root)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in path.parts)
        if not hidden and file.is_file() and file.name not in _PRODUCTS:
            yield str(path)
