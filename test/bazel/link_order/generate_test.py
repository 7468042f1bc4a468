"""What linkers are given to place functions in an order."""

from pathlib import Path

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


def _driver(folder: Path, script: str) -> list[str]:
    """A program that links nothing and says what it is told to."""
    program = folder / "driver"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return [str(program)]


def test_symbols_are_read_once_each_without_comments():
    assert generate.read_symbols("# a list\n_Za\n\n_Zb  # twice\n_Za\n") == ["_Za", "_Zb"]


@pytest.mark.parametrize("name", ["a*", "two words", "f(int)", "a;b"])
def test_what_is_no_mangled_name_is_refused(name: str):
    with pytest.raises(SystemExit, match="is not the mangled name"):
        generate.read_symbols(name)


def test_functions_are_put_first_in_text_a_statement_each():
    lines = generate.insert(_SCRIPT, ["a", "b"]).splitlines()
    start = lines.index("  .text           :")
    assert lines[start + 2 : start + 5] == [
        "    *(.text.a .text.a.* .text.hot.a .text.hot.a.*)",
        "    *(.text.b .text.b.* .text.hot.b .text.hot.b.*)",
        "    *(.text.unlikely)",
    ]


def test_a_constructor_is_also_looked_for_under_its_other_name():
    (line,) = set(generate.insert(_SCRIPT, ["_ZN1AC1Ev"]).splitlines()) - set(_SCRIPT.splitlines())
    assert " .text._ZN1AC2Ev " in line


def test_the_rest_of_the_script_stays_as_it_is():
    lines = generate.insert(_SCRIPT, ["a"]).splitlines()
    assert [line for line in lines if ".text.a" not in line] == _SCRIPT.splitlines()


@pytest.mark.parametrize("count", [0, 2])
def test_a_script_without_one_text_section_is_refused(count: int):
    with pytest.raises(SystemExit, match=f"has {count} sections .text, and not one"):
        generate.insert("  .text : {\n}\n" * count, ["a"])


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("GNU ld (GNU Binutils for Debian) 2.40", "gnu"),
        ("GNU gold (GNU Binutils for Debian 2.40) 1.16", "gold"),
        ("Debian LLD 14.0.6 (compatible with GNU linkers)", "lld"),
        ("LLD 18.1.3 (compatible with GNU linkers)", "lld"),
        ("mold 1.10.1 (compatible with GNU ld)", "mold"),
    ],
)
def test_linkers_are_known_by_what_they_say(said: str, kind: str):
    assert generate.linker_kind(said) == kind


def test_an_unknown_linker_is_refused():
    with pytest.raises(SystemExit, match="No linker that is known here"):
        generate.linker_kind("ld64 1.2")


def test_lld_is_given_symbols(tmp_path: Path):
    driver = _driver(tmp_path, "echo LLD 18.1.3")
    content, options = generate.ordering(driver, ["a", "b"], "order.lds")
    assert content == "a\nb\n"
    assert options == ["-Wl,--symbol-ordering-file,order.lds", "-Wl,--no-warn-symbol-ordering"]


def test_mold_is_refused_with_the_way_out(tmp_path: Path):
    driver = _driver(tmp_path, "echo 'mold 1.10.1 (compatible with GNU ld)'")
    with pytest.raises(SystemExit, match="--linkopt=-fuse-ld=bfd"):
        generate.ordering(driver, ["a"], "order.lds")


def test_a_linker_that_prints_no_script_is_an_error(tmp_path: Path):
    driver = _driver(tmp_path, "echo GNU ld 2.40")
    with pytest.raises(SystemExit, match=r"no linker script:\nGNU ld 2.40\n\nBuild without"):
        generate.ordering(driver, ["a"], "order.lds")


def test_a_linker_that_fails_is_an_error_with_its_message(tmp_path: Path):
    driver = _driver(tmp_path, "echo broken >&2; exit 1")
    with pytest.raises(SystemExit, match="failed:\nbroken"):
        generate.ordering(driver, ["a"], "order.lds")


def test_the_script_is_the_one_for_shared_objects():
    driver = ["gcc", "-shared", "-fuse-ld=bfd"]
    assert generate.default_script(driver) != generate.default_script(["gcc", "-fuse-ld=bfd"])


def test_files_are_whole_or_absent(tmp_path: Path):
    symbols, options, script = tmp_path / "symbols", tmp_path / "options", tmp_path / "script"
    symbols.write_text("a\n")
    failing = _driver(tmp_path, "exit 1")
    with pytest.raises(SystemExit):
        generate.main([str(symbols), str(options), str(script), "--", *failing])
    assert not options.exists() and not script.exists()
