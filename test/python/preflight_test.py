"""Errors at import end with the command that repairs them."""

import os
import sys
from pathlib import Path

import jaxlib
import pytest
import torch

from bazel.pybuild.variables import VARIABLES
from bazel.pytest_plugin import mostly_nightly
from test.python import programs
from test.python.copies import change, copy_of_the_package, edit_a_source
from torch_xla_lite import _build_info
from torch_xla_lite.startup import preflight, variables


def import_it(folder: Path, code: str = "import torch_xla_lite", **environ: str) -> str:
    """The error message of importing the package of `folder`, in a separate process."""
    variables = {"PYTHONPATH": str(folder), **environ}
    result = programs.call(sys.executable, "-P", "-c", code, **variables)
    assert result.returncode == 1, (result.returncode, result.stdout, result.stderr)
    return result.stderr.strip()


def without(name: str) -> str:
    """Code that makes the import system not find `name`, then imports the package."""
    return (
        "import sys, importlib.util as u; find = u.find_spec\n"
        f"u.find_spec = lambda n, *a: None if n == {name!r} else find(n, *a)\n"
        "import torch_xla_lite"
    )


BUILT_FOR = {"torch": "2.12.1", "jaxlib": "0.9.0", "Python": "3.10"}


@pytest.mark.parametrize("name", mostly_nightly(BUILT_FOR, ["Python"]))
def test_another_version_is_an_error_that_ends_in_the_command(tmp_path, name):
    change(copy_of_the_package(tmp_path), f"{name.upper()}_VERSION", BUILT_FOR[name])
    here = {
        "torch": f"torch {torch.__version__.partition('+')[0]} is installed",
        "jaxlib": f"jaxlib {jaxlib.__version__} is installed",
        "Python": f"{sys.executable} is Python 3.{sys.version_info.minor}",
    }
    assert import_it(tmp_path).endswith(
        f"ImportError: torch_xla_lite was built for {name} {BUILT_FOR[name]} but {here[name]}.\n"
        f"Rebuild it for this {name}:  python setup.py develop"
    )


@pytest.mark.nightly
def test_a_torch_that_no_build_takes_is_named_as_the_build_names_it(tmp_path):
    change(copy_of_the_package(tmp_path), "TORCH_VERSION", "2.0.0")
    (tmp_path / "pyproject.toml").write_text('dependencies = ["jax>=0.1", "torch>=2.0,<2.2"]')
    assert import_it(tmp_path).endswith(
        "Use an environment with torch>=2.0,<2.2, or try to build for this one:  "
        "TORCH_XLA_LITE_ANY_VERSION=1 python setup.py develop"
    )


@pytest.mark.parametrize(
    ("version", "is_among"),
    [("2.12.1", False), ("2.13.0", True), ("2.15.9", True), ("2.16.0", False)],
)
def test_a_build_takes_a_range_of_versions(version, is_among):
    assert preflight._is_among(version, ">=2.13,<2.16") == is_among


@pytest.mark.nightly
def test_another_build_of_the_same_torch_is_no_error(tmp_path):
    release = _build_info.TORCH_VERSION.partition("+")[0]
    change(copy_of_the_package(tmp_path), "TORCH_VERSION", f"{release}+other")
    assert "fine" in import_it(tmp_path, "import torch_xla_lite; raise SystemExit('fine')")


@pytest.mark.nightly
def test_another_torch_beside_a_wheel_asks_for_another_wheel_and_not_another_torch(tmp_path):
    change(copy_of_the_package(tmp_path, checkout=False), "TORCH_VERSION", "2.12.1")
    message = import_it(tmp_path)
    assert "Install a wheel that was built for this torch, or build one" in message
    assert "pip install" not in message


@pytest.mark.nightly
def test_python_code_without_its_libraries_names_both_wheels(tmp_path):
    module = copy_of_the_package(tmp_path, checkout=False, skip="_XLAC") / "_XLAC.so"
    module.write_text("not a library")
    info = tmp_path / "torch_xla_lite_python-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: torch_xla_lite_python\nVersion: 0.1.0\n"
        "Requires-Dist: torch==2.13.0\nRequires-Dist: torch_xla_lite_lib==0.1.0\n"
    )
    assert import_it(tmp_path).endswith(
        "pip install --force-reinstall --no-deps torch_xla_lite_python torch_xla_lite_lib==0.1.0"
    )


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("name", ["torch", "jaxlib", "jax"])
def test_a_missing_package_is_an_error_that_ends_in_the_command(tmp_path, name):
    copy_of_the_package(tmp_path)
    message = import_it(tmp_path, without(name))
    assert f"ImportError: torch_xla_lite needs {name} " in message
    assert message.splitlines()[-1].startswith(f"Install it:  python -m pip install '{name}==")


@pytest.mark.nightly
def test_a_missing_extension_is_an_error_that_ends_in_the_command(tmp_path):
    copy_of_the_package(tmp_path, skip="_XLAC")
    message = import_it(tmp_path)
    assert "ImportError: torch_xla_lite's compiled extension is not in " in message
    assert message.endswith("Build it:  python setup.py develop")


def test_a_tree_that_was_never_built_says_so(tmp_path):
    (copy_of_the_package(tmp_path) / "_build_info.py").unlink()
    message = import_it(tmp_path)
    assert " has not been built." in message
    assert message.endswith("Build it:  python setup.py develop")


@pytest.mark.nightly
def test_a_source_that_is_newer_than_the_libraries_is_named_in_one_line(tmp_path):
    source = edit_a_source(copy_of_the_package(tmp_path))

    def said() -> str:
        return import_it(tmp_path, "import sys, torch_xla_lite; sys.exit(1)")

    assert said() == (
        "torch_xla_lite: the libraries are older than torch_xla_lite/csrc/some.cc; build them:  "
        "python setup.py develop"
    )
    os.utime(source, (0, 0))
    assert said() == ""


def test_an_extension_that_does_not_load_is_an_error_that_ends_in_the_command(tmp_path):
    package = copy_of_the_package(tmp_path)
    for extension in package.glob("_XLAC*.so"):
        extension.unlink()
        extension.write_bytes(b"not a shared object")
    message = import_it(tmp_path)
    assert "ImportError: torch_xla_lite's compiled extension does not load here: " in message
    assert message.endswith("Build it again:  python setup.py develop")


def test_an_unknown_variable_is_an_error_that_names_the_nearest_one(tmp_path):
    copy_of_the_package(tmp_path)
    message = import_it(tmp_path, TORCH_XLA_LITE_IRDEBUG="1")
    assert "TORCH_XLA_LITE_IRDEBUG is set, but there is no such variable." in message
    assert "Did you mean TORCH_XLA_LITE_IR_DEBUG?" in message
    assert message.endswith("unset TORCH_XLA_LITE_IRDEBUG")


def test_a_malformed_variable_is_an_error_that_says_what_it_may_be(tmp_path):
    copy_of_the_package(tmp_path)
    message = import_it(tmp_path, TORCH_XLA_LITE_IR_DEBUG="yes")
    assert "TORCH_XLA_LITE_IR_DEBUG=yes is not understood: it may be 0 or 1." in message
    assert "export TORCH_XLA_LITE_IR_DEBUG=1" in message.splitlines()[-1]


@pytest.mark.parametrize("value", ["", "0", "1"])
def test_a_variable_may_have_its_values_or_be_empty(value):
    variables.check({"TORCH_XLA_LITE_IR_DEBUG": value})


@pytest.mark.parametrize("name", variables.BUILD_TIME)
def test_variables_of_the_build_are_known_at_run_time(name):
    variables.check({name: "anything"})


def test_variables_of_others_are_not_looked_at():
    variables.check({"TORCH_XLA": "1", "XLA_FLAGS": "", "HOME": "/"})


def test_the_build_and_the_package_know_the_same_variables():
    of_the_build = {row.name for row in VARIABLES if row.name.startswith(variables.PREFIX)}
    assert of_the_build == {*variables.RUN_TIME, *variables.BUILD_TIME}


def test_importing_does_not_change_the_precision_of_jax():
    import jax

    assert not jax.config.jax_enable_x64
