"""The Python code of docs/mesh.md runs on eight devices, and prints what the page shows."""

import re
from pathlib import Path

import pytest

import torch_xla_lite as txl
from test.mesh import devices  # noqa: F401  before jax starts

pytestmark = pytest.mark.nightly


def test_the_code_of_the_page_runs(capsys: pytest.CaptureFixture[str]):
    page = Path("docs/mesh.md").read_text()
    blocks = re.findall(r"^```(python)?\n(.*?)^```$", page, re.M | re.S)
    names: dict[str, object] = {}
    try:
        for language, code in blocks:
            if language:
                exec(compile(code, "docs/mesh.md", "exec"), names)
    finally:
        txl.set_mesh(None)
    (shown,) = (text for _, text in blocks if text.startswith("name "))
    assert capsys.readouterr().out == shown
