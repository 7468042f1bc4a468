"""torch's own databases of modules and operators through torch.compile with our backend.

So torch tests AOTAutograd, on which the backend is built.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import ModuleInfo, module_db
from torch.testing._internal.opinfo.core import OpInfo
from torch.utils import _pytree as pytree

from torch_xla_lite.interop.compile_backend import backend

pytestmark = pytest.mark.nightly

MODULES = {
    "nn.FractionalMaxPool": "samples in float64, which the module refuses, also on the CPU",
    "nn.LazyConv": "parameters drawn in the first call: other numbers on the device",
}
OPS = {
    "as_strided.partial_views": "a copy of its sample has no memory around it",
    "chalf": "a dtype that XLA lacks",
    "jiterator": "CUDA code",
    "linalg.eigh": "vectors of either sign",
    "max_pool2d_with_indices_backward": "torch cannot trace it for sizes that vary",
    "matrix_exp": "numbers of 1e9, of which 1e-3 is lost",
    "native_batch_norm": "torch traces results of another shape, with aot_eager, too",
    "_native_batch_norm_legit": "the same",
    "sparse.mm.reduce": "sparse",
}
RANDOM = (  # Parts of names.
    *("alpha_dropout", "bernoulli", "cauchy", "dropout", "empty", "exponential", "geometric"),
    *("log_normal", "lowrank", "multi_head_attention_forward", "multinomial", "normal", "rand"),
    *("rrelu", "uniform"),
)


def results(call: Callable, args: tuple, kwargs: dict, module: torch.nn.Module | None) -> list:
    """The outputs, and the gradients of the arguments and of the module's parameters."""
    leaves = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    inputs = [x for x in (*leaves, *(module.parameters() if module else ())) if x.requires_grad]
    outputs = [x for x in pytree.tree_leaves(call(*args, **kwargs)) if isinstance(x, torch.Tensor)]
    losses = [x.abs().float().square().mean() for x in outputs if x.requires_grad]
    gradients = torch.autograd.grad(losses, inputs, allow_unused=True) if losses and inputs else ()
    return [None if x is None else x.detach().cpu() for x in (*outputs, *gradients)]


def on(device: str, *values: object) -> object:
    """The values, with copies of their tensors on a device."""
    return pytree.tree_map_only(
        torch.Tensor, lambda x: x.detach().to(device).requires_grad_(x.requires_grad), values
    )


def first(samples: Iterable, count: int) -> Iterator:
    return itertools.islice(iter(samples), count)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize(
    "info", [i for i in module_db if not i.name.startswith(tuple(MODULES))], ids=lambda i: i.name
)
def test_a_module_trains_like_on_the_cpu(info: ModuleInfo, training: bool):
    torch.compiler.reset()
    samples = info.module_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
    )
    for sample in first(samples, 2):
        made = sample.constructor_input
        call = sample.forward_input
        found = []
        for device in ("cpu", "jax"):
            torch.manual_seed(0)
            module = info.module_cls(*made.args, **made.kwargs).train(training).to(device)
            compiled = torch.compile(module, backend=backend) if device == "jax" else module
            found.append(results(compiled, *on(device, call.args, call.kwargs), module))
        torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=5e-5, equal_nan=True)


def name(op: OpInfo) -> str:
    return ".".join(filter(None, (op.name, op.variant_test_name)))


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(
    "op",
    [o for o in op_db if torch.float32 in o.dtypes and not name(o).startswith(tuple(OPS))],
    ids=name,
)
def test_an_op_computes_like_on_the_cpu(op: OpInfo, dynamic: bool):
    samples = op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd)
    for sample in first(samples, 1):
        torch.compiler.reset()
        call = (sample.input, *sample.args)
        try:
            expected = results(op.op, *on("cpu", call, sample.kwargs), None)
        except RuntimeError:  # torch cannot compute it, either.
            continue
        args, kwargs = on("jax", call, sample.kwargs)
        if "device" in kwargs:
            kwargs["device"] = "jax"
        compiled = torch.compile(lambda *a, **k: op.op(*a, **k), backend=backend, dynamic=dynamic)
        found = results(compiled, args, kwargs, None)
        if not any(word in name(op) for word in RANDOM):
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3, equal_nan=True)
