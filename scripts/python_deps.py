#!/usr/bin/env python3
"""Writes what BUILD files would repeat: which targets each Python file uses, and all folders.

    python scripts/python_deps.py             # after a change of imports, for a new folder
    python scripts/python_deps.py --check     # writes nothing; exit code 1 if a list is out of date

    FOLDER/python_deps.bzl    for each folder of the root: Python file -> the targets that it uses,
                              if any; "nightly" -> the tests with cases that are marked so;
                              "only_nightly" -> those whose `pytestmark` marks all cases
    bazel/packages.bzl        all folders with a BUILD file

A file uses what it imports, in functions, too. A test also uses the scripts whose paths are among
its strings, and the conftest.py beside it. To import torch_xla_lite.x or scripts.x from elsewhere
runs the __init__.py of that folder; lowerings are tested without it. What cannot be seen here is in
the BUILD file: data, the lowerings that a test runs, programs.
"""

import argparse
import ast
import functools
import itertools
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from bazel.pybuild.dist import sources  # noqa: E402

# It imports a command when that is called; users of the others do not depend on all of them.
_LAZY = "torch_xla_lite/commands/__init__.py"
_ALONE = ("torch_xla_lite", "lowering")
_DEPS = '''\
"""Python file of each folder -> the targets that it uses. Written by scripts/python_deps.py."""

PYTHON_DEPS = {
'''
# Path of each list, relative to the root -> what it should contain, in the tree of a root.
Texts = Callable[[Path], dict[str, str]]
_PACKAGES = '''\
"""The folders with a BUILD file, without the root. Written by scripts/python_deps.py."""

'''


def texts(root: Path) -> dict[str, str]:
    """Path of each list, relative to the root -> what it should contain."""
    paths = [Path(path) for path in sources.all_files(root)]
    packages = sorted(_folder(path) for path in paths if path.name == "BUILD.bazel")
    folders = _filled(f"PACKAGES = {quoted(p for p in packages if p != '.')}", " " * 4)
    written = {"bazel/packages.bzl": f"{_PACKAGES}{folders}"}
    # The folders for which a BUILD file makes targets.
    made = {p for p in packages if "lite_py_files(" in content(root / p / "BUILD.bazel")}
    files = {str(path) for path in paths if path.suffix == ".py" and _folder(path) in made}
    blocks: dict[str, str] = {}
    for package, inside in itertools.groupby(sorted(files, key=lambda f: (_folder(f), f)), _folder):
        tests: dict[str, list[str]] = {"nightly": [], "only_nightly": [], "": []}
        lines = ""
        for file in inside:
            if used := _labels(root, file, files):
                lines += entry(Path(file).stem, quoted(used))
            tests[_nights(root / file)].append(Path(file).stem)
        lines += "".join(entry(key, quoted(x)) for key, x in tests.items() if key and x)
        place = f"{package.partition('/')[0]}/python_deps.bzl"
        block = f'    "{package}": {{\n{lines}    }},\n' if lines else ""
        blocks[place] = blocks.get(place, "") + block
    return written | {place: f"{_DEPS}{block}}}\n" for place, block in blocks.items()}


def outdated(root: Path, texts: Texts = texts) -> dict[str, str]:
    """The lists that do not contain what they should -> what that is."""
    return {path: text for path, text in texts(root).items() if content(root / path) != text}


def content(file: Path) -> str:
    """The text of a file; empty if there is none."""
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _folder(file: str | Path) -> str:
    return str(Path(file).parent)


@functools.lru_cache(maxsize=1)  # The next question is about the same file.
def _nodes(code: str) -> list[ast.AST]:
    """The nodes of a source, beginning with the module."""
    return list(ast.walk(ast.parse(code)))


def _nights(file: Path) -> str:
    """Whether all cases of a test are marked, or some."""
    nodes = _nodes(content(file)) if file.stem.endswith("_test") else []
    for node in nodes[0].body if nodes else ():
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            marks = getattr(node.value, "elts", [node.value])
            if "pytest.mark.nightly" in map(ast.unparse, marks):
                return "only_nightly"
    names = {getattr(node, "attr", getattr(node, "id", "")) for node in nodes}
    return "nightly" if names & {"nightly", "mostly_nightly", "few_daily"} else ""


def entry(key: str, value: str) -> str:
    """The lines of a key in the dictionary of a folder."""
    return _filled(f'        "{key}": {value},', " " * 12)


def _filled(line: str, margin: str) -> str:
    """A line of Starlark, as several if it is long; the others have a margin."""
    return textwrap.fill(line, 120, subsequent_indent=margin, break_on_hyphens=False) + "\n"


def quoted(words: Iterable[str]) -> str:
    """A list of strings in Starlark."""
    words = ", ".join(f'"{word}"' for word in words)
    return f"[{words}]"


def _labels(root: Path, file: str, files: set[str]) -> list[str]:
    """Labels of what a file uses, those of its own folder first."""
    nodes = _nodes(content(root / file))
    used = {found for name in _imports(nodes, file) for found in _files(name, file, files)}
    if file.endswith("_test.py"):
        strings = {node.value for node in nodes if isinstance(node, ast.Constant)}
        used |= {path for path in strings & files if path.startswith("scripts/")}
        used |= {f"{_folder(file)}/conftest.py"} & files
    places = sorted((_folder(path) != _folder(file), path) for path in used - {file})
    return [f"{f'//{_folder(path)}' if other else ''}:{Path(path).stem}" for other, path in places]


def _imports(nodes: list[ast.AST], file: str) -> Iterator[tuple[str, ...]]:
    """Dotted names that a file imports: modules, or names in them."""
    folders = Path(file).parts[:-1]
    for node in nodes[0].body if file == _LAZY else nodes:
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = folders[: len(folders) + 1 - node.level] if node.level else ()
            module = (*package, *(node.module.split(".") if node.module else ()))
            yield from ((*module, alias.name) for alias in node.names)


def _files(name: tuple[str, ...], user: str, files: set[str]) -> Iterator[str]:
    """What an import of the name runs."""
    places = ["/".join(parts) for parts in (name, name[:-1])]
    candidates = [f"{place}{end}" for place in places for end in (".py", "/__init__.py")]
    found = [file for file in candidates if file in files][:1]
    if name[0] != user.partition("/")[0] and name[:2] != _ALONE:
        found += {f"{name[0]}/__init__.py"} & files
    for file in found:
        # A package has imported its files before the rest of it runs.
        if not (file.endswith("/__init__.py") and Path(user).is_relative_to(_folder(file))):
            yield file


def run(description: str, texts: Texts, script: str) -> int:
    """The command line of a script that writes lists: path -> text. Returns the exit code."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = parser.parse_args().check
    wanted = outdated(ROOT, texts)
    for path, text in wanted.items():
        if not check:
            (ROOT / path).write_text(text, encoding="utf-8")
        print(f"{path} {'is out of date' if check else 'has changed'}.")
    if check and wanted:
        print(f"Write it again:  python {script}")
    return 1 if check and wanted else 0


if __name__ == "__main__":
    sys.exit(run(__doc__ or "", texts, "scripts/python_deps.py"))
