"""docs/api.md has one line for each public name."""

import ast
import functools
import re
from pathlib import Path

from test.lint.source_tree import files, text

_PAGE = Path("docs/api.md")


def _listed(file: Path) -> set[str]:
    """The names in `__all__` of a module."""
    assigned = (
        ast.literal_eval(node.value)
        for node in ast.parse(text(file)).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    return {name for names in assigned for name in names}


@functools.cache
def _public() -> set[str]:
    """The full names of what the modules of the package list."""
    modules = [file for file in files(".py") if file.parts[0] == "torch_xla_lite"]
    return {
        ".".join([*file.with_suffix("").parts, name]).replace(".__init__.", ".")
        for file in modules
        for name in _listed(file)
    }


def _described() -> list[str]:
    """The full names of the rows of the page, section by section."""
    sections = re.split(r"^## (.*)$", text(_PAGE), flags=re.MULTILINE)[1:]
    return [
        f"{heading.strip('`')}.{name}" if heading.startswith("`") else name
        for heading, body in zip(sections[::2], sections[1::2], strict=True)
        for name in re.findall(r"^\| `([\w.]+)` \|", body, re.MULTILINE)
    ]


def test_each_public_name_has_one_line():
    described = _described()
    assert len(described) == len(set(described))
    missing = sorted(_public() - set(described))
    assert not missing, f"{_PAGE}: add {', '.join(missing)}"


def test_the_page_names_only_what_modules_list():
    # Modules that a program imports by their whole name list nothing.
    sections = {name.rpartition(".")[0] for name in _public()}
    gone = [
        name
        for name in _described()
        if name.rpartition(".")[0] in sections and name not in _public()
    ]
    assert not gone, f"{_PAGE}: remove {', '.join(gone)}"
