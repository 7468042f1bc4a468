"""One list of environment variables, and one place that reads them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from bazel.pybuild.variables import PREFIX, VARIABLES
from test.build.tree import ROOT, source_files

_NAMES = {variable.name for variable in VARIABLES}

# configure.py sets these for repository rules, and users do not. For some, the table there has the
# beginning of the name.
_CONFIGURE = (ROOT / "bazel/pybuild/machine/configure.py").read_text()
_OF_RULES = tuple(
    PREFIX + name for name in re.findall(r'[ \[*{]f?"([A-Z][A-Z0-9_]+)["{]', _CONFIGURE)
)

# Of the system and of other programs, with the meaning that they have everywhere.
_CONVENTIONAL = {
    *("CC", "CXX", "HOME", "PATH", "TMPDIR", "USER", "USE_BAZEL_VERSION", "XDG_CACHE_HOME")
}

# In quotes, as Python and Starlark read a variable, or after a dollar sign, as a shell does.
_READ = re.compile(r"""(?:"|'|\$\{?)(TORCH_XLA_LITE_[A-Z0-9_]*[A-Z0-9])\b""")


def test_every_variable_that_the_sources_read_is_in_the_table():
    read = {
        name
        for file in source_files("bazel", "scripts", "setup.py", "third_party", "torch_xla_lite")
        for name in _READ.findall((ROOT / file).read_text())
    }
    assert f"{PREFIX}FINGERPRINT" in _OF_RULES
    assert {name for name in read if not name.startswith(_OF_RULES)} <= _NAMES
    assert "TORCH_XLA_LITE_IR_DEBUG" in read


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


def _python(*places: str) -> Iterator[tuple[str, ast.AST]]:
    for file in source_files(*places):
        if file.suffix == ".py":
            yield str(file), ast.parse((ROOT / file).read_text())


def test_only_the_table_reads_the_variables_of_the_build():
    readers = {
        Path(file).name
        for file, tree in _python("bazel/pybuild", "setup.py")
        if set(_names_read(tree)) - _CONVENTIONAL
    }
    # One parses them, the other shows them.
    assert readers == {"options.py", "show_options.py"}


def test_scripts_and_repository_rules_read_none_of_them():
    read = {
        (file, name)
        for file, tree in _python("scripts", "third_party")
        for name in _names_read(tree)
        if name in _NAMES
    }
    # Not of the build, and in the table so that setup.py does not call it misspelt.
    assert read == {("scripts/repos/cli.py", "TORCH_XLA_LITE_CONTAINER")}
