"""Environment variables: what they mean, and what is said about a wrong one."""

import contextlib
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.version import InvalidVersion, Version

from bazel.pybuild.errors import BuildError
from bazel.pybuild.options import (
    Mode,
    Options,
    WheelKind,
    checksums,
    from_settings,
    problems,
    read,
    with_platform_defaults,
)
from bazel.pybuild.variables import VARIABLES, Switch, setting_name


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"HOME": "/home/user"}, Options()),
        # An empty value is an unset one.
        ({"MAX_JOBS": "", "DEBUG": " ", "USE_CUDA": ""}, Options()),
        ({"DEBUG": "1"}, Options(mode=Mode.DEBUG)),
        ({"REL_WITH_DEB_INFO": "1"}, Options(mode=Mode.RELEASE_WITH_DEBUG_INFO)),
        ({"DEBUG": "1", "REL_WITH_DEB_INFO": "1"}, Options(mode=Mode.DEBUG)),
        ({"DEBUG": "0"}, Options(mode=Mode.RELEASE)),
        ({"BUILD_LIB_WHL": "1"}, Options(wheel_kind=WheelKind.LIBRARY)),
        (
            {"BUILD_PYTHON_ONLY": "1", "BUILD_LIB_WHL": "0"},
            Options(wheel_kind=WheelKind.PYTHON),
        ),
        ({"USE_CUDA": "auto"}, Options(cuda=Switch.AUTO)),
        ({"USE_CUDA": "1"}, Options(cuda=Switch.ON)),
        ({"USE_CUDA": "off"}, Options(cuda=Switch.OFF)),
        ({"TORCH_CUDA_ARCH_LIST": "9.0+PTX Hopper"}, Options(cuda_arch_list="9.0+PTX Hopper")),
        # Not to be set is not the same as off.
        ({"USE_PRIORITIZED_TEXT_FOR_LD": "0"}, Options(prioritized_text=False)),
        ({"USE_PRIORITIZED_TEXT_FOR_LD": "True"}, Options(prioritized_text=True)),
        # As PyTorch does, CUDA_PATH is read where CUDA_HOME is unset.
        ({"CUDA_PATH": "/p"}, Options(cuda_home="/p", cuda_home_from="CUDA_PATH")),
        (
            {"CUDA_HOME": "", "CUDA_PATH": "/p"},
            Options(cuda_home="/p", cuda_home_from="CUDA_PATH"),
        ),
        (
            {"CUDA_HOME": "/h", "CUDA_PATH": "/p"},
            Options(cuda_home="/h", cuda_home_from="CUDA_HOME"),
        ),
        # Free options are split as a shell does.
        (
            {"TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS": "--copt='-DNAME=a b' --keep_going"},
            Options(build_options=("--copt=-DNAME=a b", "--keep_going")),
        ),
        # A name without a folder is left for PATH.
        ({"TORCH_XLA_LITE_BAZEL": "bazel-4"}, Options(bazel="bazel-4")),
        ({"DEBUG": "express:*"}, Options()),
    ],
)
def test_variables_become_options(environ: dict[str, str], expected: Options):
    assert read(environ) == expected


@pytest.mark.parametrize("word", ["1", "on", "ON", "yes", "true", "Y"])
def test_a_flag_is_set_by_the_words_of_pytorch(word: str):
    assert read({"VERBOSE": word}).verbose


@pytest.mark.parametrize("word", ["0", "off", "No", "FALSE", "n"])
def test_a_flag_is_cleared_by_the_words_of_pytorch(word: str):
    assert not read({"VERBOSE": word}).verbose


def test_half_a_wheel_is_one_half():
    with pytest.raises(BuildError, match="BUILD_LIB_WHL=1 and BUILD_PYTHON_ONLY=1 exclude"):
        read({"BUILD_LIB_WHL": "1", "BUILD_PYTHON_ONLY": "1"})


def test_all_that_is_wrong_is_found_and_not_only_the_first():
    wrong = problems({"MAX_JOBS": "two", "DEBUG": "maybe", "TORCH_XLA_LITE_X": "1"})
    assert [str(problem).split()[0] for problem in wrong] == [
        "TORCH_XLA_LITE_X",
        "DEBUG='maybe'",
        "MAX_JOBS='two'",
    ]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("BAZEL_BUILD_OPTION", "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS"), ("CUDA", "USE_CUDA")],
)
def test_an_unknown_name_is_an_error_that_names_the_nearest(name: str, nearest: str):
    with pytest.raises(BuildError) as error:
        read({f"TORCH_XLA_LITE_{name}": "1"})
    assert f"The nearest one is {nearest}." in error.value.problem
    assert error.value.remedy.endswith(f"unset TORCH_XLA_LITE_{name}")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("DEBUG", "maybe", "0 or 1 (or no, off, false, yes, on, true)"),
        # A flag of the build may be "yes"; these are read by others, who would refuse it.
        ("TORCH_XLA_LITE_IR_DEBUG", "yes", "0 or 1"),
        ("TORCH_XLA_LITE_CONTAINER", "off", "0 or 1"),
        ("MAX_JOBS", "0", "an integer >= 1"),
        ("MAX_JOBS", "many", "an integer >= 1"),
        ("SOURCE_DATE_EPOCH", "1.5e9", "an integer, seconds since 1970"),
        ("SOURCE_DATE_EPOCH", "-1", "an integer, seconds since 1970"),
        ("TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS", "--a='", "arguments, quoted as for a shell"),
    ],
)
def test_a_malformed_value_is_an_error_that_says_what_is_allowed(
    name: str, value: str, expected: str
):
    with pytest.raises(BuildError) as error:
        read({name: value})
    assert error.value.problem == f"{name}={value!r} is not {expected}."


@pytest.mark.parametrize(
    ("machine", "said", "taken"),
    [
        ("aarch64", None, None),
        ("arm64", None, None),
        ("x86_64", None, False),
        ("x86_64", True, True),
        ("aarch64", True, True),
        ("aarch64", False, False),
    ],
)
def test_whether_hot_functions_come_first_is_open_only_where_it_can_pay(
    monkeypatch: pytest.MonkeyPatch, machine: str, said: bool | None, taken: bool | None
):
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine=machine))
    assert with_platform_defaults(Options(prioritized_text=said)).prioritized_text is taken


@pytest.mark.parametrize(
    ("setting", "variable"),
    [
        ("cuda", "USE_CUDA"),
        ("CUDA", "USE_CUDA"),
        ("USE_CUDA", "USE_CUDA"),
        ("max-jobs", "MAX_JOBS"),
        ("max_jobs", "MAX_JOBS"),
        ("bazel-build-options", "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS"),
        ("TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS", "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS"),
    ],
)
def test_a_config_setting_is_called_like_its_variable(setting: str, variable: str):
    assert from_settings({setting: "1"}) == {variable: "1"}


def test_no_two_variables_have_one_name_as_settings():
    assert len({setting_name(variable.name) for variable in VARIABLES}) == len(VARIABLES)


def test_an_unknown_setting_is_an_error_that_names_the_nearest():
    with pytest.raises(BuildError) as error:
        from_settings({"cuda-hme": "/opt/cuda"})
    assert error.value.problem == (
        "There is no build setting cuda-hme. The nearest one is cuda-home."
    )


def test_settings_of_other_back_ends_are_ignored():
    settings = {
        "editable_mode": "compat",
        "builddir": "out",
        "cuda": "0",
        "--global-option": ["x", "y"],
    }
    assert from_settings(settings) == {"USE_CUDA": "0"}


@pytest.mark.parametrize("name", [row.name for row in VARIABLES if row.meaning.startswith("Read ")])
def test_a_variable_that_only_programs_read_is_no_build_setting(name: str):
    setting = setting_name(name)
    with pytest.raises(BuildError, match=f"no build setting {setting}"):
        from_settings({setting: "1"})


@pytest.mark.parametrize("settings", [{"cuda": ["on", "off"]}, {"cuda": "on", "USE_CUDA": "off"}])
def test_a_setting_that_is_given_twice_is_an_error(settings: dict[str, object]):
    with pytest.raises(BuildError, match="is given more than once"):
        from_settings(settings)


@pytest.mark.parametrize("text", ["0.1.0", "1.0rc1", "1.0.post1.dev3", "0.1.0+cu130", "1.0+1a.b"])
def test_a_version_is_taken_in_the_normal_form_of_pep_440(text: str):
    assert str(Version(text)) == text
    assert read({"TORCH_XLA_LITE_BUILD_VERSION": text}).version == text


@pytest.mark.parametrize("text", ["v1.0", "01.0", "1.0-1", "1.0+A", "1.0+01", "1.0+a_b", "next"])
def test_a_version_that_installers_would_spell_otherwise_is_an_error(text: str):
    with contextlib.suppress(InvalidVersion):
        assert str(Version(text)) != text
    with pytest.raises(BuildError, match="is not a normalized PEP 440 version"):
        read({"TORCH_XLA_LITE_BUILD_VERSION": text})


@pytest.mark.parametrize(
    ("name", "attribute"), [("TORCH_XLA_LITE_BAZEL", "bazel"), ("CUDA_HOME", "cuda_home")]
)
def test_a_relative_path_names_one_file_in_every_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, attribute: str
):
    monkeypatch.chdir(tmp_path)
    options = read({name: "./tools/it"})
    assert getattr(options, attribute) == str(tmp_path / "tools" / "it")


def test_only_checksums_of_variables_that_change_flags_are_stored():
    environ = {"DEBUG": "1", "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS": "--secret", "HOME": "/"}
    found = checksums(environ)
    assert sorted(found) == ["DEBUG", "TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS"]
    assert "secret" not in str(found)
    assert found != checksums({**environ, "DEBUG": "0"})
