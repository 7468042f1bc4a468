"""Makes `torch.library.opcheck` accept tensors on device 'jax'.

    torch.library.opcheck(my_op, (torch.randn(3, device="jax", requires_grad=True),))

Two of torch's helpers know only the devices of torch itself: the one that copies the inputs reads
the memory at their addresses, where tensors on jax have none, and the check of the autograd
registration knows the dispatch keys of CPU, CUDA and XPU alone. Both are unchanged for other
devices.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..device.tensor import XLATensor2
from ..startup.patches import Patch


def _cloning(clone_input: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(clone_input)
    def clone(tensor: torch.Tensor) -> torch.Tensor:
        if not isinstance(tensor, XLATensor2):
            return clone_input(tensor)
        # Row-major, as all results on jax are: those of fake tensors have the strides of operands.
        copy = tensor.detach().clone(memory_format=torch.contiguous_format)
        return copy.requires_grad_(tensor.requires_grad)

    return clone


def _checking(check_autograd: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(check_autograd)
    def check(op: torch._ops.OpOverload, args: Any, kwargs: Any) -> None:
        if any(isinstance(leaf, XLATensor2) for leaf in pytree.arg_tree_leaves(*args, **kwargs)):
            _check_autograd_registration(op, args, kwargs)
        else:
            check_autograd(op, args, kwargs)

    return check


def _check_autograd_registration(op: torch._ops.OpOverload, args: Any, kwargs: Any) -> None:
    """Checks that a gradient, if the op has one, is registered where autograd looks for it.

    Raises:
      AssertionError: an output requires a gradient although no autograd kernel has run.
    """
    from torch.testing._internal.optests.autograd_registration import set_autograd_fallback_mode

    keys = ("AutogradPrivateUse1", "Autograd", "CompositeImplicitAutograd")
    if any(torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key) for key in keys):
        return
    inputs = {id(leaf) for leaf in pytree.arg_tree_leaves(*args, **kwargs)}
    with set_autograd_fallback_mode("nothing"):
        outputs = pytree.tree_leaves(op(*args, **kwargs))
    if any(
        isinstance(output, torch.Tensor) and output.requires_grad and id(output) not in inputs
        for output in outputs
    ):
        raise AssertionError(
            f"{op.name()}: an output requires a gradient, but the op has no autograd kernel.\n"
            "Register its gradient:  torch.library.register_autograd"
        )


_CHECKS = "torch.testing._internal.optests.generate_tests"
PATCHES = (
    Patch(
        _CHECKS,
        "clone_input",
        "reads the memory at the addresses of tensors, where those on jax have none",
        _cloning,
    ),
    Patch(
        _CHECKS,
        "autograd_registration_check",
        "knows the dispatch keys of CPU, CUDA and XPU alone",
        _checking,
    ),
)
