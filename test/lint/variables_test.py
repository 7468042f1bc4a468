"""One list of environment variables, and one place that reads them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from bazel.pybuild.variables import PREFIX, VARIABLES
from test.build.tree import source_files
from test.lint.source_tree import expect_none, text

_NAMES = {variable.name for variable in VARIABLES}

# bazelrc.py sets these for repository rules, and users do not. For some, the table there has the
# beginning of the name.
_SETTINGS = text(Path("bazel/pybuild/bazelrc.py"))
_OF_RULES = tuple(
    PREFIX + name for name in re.findall(r'[ \[*{]f?"([A-Z][A-Z0-9_]+)["{]', _SETTINGS)
)

# Variables of the system and of other programs, with their usual meaning.
_CONVENTIONAL = {
    *("CC", "CONDA_PREFIX", "HOME", "PATH", "TMPDIR", "USER", "USE_BAZEL_VERSION"),
    "XDG_CACHE_HOME",
}

# In quotes, as Python and Starlark read a variable, or after a dollar sign, as a shell does.
_READ = re.compile(r"""(?:"|'|\$\{?)(TORCH_XLA_LITE_[A-Z0-9_]*[A-Z0-9])\b""")


def test_every_variable_that_the_sources_read_is_in_the_table():
    places = ("bazel", "scripts", "setup.py", "third_party", "torch_xla_lite")
    read = [(file, name) for file in source_files(*places) for name in _READ.findall(text(file))]
    assert f"{PREFIX}FINGERPRINT" in _OF_RULES
    assert "TORCH_XLA_LITE_IR_DEBUG" in {name for _, name in read}
    expect_none(
        f"{file}: add {name} to bazel/pybuild/variables.py"
        for file, name in read
        if name not in _NAMES and not name.startswith(_OF_RULES)
    )


def _names_read(tree: ast.AST) -> Iterator[str]:
    """The literal names that are looked up in something called environ, or by getenv."""
    for node in ast.walk(tree):
        where, what = None, None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            where, what = node.value, node.slice
        elif isinstance(node, ast.Call) and node.args:
            called = node.func
            where, what = getattr(called, "value", called), node.args[0]
            if "getenv" in ast.unparse(called):
                where = ast.Name("environ")
        if where is not None and ast.unparse(where).split(".")[-1] == "environ":
            yield ast.unparse(what).strip("'\"")


def _reads(*places: str) -> list[tuple[str, str]]:
    """Each Python file with each variable that it reads."""
    return [
        (str(file), name)
        for file in source_files(*places)
        if file.suffix == ".py"
        for name in _names_read(ast.parse(text(file)))
    ]


def test_only_the_table_reads_the_variables_of_the_build():
    # One parses them, the other shows them.
    readers = (
        "bazel/pybuild/commands/show_options.py",
        "bazel/pybuild/options.py",
        # A variable of the package, whose file it is.
        "bazel/pybuild/run_time.py",
    )
    reads = _reads("bazel/pybuild", "setup.py")
    assert {file for file, _ in reads} >= set(readers)
    expect_none(
        f"{file}: read {name} in options.py"
        for file, name in reads
        if name not in _CONVENTIONAL and file not in readers
    )


def test_scripts_and_repository_rules_read_none_of_them():
    # The build does not read it; it is in the table so that setup.py does not call it misspelt.
    allowed = ("scripts/repos/cli.py", "TORCH_XLA_LITE_CONTAINER")
    expect_none(
        f"{file}: take an option in place of {name}"
        for file, name in _reads("scripts", "third_party")
        if name in _NAMES and (file, name) != allowed
    )
