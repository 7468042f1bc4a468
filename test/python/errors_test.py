"""Errors in user programs raise the exception of torch, with a remedy."""

import pytest
import torch

import torch_xla_lite  # noqa: F401
from test.python.programs import lines, run, run_file


@pytest.mark.parametrize(
    ("op", "call", "line"),
    [
        (
            "linear",
            lambda x: torch.nn.Linear(3, 2)(x),
            "Argument 2 (weight, float32[2,3]) is a parameter on cpu. "
            "Move its module first:  model.to('jax')",
        ),
        (
            "native_layer_norm",
            lambda x: torch.nn.LayerNorm(3).requires_grad_(False)(x),
            "Argument 3 (weight, float32[3]) is a parameter on cpu. "
            "Move its module first:  model.to('jax')",
        ),
        (
            "linear",
            lambda x: torch.nn.Linear(3, 2).to("jax")(x.cpu()),
            "Argument 1 (input, float32[4,3]) is on cpu. Move it first:  input.to('jax')",
        ),
        (
            "cat",
            lambda x: torch.cat([x, x.cpu().double()]),
            "Argument 1 (tensors[1], float64[4,3]) is on cpu. Move it first:  tensors[1].to('jax')",
        ),
        (
            "add",
            lambda x: x.cpu() + x,
            "Argument 1 (self, float32[4,3]) is on cpu. Move it first:  tensor.to('jax')",
        ),
    ],
    ids=["parameter", "frozen", "input", "list", "self"],
)
def test_mixing_devices_names_the_argument_and_what_to_move(op, call, line):
    with pytest.raises(RuntimeError) as caught:
        call(torch.ones(4, 3, device="jax"))
    first = f"expected all tensors on one device, found jax:0 and cpu (in aten::{op})."
    assert str(caught.value).splitlines()[:2] == [first, line]


def test_a_number_on_the_cpu_may_be_mixed_in_as_on_cuda():
    assert (torch.ones(2, device="jax") * torch.tensor(3.0)).tolist() == [3, 3]


def test_too_many_dimensions_are_an_error_of_the_upload():
    with pytest.raises(RuntimeError, match="at most 64 dimensions, and this one has 65"):
        torch.ones([1] * 65).to("jax")
    assert torch.ones([1] * 64).to("jax").sum() == 1


def test_the_tensor_is_unchanged_after_an_error():
    base = torch.ones(2, device="jax")
    with pytest.raises(RuntimeError):
        base.add_(torch.ones(2))
    assert base.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("dtype", "name"), [(torch.complex32, "ComplexHalf"), (torch.float8_e8m0fnu, "Float8_e8m0fnu")]
)
def test_the_error_of_an_unsupported_dtype_names_it(dtype, name):
    with pytest.raises(TypeError, match=f"XLA has no element type {name}") as caught:
        torch.zeros(2, dtype=dtype).to("jax")
    assert str(caught.value).splitlines()[1].endswith("x.to(torch.float32)")


# A lowering that raises while the graph is compiled, like every error that XLA finds late.
FAILING = """
import torch, torch_xla_lite
from torch_xla_lite.lowering.base import registry
import dataclasses
def broken(*args, **kwargs):
    raise ValueError("the lowering is broken")
registry.LOWERINGS["aten::cosh"] = dataclasses.replace(registry.find("aten::cosh"), fn=broken)

def users_function():
    return torch.ones(2, device="jax").cosh()  # the line

users_function().tolist()
"""


def test_an_operation_that_fails_late_is_named():
    done = run(FAILING)
    assert done.returncode == 1
    assert "aten::cosh" in done.stderr
    assert "the lowering is broken" in done.stderr
    assert "TORCH_XLA_LITE_IR_DEBUG=1" in done.stderr


# A folder of the user may have the name of the package, or of torch.
@pytest.mark.few_daily(1)
@pytest.mark.parametrize("folder", ["project", "torch_xla_lite", "torch"])
def test_with_ir_debug_the_users_line_is_named_too(tmp_path, folder):
    script = tmp_path / folder / "users_program.py"
    done = run_file(script, FAILING, TORCH_XLA_LITE_IR_DEBUG="1")
    line = 1 + FAILING.splitlines().index(
        '    return torch.ones(2, device="jax").cosh()  # the line'
    )
    assert done.returncode == 1
    assert "aten::cosh" in done.stderr
    assert f"Recorded at {script}:{line} in users_function." in done.stderr


# Tracing succeeds, and XLA refuses the whole program without naming an op.
REFUSED = FAILING.replace(
    'raise ValueError("the lowering is broken")',
    """
    import jax
    (x,) = args
    return jax.ffi.ffi_call("missing", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
""",
).replace(
    "users_function().tolist()",
    """
broken, whole = users_function(), torch.ones(2, device="jax") + 1
for tensor in (whole, broken, whole + 1):
    try:
        print(tensor.tolist())
    except RuntimeError as error:
        print(error)
""",
)


def test_a_graph_that_xla_refuses_names_its_operations_and_leaves_other_tensors_usable(tmp_path):
    done = run_file(tmp_path / "users_program.py", REFUSED, TORCH_XLA_LITE_IR_DEBUG="1")
    assert done.returncode == 0, done.stderr
    first, problem, recorded, last = done.stdout.splitlines()
    assert (first, last) == ("[2.0, 2.0]", "[3.0, 3.0]")
    assert "aten::cosh: " in problem and "missing" in problem
    assert recorded.endswith(" in users_function.")


@pytest.mark.nightly
def test_an_error_that_only_the_compilers_options_cause_names_an_operation():
    program = """
import torch, torch_xla_lite
from torch_xla_lite.lowering.base import target
target.compiler_options = lambda **_: {"xla_missing_option": True}
torch.ones(2).to("jax").cosh().tolist()
"""
    done = run(program)
    assert done.returncode == 1
    assert "aten::cosh: " in done.stderr and "xla_missing_option" in done.stderr


# Of many different calls of an op some fail: in the lowering, while the graph is traced, or in code
# that the program calls while the graph runs.
MANY = """
import jax, numpy as np, torch, torch_xla_lite as lite

@torch.library.custom_op("test::op", mutates_args=())
def op(x: torch.Tensor, k: int) -> torch.Tensor:
    return x + k

op.register_fake(lambda x, k: torch.empty_like(x))
bad = {3, 40, 63}

@lite.register_lowering("test::op")
def _(x, k):
    if k in bad:
        raise ValueError(f"no such k: {k}")
    return x + k

x = torch.ones(3).to("jax")
values = [op(x, k) for k in range(64)]
lite.debug.reset_metrics()
try:
    lite.sync()
except RuntimeError as error:
    print(str(error).splitlines()[0])
print(lite.debug.metrics()["compiles"])
for k, value in enumerate(values):
    try:
        assert value.tolist() == [k + 1.0] * 3 and k not in bad
    except RuntimeError as error:
        assert f"no such k: {k}" in str(error) and k in bad
print(lite.debug.metrics()["compiles"])
"""


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("mode", ["first", "repeated"])
def test_calls_that_fail_are_found_without_a_compilation(mode):
    printed = lines(MANY, TORCH_XLA_LITE_COMPILE=mode, TORCH_XLA_LITE_COMPILATION_CACHE="0")
    assert printed == ["lowering of test::op failed: no such k: 3", "1", "1"]


# Three calls of one op, whose kernel raises for the values of one.
ONE_OF_THREE = """
import math, torch, torch_xla_lite as lite
from torch_xla_lite.lowering.base import registry
registry.find("aten::histc")
del registry.LOWERINGS["aten::histc"]
good, bad, other = (torch.tensor([0.0, n]).to("jax").histc(2) for n in (1, math.inf, 2))
lite.debug.reset_metrics()
print(good.tolist(), other.tolist(), lite.debug.metrics()["compiles"])
try:
    bad.tolist()
except RuntimeError as error:
    print("is not finite" in str(error))
"""


@pytest.mark.nightly
def test_a_kernel_that_fails_is_found_without_a_compilation_of_each_call():
    variables = {"TORCH_XLA_LITE_COMPILE": "first", "TORCH_XLA_LITE_COMPILATION_CACHE": "0"}
    assert lines(ONE_OF_THREE, **variables) == ["[1.0, 1.0] [1.0, 1.0] 2", "True"]


# The kernel finds the error in the data, long after the call. XLA code would not check the data, so
# the op must run as a kernel.
FAILING_KERNEL = """
import torch, torch_xla_lite
from torch_xla_lite.lowering.base import registry
registry.find("aten::_embedding_bag_forward_only")
registry.LOWERINGS.pop("aten::_embedding_bag_forward_only", None)

def users_function():
    table = torch.ones(3, 2, device="jax")
    rows, bags = torch.tensor([0, 7], device="jax"), torch.tensor([0], device="jax")
    return torch.nn.functional.embedding_bag(rows, table, bags)  # the line

users_function().tolist()
"""


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("debug", ["0", "1"])
def test_a_kernel_that_fails_while_the_graph_runs_is_named(tmp_path, debug):
    done = run_file(tmp_path / "users_program.py", FAILING_KERNEL, TORCH_XLA_LITE_IR_DEBUG=debug)
    assert done.returncode == 1
    problem, remedy = done.stderr.splitlines()[-2:]
    assert "aten::_embedding_bag_forward_only: Index 1 of input takes value 7" in problem
    assert remedy.endswith(
        "users_program.py:10 in users_function."
        if debug == "1"
        else "run again with TORCH_XLA_LITE_IR_DEBUG=1 in the environment."
    )


def test_a_sync_in_the_handler_of_an_error_has_none_of_its_own():
    x = torch.ones(2, 3, 5, 5, 5, dtype=torch.complex64).to("jax")
    try:
        torch.nn.functional.fractional_max_pool3d(x, 2, output_size=2).tolist()
    except NotImplementedError:
        torch.jax.synchronize()
    else:
        pytest.fail("the kernel takes complex numbers")


# The name of one op begins with that of the other; only the second one fails.
FAILING_NAMESAKE = """
import torch, torch_xla_lite, torch_xla_lite.ops
ops = torch.ops.torch_xla_lite
x, labels = torch.zeros(1, 3, device="jax"), torch.tensor([0], device="jax")
loss, total = ops.softmax_cross_entropy(x, labels, -100)
grad = ops.softmax_cross_entropy_backward(torch.ones(1, device="jax"), x, labels + 7, total, -100)
del loss, total  # so that both ops are in one program
grad.tolist()
"""


@pytest.mark.nightly
def test_an_operation_is_not_mistaken_for_one_with_a_longer_name(tmp_path):
    script = tmp_path / "users_program.py"
    done = run_file(script, FAILING_NAMESAKE, TORCH_XLA_LITE_IR_DEBUG="1")
    recorded = [line for line in done.stderr.splitlines() if line.startswith("Recorded at ")]
    assert recorded == [f"Recorded at {script}:6 in <module>."]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: torch.nested.nested_tensor([x, x[:1]]),
        lambda x: torch.nested.as_nested_tensor([x, x[:1]]),
        lambda x: torch.nested.nested_tensor([x, x[:1]], device="jax") * 2,
        lambda x: torch.nested.nested_tensor([x.cpu(), x.cpu()]).to("jax"),
    ],
    ids=["of tensors", "without a copy", "with a device", "moved"],
)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_nested_tensor_of_strided_layout_is_one_clear_error(make):
    with pytest.raises(NotImplementedError, match="no nested tensors of layout"):
        make(torch.eye(3, device="jax"))


@pytest.mark.nightly
def test_a_nested_tensor_of_jagged_layout_works():
    x = torch.eye(3, device="jax")
    nested = torch.nested.nested_tensor([x, x[:1]], layout=torch.jagged)
    assert (nested * 2).to_padded_tensor(7.0)[1].tolist() == [[2, 0, 0], [7, 7, 7], [7, 7, 7]]


@pytest.mark.nightly
def test_attention_of_nested_tensors_is_one_clear_error():
    x = torch.ones(3, 8, device="jax")
    nested = torch.nested.nested_tensor([x, x[:1]], layout=torch.jagged)
    heads = nested.unflatten(-1, [2, 4]).transpose(1, 2)
    with pytest.raises(NotImplementedError, match="no attention of nested tensors"):
        torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)
