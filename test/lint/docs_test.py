"""The documentation: links resolve, and files, commands, variables and names in it exist."""

import functools
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bazel.pybuild.dist import metadata
from test.lint.source_tree import ROOT, files

_PAGES = [
    file for file in files(".md") if file.parts[0] in ("README.md", "CONTRIBUTING.md", "docs")
]
_PICTURES = [file for file in files(".svg") if file.parts[0] == "docs"]

# Files that a build writes, and files of torch.
_NOT_IN_THE_TREE = {
    "build/report.json",
    "compile_commands.json",
    "c10/core/TensorImpl.h",
    "report.json",
    "torch/extension.h",
    "torch/library.h",
    "version.py",
}
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _text(page: Path) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def _prose(page: Path) -> str:
    return _FENCE.sub("", _text(page))


def _anchors(page: Path) -> set[str]:
    """Names of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


def _links(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", _prose(page))


def _code(page: Path) -> list[str]:
    """Code in a page, line by line, apart from Python code and printed output."""
    spans = re.findall(r"`([^`\n]+)`", _prose(page))
    shell = [code for language, code in _FENCE.findall(_text(page)) if language == "sh"]
    return spans + [line.partition(" #")[0] for code in shell for line in code.splitlines()]


def _words(page: Path) -> list[str]:
    return [word.strip(",;") for line in _code(page) for word in line.split()]


@functools.cache
def _sources() -> str:
    texts = files(".bzl", ".bazelrc", ".py", ".sh", ".tpl", ".cc")
    return "\n".join((ROOT / file).read_text(encoding="utf-8") for file in texts)


@pytest.mark.parametrize("page", _PAGES, ids=str)
def test_links_are_relative_and_lead_to_a_file_and_a_heading(page: Path):
    for link in _links(page):
        assert ":" not in link, f"{link} is not relative"
        place, _, anchor = link.partition("#")
        target = ROOT / page.parent / place if place else ROOT / page
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            assert anchor in _anchors(target.resolve().relative_to(ROOT)), f"{link}: no heading"


def test_the_readme_links_to_every_page():
    linked = {link.partition("#")[0] for link in _links(Path("README.md"))}
    assert {str(page) for page in _PAGES} - {"README.md"} <= linked


def test_package_indexes_get_no_relative_link_of_the_readme():
    assert not re.findall(r"\]\((?!https://|#)[^)]*\)", metadata.read(ROOT).description)


def _is_file_name(word: str) -> bool:
    top = {file.parts[0] for file in files(".py", ".bazel", ".md") if len(file.parts) > 1}
    if not re.fullmatch(r"[\w.+/-]+", word) or word.startswith(("/", "-")):
        return False
    ending = re.search(r"\w\.(bazel|bzl|cc|cu|h|json|md|py|sh|svg|toml|txt)$", word)
    return bool(ending) or (
        "/" in word and word.partition("/")[0] in top and not word.endswith(".so")
    )


def _is_in_tree(word: str) -> bool:
    """Whether it is a path, or the last parts of one: pages name `ir/node.h` where the folder is
    clear."""
    paths = files(
        ".bazel", ".bzl", ".cc", ".cu", ".h", ".json", ".md", ".py", ".sh", ".toml", ".txt"
    )
    return (ROOT / word).exists() or any(
        f"/{path.as_posix()}".endswith(f"/{word}") for path in paths
    )


@pytest.mark.parametrize("page", _PAGES, ids=str)
def test_files_exist(page: Path):
    named = {word for word in _words(page) if _is_file_name(word)} - _NOT_IN_THE_TREE
    assert [word for word in sorted(named) if not _is_in_tree(word)] == []


def test_messages_of_the_troubleshooting_page_are_those_of_the_sources():
    rows = re.findall(r"^\| `([^`]+)` \|", _text(Path("docs/troubleshooting.md")), re.MULTILINE)
    # Without the ends of lines in the middle of a message; `…` stands for what a source inserts.
    sources = re.sub(r'"\s*\+?\n\s*f?"', "", _sources())
    parts = [part.strip(" .") for row in rows for part in row.split("…")]
    assert [part for part in parts if part not in sources] == []


@pytest.mark.parametrize("page", _PAGES, ids=str)
def test_labels_of_bazel_exist(page: Path):
    labels = [re.fullmatch(r"//([\w/]+)(?::([\w.]+))?", word) for word in _words(page)]
    missing = []
    for package, name in (label.groups() for label in labels if label):
        build_file = (ROOT / package / "BUILD.bazel").read_text(encoding="utf-8")
        is_python_file = (ROOT / package / f"{name}.py").exists()
        if not is_python_file and f'"{name or Path(package).name}"' not in build_file:
            missing.append(f"//{package}:{name}")
    assert missing == []


@functools.cache
def _setup_commands() -> set[str]:
    command = [sys.executable, "setup.py", "--help-commands"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^  (\w+) ", listed, re.MULTILINE))


@pytest.mark.parametrize("page", _PAGES, ids=str)
def test_commands_of_setup_py_exist(page: Path):
    calls = [re.search(r"python setup\.py((?: [a-z]\w+)+)", line) for line in _code(page)]
    assert {word for call in calls if call for word in call[1].split()} <= _setup_commands()


@pytest.mark.parametrize("page", _PAGES, ids=str)
def test_variables_and_options_are_read_somewhere(page: Path):
    found = [re.match(r"[A-Z]+_[A-Z_0-9]+(?==|$)|--[a-z][\w-]+", word) for word in _words(page)]
    assert [name[0] for name in found if name and name[0] not in _sources()] == []


def _defines(path: str) -> bool:
    """Whether a dotted path, such as torch_xla_lite.debug.metrics, exists in the package."""
    place = ROOT
    names = path.split(".")
    while names and (place / names[0]).is_dir():
        place /= names.pop(0)
    if names and (place / f"{names[0]}.py").exists():
        file = place / f"{names.pop(0)}.py"
    else:
        file = place / "__init__.py"
    if not names:
        return True
    return bool(re.search(rf"\b{names[0]}\b", file.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", _PAGES, ids=str)
def test_names_of_the_package_exist(page: Path):
    named = set(re.findall(r"\btorch_xla_lite(?:\.[a-z_A-Z]\w*)+", _text(page)))
    assert [name for name in sorted(named) if not _defines(name)] == []


@pytest.mark.parametrize("picture", _PICTURES, ids=str)
def test_a_picture_needs_no_other_file_and_has_colours_for_dark_pages(picture: Path):
    text = _text(picture)
    ElementTree.fromstring(text)
    links = re.findall(r"(?:href|src)=|https?:[^\"]+|@import", text)
    assert set(links) == {"http://www.w3.org/2000/svg"}
    assert re.findall(r"url\((?!#)", text) == []
    assert "prefers-color-scheme: dark" in text


@pytest.mark.parametrize("picture", _PICTURES, ids=str)
def test_files_in_a_picture_exist(picture: Path):
    named = {
        word.strip(",")
        for text in re.findall(r">([^<]+)<", _text(picture))
        for word in text.split()
    }
    assert [
        word
        for word in sorted(named - _NOT_IN_THE_TREE)
        if _is_file_name(word) and not _is_in_tree(word)
    ] == []
