"""torch's own database of modules through torch.compile with our backend, like its AOT tests."""

import pytest
import torch
from torch.testing._internal.common_modules import ModuleInfo, module_db
from torch.utils import _pytree as pytree

from torch_xla_lite.compile_backend import backend

EXCEPTIONS = {
    "nn.FractionalMaxPool": "their samples are in float64, which they refuse on the CPU, too",
    "nn.LazyConv": "their parameters are drawn in the first call, with other numbers on the device",
}
MODULES = [info for info in module_db if not info.name.startswith(tuple(EXCEPTIONS))]


def run(module: torch.nn.Module, call: object, compiled: bool, device: str) -> list:
    """The outputs and the gradients of a call."""

    def copied(leaf: object) -> object:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return leaf.detach().to(device).requires_grad_(leaf.requires_grad)

    args, kwargs = pytree.tree_map(copied, (call.args, call.kwargs))
    module = module.to(device)
    model = torch.compile(module, backend=backend) if compiled else module
    outputs = [leaf for leaf in pytree.tree_leaves(model(*args, **kwargs)) if leaf is not None]
    differentiable = [leaf for leaf in outputs if leaf.requires_grad]
    torch.autograd.backward([leaf.float().square().mean() for leaf in differentiable])
    leaves = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    gradients = [leaf.grad for leaf in (*leaves, *module.parameters()) if leaf.grad is not None]
    return [leaf.detach().cpu() for leaf in (*outputs, *gradients)]


@pytest.mark.nightly
@pytest.mark.parametrize("info", MODULES, ids=lambda info: info.name)
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_a_module_trains_like_on_the_cpu(info: ModuleInfo, training: bool):
    torch.compiler.reset()
    samples = info.module_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
    )
    for sample in samples[:2]:
        made = []
        for _ in range(2):
            torch.manual_seed(0)
            arguments = sample.constructor_input
            made.append(info.module_cls(*arguments.args, **arguments.kwargs).train(training))
        call = sample.forward_input
        expected = run(made[0], call, compiled=False, device="cpu")
        found = run(made[1], call, compiled=True, device="jax")
        assert len(found) == len(expected)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=5e-5, equal_nan=True)
