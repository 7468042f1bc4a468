"""Libraries linked with and without an order of functions."""

import ctypes
from pathlib import Path

import pytest

from test.bazel.link_order import layout

_FOLDER = Path("test/bazel/link_order")
_ORDER = ["often_first", "often_second", "often_third"]
_LINKERS = pytest.mark.parametrize("name", ["libordered.so", "libordered_by_gnu_ld.so"])


def _names(library: str) -> list[str]:
    return [function.name for function in layout.functions(_FOLDER / library)]


def test_without_an_order_the_functions_are_in_source_order():
    names = [name for name in _names("libplain.so") if name.startswith(("often", "seldom"))]
    assert names == [
        "seldom_first",
        "often_second",
        "seldom_middle",
        "often_first",
        "often_third",
        "seldom_last",
    ]


@_LINKERS
def test_the_functions_are_adjacent_and_in_order(name: str):
    names = _names(name)
    start = names.index(_ORDER[0])
    assert names[start : start + 3] == _ORDER


def test_gnu_ld_places_the_functions_first():
    library = _FOLDER / "libordered_by_gnu_ld.so"
    assert _names(library.name)[:3] == _ORDER
    assert layout.functions(library)[0].address == layout.text_section(library)[0]


@_LINKERS
def test_the_functions_still_work(name: str):
    library = ctypes.CDLL(str((_FOLDER / name).resolve()))
    assert [library.often_first(6), library.often_third(6), library.seldom_last(6)] == [3, 2, 2]


@_LINKERS
def test_no_function_is_missing(name: str):
    assert set(_names(name)) == set(_names("libplain.so"))
