"""Why real builds of a small tree did what they did: one edit each."""

import os
import re
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from test.build.nested import Nested

_ONE = '#include "torch_xla_lite/one.h"\n#include <stddef.h>\nint one() { return 1; }\n'
_TWO = '#include "torch_xla_lite/one.h"\nint two() { return one() + 1; }\n'
_HEADER = "int one();\n"
_OPTIONS = "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS"
_LIBRARY = "torch_xla_lite/lib/libtorch_xla_lite.so"


@pytest.fixture
def built(nested: Nested) -> Nested:
    """The tree with headers, after a `develop` without a cache."""
    headers = '    srcs = ["one.cc"],\n    hdrs = ["one.h", "unused.h"],\n'
    _replace(nested, '    srcs = ["one.cc"],\n', headers)
    for name, content in (("one.cc", _ONE), ("two.cc", _TWO), ("one.h", _HEADER)):
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
    return re.sub(r" +\d+\.\d\d s", " N s", tree.must("explain").stdout)


def _blocks(tree: Nested) -> list[list[str]]:
    """The lines of `explain` in blocks, without its times."""
    return [
        [re.sub(r",? +N s", "", line) for line in block.splitlines()]
        for block in _explain(tree).split("\n\n")
    ]


def _executed(tree: Nested) -> list[dict[str, Any]]:
    return tree.report()["executed"]


def _compiled(name: str) -> str:
    return f"torch_xla_lite/_objs/{name}/{name}.pic.o"


def test_an_edit_of_a_source_is_the_start_of_a_chain(built: Nested):
    built.write("one.cc", _ONE.replace("1", "2"))
    assert _develop(built).endswith("; replaced libtorch_xla_lite.so")
    count, chain, path = _blocks(built)
    assert count == ["2 actions ran in; 0 from a cache"]
    assert chain == [
        "file torch_xla_lite/one.cc: 2 actions",
        f"  compile  {_compiled('one')}",
        f"    link  {_LIBRARY}",
    ]
    assert path == [
        "critical path:",
        "  Compiling torch_xla_lite/one.cc",
        f"  Linking {_LIBRARY}",
    ]
    assert all(action["seconds"] > 0 for action in _executed(built))
    changed = {Path(output["path"]).name: output["changed"] for output in built.report()["outputs"]}
    assert changed == {"_build_info.py": False, "libtorch_xla_lite.so": True}


@pytest.mark.nightly
def test_an_edit_of_a_header_compiles_all_that_include_it_and_links_once(built: Nested):
    built.write("one.h", "int one();\ninline int three() { return 3; }\n")
    built.write("one.cc", _ONE.replace("1", "three()"))
    built.write("two.cc", _TWO.replace("1", "three()"))
    _develop(built)
    text = _explain(built)
    assert "file torch_xla_lite/one.h: 3 actions, N s" in text
    assert text.count(_LIBRARY) == 2, "in the tree and in the critical path"
    (link,) = [line for line in text.splitlines() if line.strip().startswith("link")]
    assert link.endswith("and 1 other cause")
    assert re.search(r"file torch_xla_lite/two.cc: \d actions, N s\n  \d of them listed", text)


def test_a_comment_in_a_header_needed_nothing_and_the_last_line_says_so(built: Nested):
    built.write("one.h", "int one();\n// a comment\n")
    line = _develop(built)
    assert line.endswith("; 2 of 2 actions rebuilt identical output (see: python setup.py explain)")
    assert [action["same_result"] for action in _executed(built)] == [True, True]
    (_, chain, _, last) = _blocks(built)
    assert chain[0] == "file torch_xla_lite/one.h: 2 actions"
    assert last == ["2 of 2 actions rebuilt identical output; these actions were unnecessary."]


@pytest.mark.nightly
def test_a_header_that_is_not_included_is_not_a_cause(built: Nested):
    built.write("unused.h", "// edited\n")
    built.write("one.cc", _ONE.replace("1", "4"))
    _develop(built)
    assert [cause for action in _executed(built)[:1] for cause in action["causes"]] == [
        {"kind": "file", "name": "torch_xla_lite/one.cc"}
    ]


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
    assert "flag -DY added: 1 action, N s" in text
    # The linker's flags are in a file.
    assert "flag -Wl,-z,now added: 1 action, N s" in text


def test_an_action_whose_output_was_removed_runs_without_a_change(built: Nested):
    (built.root / "bazel-bin" / _compiled("two")).unlink()
    line = _develop(built)
    assert line.endswith("; 1 of 1 actions rebuilt identical output (see: python setup.py explain)")
    assert "output missing or overwritten" in _explain(built)


def test_a_failed_build_says_so_and_what_it_ran(built: Nested):
    built.write("one.cc", "no C++\n")
    assert built.setup("develop").returncode == 1
    failed, chain = _blocks(built)[:2]
    assert failed[0] == "The last build failed; its messages say why. Until then:"
    assert chain == [
        "file torch_xla_lite/one.cc: 1 action",
        f"  compile  {_compiled('one')}  failed",
    ]


_RUN_BAZEL = ("-m", "bazel.pybuild.commands.run_bazel", "--explain")


def _run_bazel(tree: Nested, *arguments: str) -> tuple[int, str]:
    process = tree.run(tree.python, *_RUN_BAZEL, *arguments)
    assert "Traceback" not in process.stderr
    return process.returncode, process.stdout


def test_a_command_of_bazel_is_explained_and_its_status_returned(built: Nested):
    target = "//torch_xla_lite:outputs"
    assert _run_bazel(built, "build", target) == (
        0,
        "The last build ran no action: nothing that it depends on had changed.\n",
    )
    built.write("two.cc", _TWO.replace("1", "5"))
    code, text = _run_bazel(built, "build", "--disk_cache=", target)
    assert code == 0
    assert "file torch_xla_lite/two.cc: 2 actions" in text
    built.write("two.cc", "no C++\n")
    code, text = _run_bazel(built, "build", target)
    assert (code, text.splitlines()[0]) == (
        1,
        "The last build failed; its messages say why. Until then:",
    )


@pytest.mark.nightly
def test_setup_py_knows_what_such_a_command_has_built(built: Nested):
    built.write("two.cc", _TWO.replace("1", "6"))
    _run_bazel(built, "build", "//torch_xla_lite:outputs")
    built.write("one.cc", _ONE.replace("1", "8"))
    _develop(built)
    text = _explain(built)
    assert "file torch_xla_lite/one.cc: 2 actions" in text
    assert "two.cc" not in text


@pytest.mark.nightly
def test_what_an_interrupted_bazel_has_run_is_remembered(built: Nested, tmp_path: Path):
    started = tmp_path / "started"
    slow = built.root / "slow"
    slow.mkdir()
    (slow / "BUILD.bazel").write_text(
        'genrule(name = "slow", srcs = ["//torch_xla_lite:lib/libtorch_xla_lite.so"],\n'
        f'    outs = ["out"], cmd = "touch {started}; sleep 600", local = True)\n'
    )
    built.write("two.cc", _TWO.replace("1", "7"))
    process = built.start(built.python, *_RUN_BAZEL, "build", "--disk_cache=", "//slow")
    while process.poll() is None and not started.exists():
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    printed, errors = process.communicate()
    assert (process.returncode, printed) == (8, ""), errors
    assert "Traceback" not in errors
    built.write("one.cc", _ONE.replace("1", "9"))
    _, text = _run_bazel(built, "build", "--disk_cache=", "//torch_xla_lite:outputs")
    assert "two.cc" not in text


@pytest.mark.nightly
def test_the_exit_code_is_that_of_bazel_whatever_cannot_be_explained(built: Nested):
    records = built.root / "build" / "actions"
    shutil.rmtree(records)
    records.write_text("")
    built.write("two.cc", _TWO.replace("1", "8"))
    options = ("build", "--disk_cache=", "//torch_xla_lite:outputs")
    command = (built.python, *_RUN_BAZEL, *options)
    process = built.run(*command)
    assert (process.returncode, process.stdout) == (0, "")
    assert re.search(r"`setup.py explain` does not know .*/build/actions'", process.stderr)
    built.write("two.cc", "no C++\n")
    process = built.run(*command)
    records.unlink()
    assert process.returncode == 1
    # Bazel says it two or three times.
    assert "Build did NOT complete" not in process.stderr


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
    built.write("one.cc", "int one() { return }\n")
    process = built.setup("develop")
    assert process.returncode == 1
    assert "The installed files have not changed." in process.stderr
    records.unlink()
    report = built.root / "build" / "report.json"
    report.unlink()
    report.mkdir()
    process = built.setup("develop")
    report.rmdir()
    assert process.returncode == 1
    assert re.search(r"`setup.py explain` does not know .*/build/report.json'", process.stderr)
