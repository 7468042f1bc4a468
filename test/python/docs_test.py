"""The Python code in the documentation runs, and its assertions hold."""

import re
from pathlib import Path

import pytest

import torch_xla_lite

_PAGES = ("README.md", "docs/export.md", "docs/extensions.md", "docs/interop.md", "docs/usage.md")


def _blocks() -> list[tuple[str, str]]:
    return [
        (page, code)
        for page in _PAGES
        for code in re.findall(r"^```python\n(.*?)^```$", Path(page).read_text(), re.M | re.S)
    ]


@pytest.mark.parametrize(("page", "code"), _blocks(), ids=lambda value: value.splitlines()[0])
def test_code_of_a_page_runs(page: str, code: str):
    torch_xla_lite.debug.reset_metrics()
    exec(compile(code, page, "exec"), {})
