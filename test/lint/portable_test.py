"""Code that calls something outside XLA refuses to be part of a portable program."""

import ast
from pathlib import Path

from test.lint.source_tree import expect_none, files, text

_CALLS = {"ffi_call", "pure_callback", "io_callback"}


def _called(function: ast.AST) -> set[str]:
    """The names of what a function calls."""
    names = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            called = node.func
            names.add(getattr(called, "attr", getattr(called, "id", "")))
    return names


def _functions(file: Path) -> list[ast.FunctionDef]:
    tree = ast.parse(text(file))
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]


def test_each_function_that_calls_other_code_asks_first():
    expect_none(
        f"{file}: {function.name} calls code outside XLA. Begin it with:  "
        "target.refuse_if_portable(op)"
        for file in files(".py")
        if file.parts[0] == "torch_xla_lite"
        for function in _functions(file)
        if _called(function) & _CALLS and "refuse_if_portable" not in _called(function)
    )
