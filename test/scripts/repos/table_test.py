"""The table of repositories: what it says, what a user's file changes, which are selected."""

from pathlib import Path

import pytest

from scripts.repos import table
from scripts.repos.model import UsageError


def _read(tmp_path: Path, text: str) -> table.Table:
    file = tmp_path / "own.toml"
    file.write_text(text)
    return table.read(file, {})


def _ours(tmp_path: Path) -> table.Table:
    return table.read(None, {"XDG_CONFIG_HOME": str(tmp_path)})


def test_the_default_set_is_pytorch_vision_xla_and_this_project(tmp_path: Path):
    ours = _ours(tmp_path)
    assert table.select(ours, [], None, False) == ["pytorch", "vision", "xla", "torch_xla_lite"]
    assert [r.name for r in ours.entries.values() if r.optional] == ["vision"]


@pytest.mark.parametrize("name", ["pytorch", "vision", "xla"])
def test_an_upstream_has_an_https_and_an_ssh_form(tmp_path: Path, name: str):
    https, ssh = _ours(tmp_path).entries[name].upstream
    assert (https.startswith("https://"), ssh.startswith("git@")) == (True, True)


@pytest.mark.parametrize(
    ("base", "names"),
    [
        ("pytorch", ["pytorch", "vision", "xla", "torch_xla_lite"]),
        ("vision", ["vision", "xla", "torch_xla_lite"]),
        ("xla", ["xla", "torch_xla_lite"]),
        ("torch_xla_lite", ["torch_xla_lite"]),
    ],
)
def test_a_base_is_selected_with_all_that_depend_on_it(tmp_path: Path, base: str, names: list[str]):
    assert table.select(_ours(tmp_path), [], base, False) == names


def test_named_ones_come_in_dependency_order(tmp_path: Path):
    assert table.select(_ours(tmp_path), ["xla", "pytorch"], None, False) == ["pytorch", "xla"]


def test_all_are_those_of_the_users_file_too(tmp_path: Path):
    read = _read(tmp_path, '[repository.mine]\nupstream = ["https://host/mine"]\n')
    assert "mine" not in table.select(read, [], None, False)
    assert "mine" in table.select(read, [], None, True)


def test_the_users_file_wins_key_by_key(tmp_path: Path):
    read = _read(tmp_path, '[repository.pytorch]\nbranch = "viable"\n')
    pytorch = read.entries["pytorch"]
    assert (pytorch.branch, pytorch.folders) == ("viable", ["pytorch"])


def test_the_users_file_is_found_in_the_configuration_folder(tmp_path: Path):
    file = tmp_path / "torch_xla_lite" / "repositories.toml"
    file.parent.mkdir()
    file.write_text('default = ["xla"]\n')
    assert _ours(tmp_path).default == ["xla"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[", "cannot be read"),
        ("x = 1", "unknown key x"),
        ("[repository.undo]", "no command"),
        ("repository = 1", "repository = 1 must be a table"),
        ("default = 'a'", "default = 'a' must be a list"),
        ("default = [1]", "must be a list of strings"),
        ("repository.a = 1", "repository.a must be a table"),
        ("[repository.a]\npath = 1", "path = 1 must be a string"),
        ("[repository.a]\noptional = 'yes'", "must be true or false"),
        ("[repository.a]\npins = ['b']", "must be a table"),
        ("[repository.a]\npins = { b = 1 }", "must be a table"),
        ("[repository.a]\nx = 1", "repository.a in"),
        ("[repository.a]\nupstream = 'https://host/a'", "must be a list of strings"),
        ("[repository.a]\nupstream = [1]", "must be a list of strings"),
        ("[repository.a]\ndepends = ['nobody']", "named nobody"),
        ("[repository.a]\ndepends = ['b']\n[repository.b]\ndepends = ['a']", "a → b → a"),
        (
            "[repository.a]\npins = {b = 'x'}\n[repository.b]\npins = {a = 'x'}",
            "a → b → a",
        ),
        ("default = ['nobody']", "named nobody, but `default` in "),
        ("default = ['pytorhc']", "Known: pytorch, "),
    ],
)
def test_an_invalid_table_is_reported(tmp_path: Path, text: str, problem: str):
    with pytest.raises(UsageError) as error:
        _read(tmp_path, text)
    assert problem in str(error.value)
