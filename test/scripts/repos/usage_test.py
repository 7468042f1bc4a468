"""Where the tool refuses, what it exits with, and that its JSON is what its schema says."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from test.scripts.repos.world import ROOT, World

_SCHEMA = json.loads((ROOT / "scripts" / "repos" / "report.schema.json").read_text())


def _without_allow_root(world: World) -> tuple[int, str]:
    words = [word for word in world.command("--dry-run") if word != "--allow-root"]
    done = subprocess.run(words, env=world.environ, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused")
def test_root_is_refused_with_the_option_that_allows_it(world: World):
    world.pair()
    code, output = _without_allow_root(world)
    assert (code, "--allow-root" in output) == (2, True)


@pytest.mark.skipif(os.geteuid() == 0, reason="somebody else has nothing to allow")
def test_others_need_no_option(world: World):
    world.pair()
    assert _without_allow_root(world)[0] == 0


@pytest.mark.parametrize("name", ["TORCH_XLA_LITE_CONTAINER", "REMOTE_CONTAINERS", "CODESPACES"])
def test_the_development_container_is_refused(world: World, name: str):
    server, clone = world.pair()
    server.commit()
    before = clone.everything()
    world.environ.pop("TORCH_XLA_LITE_CONTAINER")
    ran = world.run(**{name: "true"})
    assert (ran.code, ran.out, clone.everything()) == (2, "", before)
    assert "development container" in ran.err


@pytest.mark.parametrize("found", ["2.29.3", "none"])
def test_a_git_that_is_too_old_or_not_there_is_refused(world: World, found: str):
    world.pair()
    old = world.wrapped_git("echo git version 2.29.3; exit")
    ran = world.run(**({"PATH": str(world.folder)} if found == "none" else old))
    assert (ran.code, f"git 2.30 or newer is needed, found: {found}." in ran.err) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        ["--no-such-option"],
        ["--rebase", "--merge"],
        ["--dry-run", "--plan"],
        ["--timeout=0"],
        ["--timeout=nan"],
        ["--timeout=inf"],
        ["-j0"],
        ["--autostash"],
        ["--keep-untracked"],
        ["--to=/no/such/file"],
        ["freeze"],
        ["--retries=-1"],
        ["no-such-repository"],
        ["-b", "no-such-repository"],
        ["undo", "no-such-run"],
        ["--config=/no/such/file"],
    ],
)
def test_wrong_usage_exits_with_two_and_says_why(world: World, words: list[str]):
    world.pair()
    ran = world.run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.strip()


def test_help_lists_the_exit_codes(world: World):
    ran = world.run("--help")
    assert ran.code == 0
    assert all(f"\n  {code} " in ran.out for code in (0, 1, 2, 3, 130))


def test_the_variables_of_a_hook_that_calls_us_do_no_harm(world: World):
    server, clone = world.pair()
    other = world.init(world.folder / "other")
    new, before = server.commit(), other.everything()
    names = {"GIT_DIR": ".git", "GIT_WORK_TREE": ".", "GIT_INDEX_FILE": ".git/index"}
    assert world.run(**{n: str(other.path / place) for n, place in names.items()}).code == 0
    assert (clone.head, other.everything()) == (new, before)


def test_settings_that_would_do_more_do_nothing(world: World):
    server, clone = world.pair()
    settings = {
        "fetch.prune": "true",
        "fetch.pruneTags": "true",
        "merge.ff": "false",
        "merge.autoStash": "true",
        "pull.rebase": "true",
        "rebase.autoStash": "true",
        "rebase.updateRefs": "true",
        "submodule.recurse": "true",
        "status.showUntrackedFiles": "no",
        "core.quotePath": "true",
        "color.ui": "always",
    }
    for key, value in settings.items():
        clone.git("config", key, value)
    clone.git("update-ref", "refs/remotes/origin/gone", "HEAD")
    clone.git("tag", "mine")
    new = server.commit()
    clone.write("mine", "untracked\n")
    before = clone.refs()
    assert world.run().code == 0
    before |= {"refs/heads/main": new, "refs/remotes/origin/main": new}
    assert clone.refs() == before


def _problems(value: Any, schema: dict[str, Any], place: str = "$") -> list[str]:
    """What contradicts the schema, as far as report.schema.json uses the language of schemas."""
    if "$ref" in schema:
        return _problems(value, _SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], place)
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "null": type(None)}
    wanted = schema.get("type", [])
    types = tuple(kinds[name] for name in ([wanted] if isinstance(wanted, str) else wanted))
    if types and not isinstance(value, types):
        return [f"{place} is {value!r}"]
    found = [f"{place} lacks {key}" for key in schema.get("required", []) if key not in value]
    if value != schema.get("const", value) or value not in schema.get("enum", [value]):
        found.append(f"{place} is {value!r}")
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        found += [f"{place}.{key} is not described" for key in value if key not in properties]
        for key in set(value) & set(properties):
            found += _problems(value[key], properties[key], f"{place}.{key}")
    if isinstance(value, list):
        for i, inner in enumerate(value):
            found += _problems(inner, schema.get("items", {}), f"{place}[{i}]")
    return found


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ([], "report"),
        (["--dry-run"], "report"),
        (["--plan"], "report"),
        (["undo"], "report"),
        (["undo", "--list"], "runs"),
    ],
)
def test_the_json_is_what_its_schema_says(world: World, words: list[str], kind: str):
    server, clone = world.pair()
    _, second = world.pair("b")
    second.git("remote", "remove", "origin")
    server.commit()
    if words[:1] == ["undo"]:
        world.run()
    server.commit()
    clone.write("mine")
    content = world.run(*words).json
    assert _problems(content, _SCHEMA["$defs"][kind]) == []


def test_progress_and_errors_are_no_part_of_the_json(world: World):
    server, clone = world.pair()
    server.commit()
    clone.write("README", "mine\n")
    server.commit("README")
    ran = world.run()
    assert ran.err == ""
    assert ran.json["exit_code"] == ran.code == 1


def test_the_entry_point_refuses_an_old_interpreter(world: World):
    text = (ROOT / "scripts" / "update_repos.py").read_text()
    script = f"import sys; sys.version_info = (3, 8); exec({text!r}, {{'__name__': '__main__'}})"
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "needs Python 3.11" in done.stderr
