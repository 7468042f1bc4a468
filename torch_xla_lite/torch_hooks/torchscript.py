"""Modules of TorchScript on jax: they move there and back, and are loaded there.

    torch.jit.script(model).to("jax")
    torch.jit.load("model.pt", map_location="jax")      # torch.load of such a file, too

Their tensors are in C++, where torch changes what a tensor on jax does not expect to change:

* A parameter that moves keeps its Python object and gets another C++ object (device.py). A script
  holds the latter, as a parameter or in a list, such as the weights of an LSTM.
* The importer makes an empty tensor and replaces its storage, sizes and strides. A tensor on jax is
  a view of its storage by steps of its own (csrc/tensor/tensor_impl.h).

So both are completed here. Until then the importer may not compare constants by their values
(lowering/python_kernels/composites.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree

from .. import _XLAC
from ..device.tensor import XLATensor2
from ..startup.patches import Patch


def _apply(
    self: torch.jit.ScriptModule, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True
) -> torch.jit.ScriptModule:
    modules = list(self.modules()) if recurse else [self]
    scripts = [module for module in modules if isinstance(module, torch.jit.ScriptModule)]
    parameters = [
        (script._c, name, parameter)
        for script in scripts
        for name, parameter in script._parameters.items()
    ]
    for module in modules:
        apply = torch.nn.Module._apply if module in scripts else type(module)._apply
        apply(module, fn, recurse=False)
    # The C++ object that a script still holds belongs to another Python object now.
    held = [script.getattr(name) for script, name, _ in parameters]
    moved = {
        id(old): parameter
        for old, (_, _, parameter) in zip(held, parameters, strict=True)
        if old is not parameter
    }
    if moved:
        for script in scripts:
            _replace(script._c, moved)
    return self


def _replace(script: torch._C.ScriptModule, tensors: dict[int, torch.Tensor]) -> None:
    """Replaces tensors in all attributes of a script, by their ids."""
    for name in _attributes(script):
        value = script.getattr(name)
        if any(id(leaf) in tensors for leaf in _pytree.tree_leaves(value)):
            replaced = _pytree.tree_map(lambda leaf: tensors.get(id(leaf), leaf), value)
            script.setattr(name, replaced)


def _completing(import_: Callable[..., torch._C.ScriptModule]) -> Callable[..., Any]:
    @functools.wraps(import_)
    def import_and_complete(*args: Any) -> torch._C.ScriptModule:
        _XLAC.claim_storage(True)
        try:
            script = import_(*args)
        finally:
            _XLAC.claim_storage(False)
        with torch.no_grad(), torch._C.DisableTorchFunction():
            for value in _values(script):
                for leaf in _pytree.tree_leaves(value):
                    if isinstance(leaf, XLATensor2):
                        layout = leaf.storage_offset(), leaf.size(), leaf.stride()
                        leaf.set_(leaf.untyped_storage(), *layout)
        return script

    return import_and_complete


def _attributes(script: torch._C.ScriptModule) -> list[str]:
    """The names of parameters, buffers and other attributes, without modules."""
    return list(torch._C.ConcreteModuleType.from_jit_type(script._type()).get_attributes())


def _values(script: torch._C.ScriptModule) -> Iterator[Any]:
    """All that may contain tensors: attributes, and constants in the code."""
    for name in _attributes(script):
        yield script.getattr(name)
    for name in script._method_names():
        yield from _constants(script._get_method(name).inlined_graph)
    for _, child in torch._C.ModuleDict(script).items():
        yield from _values(child)


def _constants(graph: torch._C.Graph) -> Iterator[Any]:
    for node in graph.findAllNodes("prim::Constant"):
        yield node.output().toIValue()
    for node in graph.findAllNodes("prim::fork"):
        yield from _constants(node.g("Subgraph"))


PATCHES = (
    Patch(
        "torch.jit",
        "ScriptModule._apply",
        "changes the parameters of Python alone",
        lambda apply: _apply,
    ),
    *(
        Patch("torch._C", name, "sets sizes and strides, which views on jax ignore", _completing)
        for name in ("import_ir_module", "import_ir_module_from_buffer")
    ),
)
