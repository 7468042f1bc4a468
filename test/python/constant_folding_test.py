"""What XLA computes while it compiles must not end the process: values that a program filled."""

import pytest

from test.python.programs import run

pytestmark = pytest.mark.nightly

# In processes of their own, because a trap ends the process. The last line names what was compiled.
_BEGIN = """
import contextlib, sys
import jax, torch, torch_xla_lite

def compile(name, results):
    print(name, flush=True)
    try:
        alive = results()
        torch.jax.synchronize()
    except Exception:
        pass  # An error is fine.
"""

_INTEGERS = (
    _BEGIN
    + """
NAMES = ("floor_divide", "remainder", "fmod", "gcd", "lcm", "pow", "float_power",
         "bitwise_left_shift", "bitwise_right_shift")
OPS = {
    **{name: getattr(torch, name) for name in NAMES},
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "//=": lambda a, b: a.floor_divide_(b),
    "number //": lambda a, b: 7 // b,
    "number %": lambda a, b: 7 % b,
    "call_jax": lambda a, b: torch_xla_lite.call_jax(jax.lax.div, a, b),
}

PAIRS = [(1, 0), (0, 0), (-1, -1), (None, -1)]  # None: the smallest number.

def results(op):
    dtype = getattr(torch, sys.argv[1])
    for a, b in PAIRS:
        least = torch.iinfo(dtype).min
        numbers = [least if a is None else max(a, least), max(b, least)]
        with contextlib.suppress(Exception):
            yield op(*(torch.full((3,), n, dtype=dtype, device="jax") for n in numbers))

for name, op in OPS.items():
    compile(name, lambda: list(results(op)))
print("done")
"""
)

_DATABASE = (
    _BEGIN
    + """
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_map_only

part, parts = map(int, sys.argv[1:])
for op in op_db[part::parts]:
    if torch.int64 not in op.dtypes:
        continue
    for number, sample in zip(range(3), op.sample_inputs("cpu", torch.int64)):
        for value in (0, -1):
            def on_jax(x):
                return torch.full(x.shape, value if x.dtype == torch.int64 else 0, dtype=x.dtype,
                                  device="jax")
            arguments = (sample.input, sample.args, sample.kwargs)
            compile(f"{op.name} {number} {value}", lambda: (
                lambda x, args, kwargs: op(x, *args, **kwargs)
            )(*tree_map_only(torch.Tensor, on_jax, arguments)))
print("done")
"""
)


def _last_line(program: str, *arguments: str) -> str:
    environ = {"TORCH_XLA_LITE_COMPILE": "first", "TORCH_XLA_LITE_COMPILATION_CACHE": "0"}
    return run(program, *arguments, **environ).stdout.splitlines()[-1]


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8"])
def test_no_operation_of_integers_traps(dtype):
    assert _last_line(_INTEGERS, dtype) == "done"


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(8))
def test_no_operation_of_the_database_traps(part):
    assert _last_line(_DATABASE, str(part), "8") == "done"
