"""The order of functions in a library for 64-bit ARM, linked by the cross compiler."""

from test.bazel.link_order import layout
from test.bazel.made import made

_LIBRARY = made("test/bazel/link_order/libordered.so")


def test_the_library_is_for_arm():
    assert layout.machine(_LIBRARY) == "AArch64"


def test_the_functions_are_first_and_in_order():
    names = [function.name for function in layout.functions(_LIBRARY, "aarch64-linux-gnu-")]
    # $x marks the start of code.
    assert [n for n in names if n != "$x"][:3] == ["often_first", "often_second", "often_third"]
