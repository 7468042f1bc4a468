"""Checks that Python files import only lower layers, and that no imports form a cycle."""

import ast
import functools
import graphlib
from pathlib import Path

import pytest

from test.lint.source_tree import ROOT, expect_none, files, text

_FILES = files(".py")
_PACKAGE = "torch_xla_lite"

# From the lowest layer to the highest: (folder, entries). A file may import files of its own layer
# and of lower ones. Each file belongs to the longest entry that contains it; "" is the folder.
_TABLE = [
    ("third_party", [""]),
    ("bazel", [""]),
    # The same order is in bazel/pybuild/__init__.py.
    (
        "bazel/pybuild",
        [
            *("errors.py", "files.py", "interrupts.py", "notices.py", "protobuf.py"),
            *("run_time.py", "streams.py", "variables.py"),
        ],
    ),
    ("bazel/pybuild", ["options.py", "lock.py"]),
    ("bazel/pybuild", ["machine", "why"]),
    ("bazel/pybuild", ["cache"]),
    ("bazel/pybuild", ["call"]),
    ("bazel/pybuild", ["bazelrc.py", "report.py"]),
    ("bazel/pybuild", ["configure.py"]),
    ("bazel/pybuild", ["dist"]),
    ("bazel/pybuild", ["install"]),
    ("bazel/pybuild", ["build.py"]),
    ("bazel/pybuild", ["develop.py", "wheel.py"]),
    ("bazel/pybuild", ["commands"]),
    ("bazel/pybuild", [""]),
    ("setup.py", [""]),
    # What lowerings share; the lowerings.
    (
        "torch_xla_lite/lowering/base",
        ["__init__.py", "merged_dims.py", "mesh.py", "tags.py", "untraced.py"],
    ),
    ("torch_xla_lite/lowering/base", ["facts.py", "registry.py", "table.py", "unlowered.py"]),
    ("torch_xla_lite/lowering/base", ["ffi.py", "kernels.py", "target.py"]),
    ("torch_xla_lite/lowering/base", ["promotion.py"]),
    ("torch_xla_lite/lowering/base", [""]),
    ("torch_xla_lite/lowering", [""]),
    ("torch_xla_lite/lowering", ["__init__.py"]),
    # The Python half of the runtime, the device's interface, the whole package.
    (_PACKAGE, ["after_import.py", "autoload.py", "program_lines.py", "startup"]),
    (_PACKAGE, ["torch_hooks/patches.py"]),
    (_PACKAGE, ["program_history.py", "thread_settings.py"]),
    (_PACKAGE, ["compiler/__init__.py", "distributed.py", "torch_hooks/__init__.py"]),
    (
        _PACKAGE,
        [
            "compiler/background.py",
            "communication.py",
            "compiler/costs.py",
            "device.py",
            "jax_programs.py",
            "placements.py",
            "compiler/private_folder.py",
            "compiler/progress.py",
            "compiler/stored_values.py",
            "safetensors.py",
            "thread_settings.py",
            "torch_hooks/moves.py",
            "torch_hooks/parallel.py",
            "compiler/words.py",
        ],
    ),
    (_PACKAGE, ["compiler/compilation_cache.py", "compiler/foreign_code.py"]),
    (_PACKAGE, ["debug/graph_differences.py", "compiler/graph_errors.py"]),
    (_PACKAGE, ["compiler/index_errors.py", "debug/new_graphs.py"]),
    (
        _PACKAGE,
        [
            "exportable.py",
            "fx_functions.py",
            "graph_breaks.py",
            "jax_functions.py",
            "compiler/tracing.py",
        ],
    ),
    (
        _PACKAGE,
        [
            "compiler/compiler.py",
            "torch_hooks/graph_cuts.py",
            "debug/comparison.py",
            "debug/graph_view.py",
            "debug/times.py",
            "torch_hooks/meta_functions.py",
        ],
    ),
    (_PACKAGE, ["edited_lowerings.py", "tables.py", "trainers.py"]),
    (_PACKAGE, ["custom_ops.py", "debug/__init__.py", "tensor.py", "utils"]),
    (
        _PACKAGE,
        [
            "__config__.py",
            "torch_hooks/compile_mode.py",
            "environment.py",
            "ops.py",
        ],
    ),
    (
        _PACKAGE,
        [
            "capture.py",
            "captured_tensors.py",
            "derivatives.py",
            "exportable_graphs.py",
            "jax_calls.py",
        ],
    ),
    (
        _PACKAGE,
        ["compile_backend.py", "exportable_steps.py", "optax.py", "torch_functions.py"],
    ),
    (_PACKAGE, ["export.py", "jax_modules.py", "recorded_modules.py"]),
    (_PACKAGE, ["pure_modules.py", "stacked_layers.py"]),
    (
        _PACKAGE,
        [
            "torch_hooks/flex_attention.py",
            "torch_hooks/flops.py",
            "launch.py",
            "torch_hooks/opcheck.py",
            "torch_hooks/serialization.py",
        ],
    ),
    (_PACKAGE, ["sharding.py", "torch_hooks/torchscript.py", "commands"]),
    (_PACKAGE, ["batches.py", "checkpoint.py", "lightning.py"]),
    (_PACKAGE, ["__init__.py", "__main__.py", "examples"]),
    ("scripts/repos", ["git.py"]),
    ("scripts/repos", ["journal.py", "model.py", "network.py"]),
    ("scripts/repos", [""]),
    ("scripts/repos", ["apply.py"]),
    ("scripts/repos", ["report.py", "undo.py"]),
    ("scripts/repos", ["cli.py"]),
    ("scripts", [""]),
    ("test", [""]),
]
_LAYERS = [[Path(folder, entry) for entry in entries] for folder, entries in _TABLE]
_USED_BY_SCRIPTS = {
    Path("bazel/pybuild/dist/sources.py"),
    Path("bazel/pybuild/errors.py"),
    Path("bazel/pybuild/files.py"),
    Path("bazel/pybuild/options.py"),
    Path("bazel/pybuild/why/execution_log.py"),
    Path("bazel/pybuild/machine/find_bazel.py"),
    Path("third_party/torch/layers.py"),
}
# Generated by the build, from C++ and Starlark.
_COMPILED = {"_XLAC", "_build_info"}


def _file(module: tuple[str, ...]) -> Path | None:
    """The file of a module of this project; None for other modules."""
    path = Path(*module)
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if (ROOT / file).is_file():
            return file
    return None


@functools.cache
def _imports(file: Path) -> frozenset[Path]:
    """Files of this project that a file imports anywhere, also inside `if TYPE_CHECKING`."""
    found = set()
    for node in ast.walk(ast.parse(text(file))):
        if isinstance(node, ast.Import):
            found |= {_file(tuple(alias.name.split("."))) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = file.parts[: -node.level] if node.level else ()
            module = (*package, *(node.module.split(".") if node.module else ()))
            names = {alias.name for alias in node.names} - _COMPILED
            found |= {_file((*module, name)) or _file(module) for name in names}
    return frozenset(found - {None, file})


def _layer(file: Path) -> int:
    """The index of a file's layer; -1 if no entry contains the file."""
    for place in (file, *file.parents):
        for index, layer in enumerate(_LAYERS):
            if place in layer:
                return index
    return -1


def test_each_entry_of_the_table_exists():
    places = [path for layer in _LAYERS for path in layer]
    expect_none(f"{path}: remove it from _TABLE" for path in places if not (ROOT / path).exists())


def test_each_file_belongs_to_a_layer():
    expect_none(f"{file}: add it to _TABLE" for file in _FILES if _layer(file) < 0)


def test_imports_form_no_cycle():
    try:
        graphlib.TopologicalSorter({file: _imports(file) for file in _FILES}).prepare()
    except graphlib.CycleError as error:
        pytest.fail(f"cycle: {' <- '.join(map(str, error.args[1]))}", pytrace=False)


def _pairs() -> list[tuple[Path, Path]]:
    """Each file with each file that it imports."""
    return [(file, imported) for file in _FILES for imported in sorted(_imports(file))]


def test_a_file_imports_only_its_own_layer_and_lower_ones():
    expect_none(
        f"{file}: imports {imported}, which is of a higher layer"
        for file, imported in _pairs()
        if _layer(imported) > _layer(file)
    )


def test_a_top_level_folder_imports_only_allowed_folders():
    # Scripts use the build through its commands, read the logs that it leaves, and write files like
    # it; the package does not depend on the build.
    allowed = {
        "bazel": {"bazel", "third_party"},
        "scripts": {"scripts", "torch_xla_lite"},
        "setup.py": {"bazel"},
        "test": {"test", "bazel", "scripts", "third_party", _PACKAGE},
    }
    expect_none(
        f"{file}: {file.parts[0]} may not import {imported}"
        for file, imported in _pairs()
        if imported.parts[0] not in allowed.get(file.parts[0], {file.parts[0]})
        if file.parts[0] != "scripts" or imported not in _USED_BY_SCRIPTS
    )


def test_no_file_imports_a_test():
    expect_none(
        f"{file}: move what it imports from {imported} into a file that is no test"
        for file, imported in _pairs()
        if imported.name.endswith("_test.py")
    )
