"""The tags of words are the same in C++ and in Python."""

import re
from pathlib import Path

from test.lint.source_tree import text

_CC = text(Path("torch_xla_lite/csrc/ops/words.h"))
_PYTHON = text(Path("torch_xla_lite/lowering/base/tags.py"))


def _shouted(name: str) -> str:
    """INT_LIST, for IntList."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


def test_the_tags_in_python_are_those_in_cc():
    in_cc = {_shouted(name): value for name, value in re.findall(r"^  k(\w+) = (\d+),", _CC, re.M)}
    assert len(in_cc) > 1
    assert dict(re.findall(r"^    ([A-Z_]+) = (\d+)$", _PYTHON, re.M)) == in_cc


def test_the_flag_of_wrapped_numbers_in_python_is_that_in_cc():
    (in_cc,) = re.findall(r"kWrappedNumber = (.+);", _CC)
    assert re.findall(r"^WRAPPED_NUMBER = (.+)$", _PYTHON, re.M) == [in_cc]
