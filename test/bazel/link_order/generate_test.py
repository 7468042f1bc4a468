"""What linkers are given to place functions in an order."""

import pytest

from bazel.link_order import generate

_SCRIPT = """SECTIONS
{
  .init           : { KEEP (*(SORT_NONE(.init))) }
  .text           :
  {
    *(.text.unlikely)
    *(.text .stub)
  }
  .text.other : { *(.other) }
}
"""


def test_symbols_are_read_once_each_without_comments():
    assert generate.read_symbols("# a list\n_Za\n\n_Zb  # twice\n_Za\n") == ["_Za", "_Zb"]


def test_functions_are_put_first_in_text_in_their_order():
    lines = generate.insert(_SCRIPT, ["a", "b"]).splitlines()
    start = lines.index("  .text           :")
    assert lines[start + 2 : start + 7] == [
        "    *(.text.a .text.a.*)",
        "    *(.text.hot.a .text.hot.a.*)",
        "    *(.text.b .text.b.*)",
        "    *(.text.hot.b .text.hot.b.*)",
        "    *(.text.unlikely)",
    ]


def test_a_constructor_is_also_looked_for_under_its_other_name():
    assert "*(.text._ZN1AC2Ev " in generate.insert(_SCRIPT, ["_ZN1AC1Ev"])


def test_the_rest_of_the_script_stays_as_it_is():
    lines = generate.insert(_SCRIPT, ["a"]).splitlines()
    assert [line for line in lines if ".a" not in line] == _SCRIPT.splitlines()


@pytest.mark.parametrize("count", [0, 2])
def test_a_script_without_one_text_section_is_refused(count: int):
    with pytest.raises(SystemExit, match=f"has {count} .text sections instead of one"):
        generate.insert("  .text : {\n}\n" * count, ["a"])


@pytest.mark.parametrize("command", ["echo 'GNU gold 1.16'", "echo broken >&2; exit 1"])
def test_a_linker_that_prints_no_script_is_an_error_with_its_message(command: str):
    with pytest.raises(SystemExit, match=r"no script of GNU ld:\n(GNU gold|broken)"):
        generate.default_script(["/bin/sh", "-c", command])


def test_the_script_is_the_one_for_shared_objects():
    driver = ["gcc", "-shared", "-fuse-ld=bfd"]
    assert generate.default_script(driver) != generate.default_script(["gcc", "-fuse-ld=bfd"])
