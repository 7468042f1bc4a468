import builtins
import re
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import torch_xla_lite  # noqa: F401  defines ops that have lowerings
import torch_xla_lite.lowering as lowerings
from scripts import lowering_table
from test.python import programs
from torch_xla_lite.lowering.base import decomposition, facts, registry, unlowered

aten = torch.ops.aten


def out(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, np.dtype(np.float32))


@pytest.fixture
def lowering():
    """Registers a lowering of an op that has none, for the time of one test."""
    added = []

    def add(name, fn, **options):
        assert registry.find(name) is None
        added.append(name)
        return registry.lower(name, **options)(fn)

    yield add
    for name in added:
        del registry.LOWERINGS[name]


def test_every_lowering_is_named_after_a_functional_op():
    for name in registry.DECLARED:
        base, _, overload = name.partition(".")
        schema = torch._C._get_schema(base, overload)
        assert not schema.is_mutable, name


def test_an_undefined_output_is_none(lowering):
    lowering("aten::nonzero", lambda self: jnp.ones((2,)))
    assert registry.call("aten::nonzero", [jnp.zeros(3)], [None]) == [None]


def test_a_wrong_shape_is_an_error_that_names_the_op(lowering):
    lowering("aten::nonzero", lambda self: jnp.ones((2,)))
    with pytest.raises(registry.LoweringError, match=r"aten::nonzero.*\(2,\).*\(3,\)"):
        registry.call("aten::nonzero", [jnp.zeros(3)], [out(3)])


def test_unsupported_arguments_are_not_an_error_of_the_lowering():
    mask = jnp.array([True, False])
    with pytest.raises(registry.Unsupported):
        registry.call("aten::index.Tensor", [jnp.zeros(2), [mask]], [out(1)])


def test_dtype_arguments_arrive_as_numpy_dtypes_and_device_arguments_not_at_all(lowering):
    received = {}

    def from_file(filename, shared, size, **keywords):
        received.update(keywords)
        return jnp.zeros((size,))

    lowering("aten::from_file", from_file)
    registry.call("aten::from_file", ["name", None, 3, 6, None, "jax", None], [out(3)])
    assert received == {"dtype": np.dtype(np.float32)}


def test_an_op_has_one_lowering():
    registry.find("aten::relu")
    with pytest.raises(registry.LoweringError, match="two lowerings"):
        registry.lower("aten::relu")(lambda self: self)


@pytest.mark.parametrize("name", ["aten::add.Tensor", "aten::relu", "aten::arange"])
def test_scalars_are_constants_only_where_a_shape_depends_on_them(name):
    assert registry.find(name).facts.constants == (name == "aten::arange")


_PROGRAM = """
import sys
import jax, torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch_xla_lite.lowering.base import registry

intercepted = []
class Function(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        intercepted.append(function)
        return function(*args, **(kwargs or {}))
class Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        intercepted.append(function)
        return function(*args, **(kwargs or {}))

def loaded():
    return set(registry.DECLARED.values()) & {
        name.rpartition(".")[2] for name in sys.modules if name.startswith("torch_xla_lite.")
    }

def traced(x):
    registry.find("aten::avg_pool2d")
    print("pool" in loaded(), "upsample" in loaded())
    before = set(sys.modules)
    registry.load_all()
    # Modules instead of times: one of torch._inductor or jax.experimental can cost seconds.
    expected = ("torch_xla_lite", "jax.scipy", "jax._src.scipy", "jax._src.third_party")
    print([name for name in sys.modules.keys() - before if not name.startswith(expected)])
    return x

print(len(loaded()))
with Function(), Dispatch(), jax.enable_x64(True):
    jax.jit(traced)(1.0)
print([
    (name, key) for name, module in sys.modules.items() if name.startswith("torch_xla_lite.")
    for key, value in vars(module).items() if isinstance(value, jax.core.Tracer)
])
print(intercepted)
"""


def test_a_module_is_imported_for_its_first_op_while_jax_traces_under_the_users_modes():
    done = programs.run(_PROGRAM)
    assert done.stdout.splitlines() == ["0", "True False", "[]", "[]", "[]"], done.stderr


def test_a_module_that_cannot_be_imported_is_an_error_and_no_reason_to_fall_back(monkeypatch):
    monkeypatch.setitem(registry.DECLARED, "aten::log", "nowhere")
    monkeypatch.setitem(sys.modules, "torch_xla_lite.lowering.nowhere", None)
    with pytest.raises(registry.BrokenPackage, match="//torch_xla_lite/lowering:nowhere"):
        registry.call("aten::log", [jnp.ones(3)], [out(3)])
    registry.find("aten::logit")
    monkeypatch.delitem(registry.LOWERINGS, "aten::logit")
    with pytest.raises(registry.BrokenPackage):
        decomposition.decompose("aten::logit", [jnp.ones(3), 0.1], [out(3)])


def test_a_table_that_is_out_of_date_is_an_error_that_ends_in_the_command(monkeypatch):
    entry = registry.find("aten::relu")
    monkeypatch.delitem(registry.DECLARED, "aten::relu")
    with pytest.raises(registry.BrokenPackage, match=r"aten::relu(.|\n)*scripts/lowering_table.py"):
        registry.check_declared("aten::relu", entry)


_HALF = """
import builtins
from torch_xla_lite.lowering.base import registry
registry.LOWERINGS["test::half"] = registry.find("aten::relu")
builtins.half_imported.set()
builtins.may_go_on.wait()
whole = True
"""


def test_a_second_thread_waits_until_the_whole_module_is_imported(monkeypatch, tmp_path):
    (tmp_path / "half.py").write_text(_HALF)
    monkeypatch.setattr(lowerings, "__path__", [*lowerings.__path__, str(tmp_path)])
    monkeypatch.setitem(registry.DECLARED, "test::half", "half")
    half_imported, may_go_on = threading.Event(), threading.Event()
    monkeypatch.setattr(builtins, "half_imported", half_imported, raising=False)
    monkeypatch.setattr(builtins, "may_go_on", may_go_on, raising=False)
    whole = []

    def find():
        registry.find("test::half")
        whole.append(hasattr(sys.modules["torch_xla_lite.lowering.half"], "whole"))

    first, second = (threading.Thread(target=find) for _ in range(2))
    first.start()
    half_imported.wait()
    second.start()
    second.join(0.2)
    may_go_on.set()
    first.join()
    second.join()
    del registry.LOWERINGS["test::half"]
    assert whole == [True, True]


def test_the_tables_are_what_the_modules_register(monkeypatch):
    monkeypatch.setattr(registry, "check_declared", registry.check_declared)
    for path, text in lowering_table.tables().items():
        assert text == path.read_text(), "run scripts/lowering_table.py"


def test_the_inverses_of_all_views_are_in_one_module():
    registry.load_all()
    modules = {fn.__module__.rpartition(".")[2] for fn in registry.VIEW_WRITES.values()}
    assert modules == {"views"}


def test_facts_of_ops_without_a_lowering_are_of_ops_that_torch_has():
    schemas = torch._C._jit_get_all_schemas()
    known = {f"{schema.name}.{schema.overload_name}".rstrip(".") for schema in schemas}
    assert unlowered.UNLOWERED.keys() - known == set()


def _facts() -> dict[str, facts.Facts]:
    registry.load_all()
    lowered = {op: entry.facts for op, entry in registry.LOWERINGS.items()}
    return lowered | unlowered.UNLOWERED


@pytest.mark.parametrize(
    ("fact", "allowed"),
    [
        ("kernel", {"recorder", "cpu", "other"}),
        ("divides", {"integers", "all"}),
        ("rounds", {"operands", "numbers"}),
    ],
)
def test_a_fact_is_one_of_its_words(fact: str, allowed: set[str]):
    assert {getattr(stated, fact) for stated in _facts().values()} <= {"", *allowed}


_NAMING = "runtime_floats negative dtypes elements numbers one_dtype dtype_of_input strides shares"


@pytest.mark.parametrize("fact", _NAMING.split())
def test_a_fact_names_arguments_of_its_op(fact: str):
    arguments: dict[str, set[str]] = {}
    for schema in torch._C._jit_get_all_schemas():
        arguments.setdefault(schema.name, set()).update(a.name for a in schema.arguments)
    wrong = {
        (op, word)
        for op, stated in _facts().items()
        for word in (getattr(stated, fact) or "").split()
        if re.split("[=<>]", word)[0] not in arguments[op.partition(".")[0]]
    }
    assert wrong == set()
