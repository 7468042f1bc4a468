"""Runs lowerings that were edited in a checkout, where the kernels of torch would run.

    ops(root)           # ["aten::relu"], if its function differs from that of git's last commit
    use(["aten::relu"])

Graphs that are interpreted run torch's kernels, so an edit of a lowering would show only once a
graph is compiled. git is asked at the import, and only if a lowering is newer than the last build.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable
from pathlib import Path

from .. import _XLAC
from ..lowering.base import registry
from ..startup import preflight

_FOLDER = "torch_xla_lite/lowering"


def register() -> None:
    """Uses the edited lowerings of a checkout. Does nothing for an installed wheel."""
    root = preflight.PACKAGE.parent
    if (root / ".git").exists() and _is_newer_than_build(root):
        use(ops(root))


def use(names: Iterable[str]) -> None:
    """Interpreted graphs run the lowerings of these ops; what is compiled is compiled again."""
    names = list(names)
    for name in names:
        _XLAC.use_lowering(name)
    if names:
        _XLAC.clear_cache()


def ops(root: Path) -> list[str]:
    """Ops of the lowerings that differ from git's last commit; empty without git."""
    changed = _git(root, "diff", "--name-only", "HEAD", "--", f"{_FOLDER}/*.py")
    found: set[str] = set()
    for path in (changed or "").splitlines():
        module = Path(path).stem
        declared = {op for op, its_module in registry.DECLARED.items() if its_module == module}
        if declared and (root / path).exists():
            before = _git(root, "show", f"HEAD:{path}") or ""
            names = edited(before, (root / path).read_text(encoding="utf-8"))
            found |= declared if names is None else names
    return sorted(found)


def edited(before: str, after: str) -> set[str] | None:
    """Ops whose functions differ between two states of a module of lowerings; None for all of the
    module: what its functions share differs."""
    old, new = _parts(before), _parts(after)
    if new is None or old is None or old[1] != new[1]:
        return None
    return {op for op, function in new[0].items() if old[0].get(op) != function}


def _parts(source: str) -> tuple[dict[str, str], list[str]] | None:
    """The function of each op, and the other statements; None if the module cannot be parsed."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None  # Its import says where.
    functions: dict[str, str] = {}
    others = []
    for node in tree.body:
        text = ast.dump(node)
        names = _names(node)
        functions.update(dict.fromkeys(names, text))
        if not names:
            others.append(text)
    return functions, others


def _names(node: ast.stmt) -> list[str]:
    """The ops in the decorators `lower(...)` of a function."""
    if not isinstance(node, ast.FunctionDef):
        return []
    return [
        argument.value
        for call in node.decorator_list
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("lower")
        for argument in call.args
        if isinstance(argument, ast.Constant)
    ]


def _is_newer_than_build(root: Path) -> bool:
    built = (root / "torch_xla_lite" / "_build_info.py").stat().st_mtime_ns
    return any(file.stat().st_mtime_ns > built for file in (root / _FOLDER).glob("*.py"))


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
