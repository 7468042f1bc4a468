"""Libraries linked with and without an order of functions."""

import ctypes
from pathlib import Path

from test.bazel.link_order import layout
from test.bazel.made import made

_FOLDER = Path("test/bazel/link_order")
_ORDER = ["often_first", "often_second", "often_third"]
_ORDERED = made(f"{_FOLDER}/libordered.so")


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


def test_the_functions_are_first_and_in_order():
    functions = layout.functions(_ORDERED)
    assert [function.name for function in functions[:3]] == _ORDER
    assert functions[0].address == layout.text_section(_ORDERED)[0]


def test_the_functions_still_work():
    library = ctypes.CDLL(str(_ORDERED.resolve()))
    assert [library.often_first(6), library.often_third(6), library.seldom_last(6)] == [3, 2, 2]


def test_no_function_is_missing():
    assert set(_names("libordered.so")) == set(_names("libplain.so"))
