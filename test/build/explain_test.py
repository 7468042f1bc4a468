"""Causes of actions in logs that two versions of Bazel have recorded, and their text."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bazel.pybuild import report
from bazel.pybuild.errors import BuildError
from bazel.pybuild.why import causes, execution_log, explanation
from bazel.pybuild.why.execution_log import Spawn
from test.build import logs

_VARIABLES: Mapping[str, int] = {"CC": 1}
_OUTSIDE = "external/local_config_cc/builtin_include_directory_paths"


@pytest.fixture(params=["4.2.3", "7.7.1"])
def spawns(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Spawn]:
    """The compilations of two sources, an archive and a link."""
    log = tmp_path_factory.mktemp("log") / "execution.bin"
    logs.unpack(request.param, "spawns", log)
    return [spawn for spawn in execution_log.read(log) if spawn.mnemonic.startswith("Cpp")]


def _explain(
    root: Path, spawns: list[Spawn], variables: Mapping[str, int] = _VARIABLES
) -> list[causes.Action]:
    return causes.explain(spawns, variables, _VARIABLES, root)


def _causes(
    root: Path, spawns: list[Spawn], variables: Mapping[str, int] = _VARIABLES
) -> set[tuple[str, str]]:
    """All causes of a build."""
    actions = _explain(root, spawns, variables)
    return {(cause.kind, cause.name) for action in actions for cause in action.causes}


def _text(actions: list[causes.Action], *, succeeded: bool = True) -> str:
    executed = json.loads(json.dumps([action.as_json() for action in actions]))
    return explanation.text({"succeeded": succeeded, "executed": executed})


def _with(mapping: Mapping[str, str], **changes: Any) -> dict[str, str]:
    return {**mapping, **changes}


def test_without_a_record_or_with_half_of_one_every_action_runs_for_the_first_time(
    tmp_path: Path, spawns: list[Spawn]
):
    assert "No earlier build is recorded to compare with." in _text(_explain(tmp_path, spawns))
    for record in (tmp_path / causes.FOLDER).iterdir():
        record.write_bytes(record.read_bytes()[:50])
    assert _causes(tmp_path, spawns) == {("first run", "")}


def test_an_action_that_nothing_changed_for_had_lost_its_output(
    tmp_path: Path, spawns: list[Spawn]
):
    _explain(tmp_path, spawns)
    actions = _explain(tmp_path, spawns[:1])
    assert actions[0].causes == (causes.Cause("output", ""),)
    assert actions[0].same_result
    assert "output missing or overwritten" in _text(actions)


def test_another_compiler_is_a_changed_tool(tmp_path: Path, spawns: list[Spawn]):
    _explain(tmp_path, spawns)
    others = [spawn._replace(properties={"toolchain": "other"}) for spawn in spawns]
    assert _causes(tmp_path, others) == {("tool", "compiler, assembler, linker or C library")}


def test_a_changed_variable_of_an_action_has_both_values(tmp_path: Path, spawns: list[Spawn]):
    _explain(tmp_path, spawns)
    spawn = spawns[0]._replace(variables=_with(spawns[0].variables, LANG="C"))
    assert _causes(tmp_path, [spawn]) == {("environment variable", "LANG: unset -> C")}


def test_a_flag_is_of_a_variable_only_if_it_differs_from_the_run_before(
    tmp_path: Path, spawns: list[Spawn]
):
    assert _causes(tmp_path, spawns[:1], {"CC": 2}) == {("first run", "; changed variable: CC")}
    edited = spawns[0]._replace(arguments=(*spawns[0].arguments, "-g"))
    assert _causes(tmp_path, [edited], {"CC": 2}) == {("flag", "-g added")}
    assert _causes(tmp_path, spawns[:1]) == {("flag", "-g removed; changed variable: CC")}


def test_the_order_of_arguments_counts(tmp_path: Path, spawns: list[Spawn]):
    _explain(tmp_path, spawns)
    spawn = spawns[0]._replace(arguments=tuple(reversed(spawns[0].arguments)))
    assert _causes(tmp_path, [spawn]) == {("flag", "order of the arguments")}


def test_files_of_packages_are_counted_and_not_listed(tmp_path: Path, spawns: list[Spawn]):
    more = [f"external/torch/include/{number}.h" for number in range(20)]
    with_headers = spawns[0]._replace(inputs=_with(spawns[0].inputs, **dict.fromkeys(more, "1")))
    _explain(tmp_path, [with_headers])
    inputs = _with(spawns[0].inputs, **dict.fromkeys(more, "2"), **{_OUTSIDE: "other"})
    text = _text(_explain(tmp_path, [with_headers._replace(inputs=inputs)]))
    assert "20 outside files, such as external/torch/include/0.h: 1 action" in text
    assert f"outside file {_OUTSIDE}: 1 action" in text


def test_below_each_change_are_its_actions_and_last_what_other_actions_caused(
    tmp_path: Path, spawns: list[Spawn]
):
    source, made, library = "torch_xla_lite/a.cc", "bazel-out/k8-opt/bin/a.o", "a.so"
    (compiled, *_, linked) = spawns

    def build(version: str) -> list[causes.Action]:
        compiles = compiled._replace(
            inputs={source: version}, outputs=(made,), products={made: version}
        )
        links = linked._replace(
            mnemonic="CppLink", inputs={made: version}, outputs=(library,), products={}
        )
        return _explain(tmp_path, [links, compiles])

    build("1")
    assert _text(build("2")).split("\n\n") == [
        "2 actions ran; 0 from a cache",
        f"file {source}: 1 action\n  compile  a.o",
        f"outputs of these actions: 1 action\n  link  {library}  same result",
        "1 of 2 actions rebuilt identical output; these actions were unnecessary.",
    ]


def test_a_failed_run_is_not_what_the_next_is_compared_with(tmp_path: Path, spawns: list[Spawn]):
    source = "torch_xla_lite/csrc/ir/shape.cc"
    spawn = next(spawn for spawn in spawns if source in spawn.inputs)
    _explain(tmp_path, [spawn])
    edited = spawn._replace(inputs=_with(spawn.inputs, **{source: "2"}))
    (failed,) = _explain(tmp_path, [edited._replace(failed=True, products={})])
    assert failed.causes == (causes.Cause("file", source),)
    assert not failed.same_result
    assert _causes(tmp_path, [edited]) == {("file", source)}
    assert _text([failed], succeeded=False).startswith(
        "The last build failed; its messages say why. Until then:\n1 action ran"
    )


def test_a_build_that_ran_no_action_is_one_sentence():
    assert _text([]).startswith("The last build ran no action: ")
    assert _text([], succeeded=False).startswith("The last build failed before it ran an action; ")


@pytest.mark.parametrize("content", [None, "", "{}"])
def test_without_a_build_the_error_names_the_command(tmp_path: Path, content: str | None):
    if content is not None:
        (tmp_path / "build").mkdir()
        (tmp_path / report.FILE).write_text(content)
    with pytest.raises(BuildError, match=r"python setup\.py develop"):
        report.last(tmp_path)
