"""Moves tensors to and from jax and leaves them the same objects: `model.to("jax")`, `x.data = y`.

An optimizer made before `model.to('jax')` holds the model's Parameters, so these must stay the same
objects, as for `model.cuda()`. torch would make new ones, because a tensor on jax cannot be
assigned to the `.data` of a CPU tensor: each is a class of its own in C++. The flag
torch.__future__.set_swap_module_params_on_conversion would help, but it changes load_state_dict and
every other conversion in the process.

So the C++ objects of two Python objects are exchanged here. torch.utils.swap_tensors does it, too,
and refuses if anything else refers to the data, such as a graph that is still alive, or torch's
profiler. Here a backward pass through that graph raises instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from .. import _XLAC
from ..device.autoload import NAME
from ..startup.patches import Patch

Convert = Callable[[torch.Tensor], torch.Tensor]


def keeping_parameters(apply: Callable[..., torch.nn.Module]) -> Callable[..., torch.nn.Module]:
    """A `Module._apply` that keeps Parameters the same objects when they move to or from jax.
    torch's own does everything else."""

    def _apply(self: torch.nn.Module, fn: Convert, recurse: bool = True) -> Any:
        def convert(tensor: torch.Tensor) -> torch.Tensor:
            return keep_parameter(self, tensor, fn(tensor), fn)

        return apply(self, convert, recurse)

    _apply.__doc__ = apply.__doc__
    return _apply


def keep_parameter(
    module: torch.nn.Module, tensor: torch.Tensor, moved: torch.Tensor, fn: Convert
) -> torch.Tensor:
    """`tensor` with the data of `moved` if it is a parameter of `module` that moved to or from jax;
    else `moved`, which is `fn(tensor)`."""
    if (
        _differ(tensor, moved)
        # torch itself swaps a tensor that wraps others.
        and not is_traceable_wrapper_subclass(moved)
        # Not by their type: a module of TorchScript that was loaded has plain tensors.
        and any(tensor is parameter for parameter in module._parameters.values())
    ):
        _move(tensor, moved, fn)
        vars(tensor).update(vars(moved))
        return tensor
    return moved


def moving_data(original: Any) -> property:
    """torch.Tensor.data, whose setter also takes the data of a tensor of another device where one
    of the two is jax."""

    def set_data(self: torch.Tensor, data: torch.Tensor) -> None:
        try:
            original.__set__(self, data)
        except RuntimeError:
            if not (isinstance(data, torch.Tensor) and _differ(self, data)):
                raise
            _replace_data(self, data)

    return _Data(original.__get__, set_data, doc=original.__doc__)


class _Data(property):
    # torch.compile recognises the properties of tensors by these.
    __name__ = "data"
    __objclass__ = torch._C.TensorBase


def _differ(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether one of two tensors is on jax, and the other is not."""
    types = tensor.device.type, other.device.type
    return types[0] != types[1] and NAME in types


def _replace_data(tensor: torch.Tensor, data: torch.Tensor) -> None:
    if not tensor.is_leaf or _wraps_tensors(tensor) or _wraps_tensors(data):
        raise RuntimeError(
            f"`x.data = y` cannot move x to {data.device}: one of the two wraps other tensors, or "
            "x is the result of an operation that has a gradient.\n"
            f"Make another tensor:  x = x.to('{data.device.type}')"
        )
    _move(tensor, data, lambda gradient: gradient.to(data.device))


def _wraps_tensors(tensor: torch.Tensor) -> bool:
    return is_traceable_wrapper_subclass(tensor) or isinstance(tensor, torch._subclasses.FakeTensor)


def _move(tensor: torch.Tensor, data: torch.Tensor, fn: Convert) -> None:
    """Gives `tensor` the data of another tensor; it keeps its hooks, and has `fn(gradient)`."""
    place = data.device
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
        # What may fail comes first, and changes `new` alone.
        new = data.detach().requires_grad_(tensor.requires_grad)
        if tensor.grad is not None:
            new.grad = fn(tensor.grad).requires_grad_(tensor.grad.requires_grad)
        new._backward_hooks = tensor._backward_hooks
        new._post_accumulate_grad_hooks = tensor._post_accumulate_grad_hooks
        _XLAC.swap_tensors(tensor, new)  # From here on `new` has the old data.
        new._backward_hooks = new._post_accumulate_grad_hooks = None
        if new.requires_grad:
            new.register_hook(lambda gradient: _refuse_gradient(place))


def _refuse_gradient(place: torch.device) -> None:
    raise RuntimeError(
        f"a parameter moved to {place} after the forward pass, so the backward pass cannot reach "
        "it.\nMove the module before the forward pass, or after the backward pass:  model.to(...)"
    )


PATCHES = (
    Patch(
        "torch.nn.modules.module",
        "Module._apply",
        "makes new parameters where a module moves to another device",
        lambda apply: keeping_parameters(getattr(apply, "replaced", apply)),  # Of autoload.py.
    ),
    Patch("torch", "Tensor.data", "refuses data of another device", moving_data),
)
