"""The documentation: links resolve, and files, commands, variables and names in it exist."""

import functools
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from bazel.pybuild.dist import metadata
from test.lint.source_tree import ROOT, expect_none, files, text

_PAGES = [
    file
    for file in files(".md")
    if file.parts[0] in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs")
]
_PICTURES = [file for file in files(".svg") if file.parts[0] == "docs"]

# Files that a build writes, and files of torch.
_NOT_IN_THE_TREE = {
    ".bazelrc.generated.json",
    "build/report.json",
    "compile_commands.json",
    "c10/core/TensorImpl.h",
    "meta.json",
    "report.json",
    "torch/extension.h",
    "torch/library.h",
    "version.py",
}
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _prose(page: Path) -> str:
    return _FENCE.sub("", text(page))


@functools.cache
def _anchors(page: Path) -> set[str]:
    """Names of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-") for words in headings}


def _links(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", _prose(page))


def _code(page: Path) -> list[str]:
    """Code in a page, line by line, apart from Python code and printed output."""
    spans = re.findall(r"`([^`\n]+)`", _prose(page))
    shell = [code for language, code in _FENCE.findall(text(page)) if language == "sh"]
    return spans + [line.partition(" #")[0] for code in shell for line in code.splitlines()]


# Each page with each word of its code.
_WORDS = [
    (page, word.strip(",;")) for page in _PAGES for line in _code(page) for word in line.split()
]


@functools.cache
def _sources() -> str:
    return "\n".join(map(text, files(".bzl", ".bazelrc", ".py", ".sh", ".tpl", ".cc")))


def _link_fault(page: Path, link: str) -> str:
    """What is wrong with a link; empty if nothing is."""
    place, _, anchor = link.partition("#")
    target = (ROOT / page.parent / place).resolve() if place else ROOT / page
    if ":" in link:
        return "make it relative"
    if not target.exists():
        return "it leads to no file"
    if anchor and anchor not in _anchors(target.relative_to(ROOT)):
        return "it leads to no heading"
    return ""


def test_links_are_relative_and_lead_to_a_file_and_a_heading():
    links = [(page, link, _link_fault(page, link)) for page in _PAGES for link in _links(page)]
    expect_none(f"{page}: {link}: {fault}" for page, link, fault in links if fault)


def test_the_readme_links_to_every_page():
    linked = {link.partition("#")[0] for link in _links(Path("README.md"))}
    unlinked = {str(page) for page in _PAGES} - {"README.md"} - linked
    expect_none(f"README.md: link to {page}" for page in sorted(unlinked))


def test_package_indexes_get_no_relative_link_of_the_readme():
    relative = re.findall(r"\]\((?!https://|#)[^)]*\)", metadata.read(ROOT).description)
    expect_none(f"bazel/pybuild/dist/metadata.py: make {link[2:-1]} absolute" for link in relative)


def _is_file_name(word: str) -> bool:
    top = {file.parts[0] for file in files(".py", ".bazel", ".md") if len(file.parts) > 1}
    if not re.fullmatch(r"[\w.+/-]+", word) or word.startswith(("/", "-")):
        return False
    ending = re.search(r"\w\.(bazel|bzl|cc|cu|h|json|md|py|sh|svg|toml|txt)$", word)
    return bool(ending) or (
        "/" in word and word.partition("/")[0] in top and not word.endswith(".so")
    )


@functools.cache
def _is_in_tree(word: str) -> bool:
    """Whether it is a path, or the last parts of one: pages name `ir/node.h` where the folder is
    clear."""
    paths = files(
        ".bazel", ".bzl", ".cc", ".cu", ".h", ".json", ".md", ".py", ".sh", ".toml", ".txt"
    )
    return (
        word in _NOT_IN_THE_TREE
        or (ROOT / word).exists()
        or any(f"/{path.as_posix()}".endswith(f"/{word}") for path in paths)
    )


def test_files_exist():
    expect_none(
        f"{page}: there is no file {word}"
        for page, word in _WORDS
        if _is_file_name(word) and not _is_in_tree(word)
    )


def test_messages_of_the_troubleshooting_page_are_those_of_the_sources():
    rows = re.findall(r"^\| `([^`]+)` \|", text(Path("docs/troubleshooting.md")), re.MULTILINE)
    # Without the ends of lines in the middle of a message; `…` stands for what a source inserts.
    sources = re.sub(r'"\s*\+?\n\s*f?"', "", _sources())
    parts = [part.strip(" .") for row in rows for part in row.split("…")]
    expect_none(
        f"docs/troubleshooting.md: no source has the message {part!r}"
        for part in parts
        if part not in sources
    )


def _is_label(package: str, name: str | None) -> bool:
    if (ROOT / package / f"{name}.py").exists():
        return True
    build_file = Path(package, "BUILD.bazel")
    if not (ROOT / build_file).exists():
        return False
    return f'"{name or Path(package).name}"' in text(build_file)


def test_labels_of_bazel_exist():
    expect_none(
        f"{page}: there is no target {word}"
        for page, word in _WORDS
        if (label := re.fullmatch(r"//([\w/]+)(?::([\w.]+))?", word))
        if not _is_label(*label.groups())
    )


@functools.cache
def _setup_commands() -> set[str]:
    command = [sys.executable, "setup.py", "--help-commands"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^  (\w+) ", listed, re.MULTILINE))


def test_commands_of_setup_py_exist():
    expect_none(
        f"{page}: setup.py has no command {word}"
        for page in _PAGES
        for line in _code(page)
        for call in re.findall(r"python setup\.py((?: [a-z]\w+)+)", line)
        for word in call.split()
        if word not in _setup_commands()
    )


def test_variables_and_options_are_read_somewhere():
    expect_none(
        f"{page}: nothing reads {name[0]}"
        for page, word in _WORDS
        if (name := re.match(r"[A-Z]+_[A-Z_0-9]+(?==|$)|--[a-z][\w-]+", word))
        if name[0] not in _sources()
    )


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
    return bool(re.search(rf"\b{names[0]}\b", text(file.relative_to(ROOT))))


def test_names_of_the_package_exist():
    expect_none(
        f"{page}: there is no {name}"
        for page in _PAGES
        for name in sorted(set(re.findall(r"\btorch_xla_lite(?:\.[a-z_A-Z]\w*)+", text(page))))
        if not _defines(name)
    )


def _uses_of_a_picture(picture: Path) -> list[str]:
    """What it refers to; a picture is embedded alone."""
    links = re.findall(r"(?:href|src)=|https?:[^\"]+|@import|url\((?!#)", text(picture))
    return [link for link in links if link != "http://www.w3.org/2000/svg"]


def test_a_picture_needs_no_other_file():
    for picture in _PICTURES:
        ElementTree.fromstring(text(picture))
    expect_none(
        f"{picture}: remove {link}" for picture in _PICTURES for link in _uses_of_a_picture(picture)
    )


def test_a_picture_has_colours_for_dark_pages():
    expect_none(
        f"{picture}: add colours for prefers-color-scheme: dark"
        for picture in _PICTURES
        if "prefers-color-scheme: dark" not in text(picture)
    )


def test_files_in_a_picture_exist():
    named = {
        (picture, word.strip(","))
        for picture in _PICTURES
        for label in re.findall(r">([^<]+)<", text(picture))
        for word in label.split()
    }
    expect_none(
        f"{picture}: there is no file {word}"
        for picture, word in sorted(named)
        if _is_file_name(word) and not _is_in_tree(word)
    )
