"""Why real builds of a small tree did what they did: one edit each."""

import re
import shutil
from pathlib import Path

import pytest

from test.build.nested import Nested

_ONE = '#include "torch_xla_lite/one.h"\n#include <stddef.h>\nint one() { return 1; }\n'
_TWO = '#include "torch_xla_lite/one.h"\nint two() { return one() + 1; }\n'
_OPTIONS = "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS"
_LIBRARY = "torch_xla_lite/lib/libtorch_xla_lite.so"


@pytest.fixture
def built(nested: Nested) -> Nested:
    """The tree with headers, after a `develop` without a cache."""
    headers = '    srcs = ["one.cc"],\n    hdrs = ["one.h", "unused.h"],\n'
    _replace(nested, '    srcs = ["one.cc"],\n', headers)
    for name, content in (("one.cc", _ONE), ("two.cc", _TWO), ("one.h", "int one();\n")):
        nested.write(name, content)
    nested.write("unused.h", "")
    _develop(nested)
    return nested


def _replace(tree: Nested, old: str, new: str) -> None:
    build_file = tree.root / "torch_xla_lite/BUILD.bazel"
    assert old in build_file.read_text()
    build_file.write_text(build_file.read_text().replace(old, new))


def _develop(tree: Nested, **environ: str) -> str:
    """The last line of a build that uses no cache."""
    environ = {_OPTIONS: "--disk_cache=", **environ}
    return tree.must("develop", **environ).stdout.splitlines()[-1]


def _explain(tree: Nested) -> str:
    return tree.must("explain").stdout


def _compiled(name: str) -> str:
    return f"torch_xla_lite/_objs/{name}/{name}.pic.o"


def test_an_edit_of_a_source_is_the_cause_of_its_compilation_which_is_that_of_a_link(
    built: Nested,
):
    # A header that is declared and not included is no cause.
    built.write("unused.h", "// edited\n")
    built.write("one.cc", _ONE.replace("1", "2"))
    assert _develop(built).endswith("; replaced libtorch_xla_lite.so")
    assert _explain(built).rstrip().split("\n\n") == [
        "2 actions ran; 0 from a cache",
        f"file torch_xla_lite/one.cc: 1 action\n  compile  {_compiled('one')}",
        f"outputs of these actions: 1 action\n  link  {_LIBRARY}",
    ]
    changed = {Path(output["path"]).name: output["changed"] for output in built.report()["outputs"]}
    assert changed == {"_build_info.py": False, "libtorch_xla_lite.so": True}


@pytest.mark.nightly
def test_a_flag_of_a_variable_is_named_with_the_variable(built: Nested):
    _develop(built, **{_OPTIONS: "--disk_cache= --copt=-DX=1"})
    variable = f"changed variable: {_OPTIONS}"
    assert f"flag -DX=1 added; {variable}: 2 actions" in _explain(built)
    _develop(built)
    assert f"flag -DX=1 removed; {variable}: 2 actions" in _explain(built)


@pytest.mark.nightly
def test_a_flag_of_a_build_file_is_named(built: Nested):
    with_flags = '    srcs = ["one.cc"],\n    copts = ["-DY"],\n    linkopts = ["-Wl,-z,now"],\n'
    _replace(built, '    srcs = ["one.cc"],\n', with_flags)
    _develop(built)
    text = _explain(built)
    assert "flag -DY added: 1 action" in text
    # The linker's flags are in a file. It may have run last with other variables.
    assert "flag -Wl,-z,now added" in text


def test_a_failed_build_says_so_and_what_it_ran(built: Nested):
    built.write("one.cc", "no C++\n")
    assert built.setup("develop").returncode == 1
    failed, block = _explain(built).rstrip().split("\n\n")
    assert failed.startswith("The last build failed; its messages say why. Until then:")
    assert block == f"file torch_xla_lite/one.cc: 1 action\n  compile  {_compiled('one')}  failed"


@pytest.mark.nightly
def test_a_record_that_cannot_be_written_ends_no_build(built: Nested):
    records = built.root / "build" / "actions"
    shutil.rmtree(records)
    records.write_text("")
    built.write("one.cc", _ONE.replace("return 1", "return 8"))
    process = built.setup("develop", **{_OPTIONS: "--disk_cache="})
    assert process.returncode == 0, process.stderr
    assert "; replaced libtorch_xla_lite.so" in process.stdout.splitlines()[-1]
    assert re.search(r"`setup.py explain` does not know .*/build/actions'", process.stderr)
    records.unlink()
