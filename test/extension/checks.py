"""Runs torch's checks of custom ops on the example, and prints their results as JSON.

A program for the environment in which the example is installed; extension_test.py reads what it
prints.
"""

import json
from collections.abc import Callable
from typing import Any

import torch
import torch.utils._python_dispatch
import xla_isotonic
from jaxlib import xla_client

_VALUES = torch.linspace(0, 5, 12, dtype=torch.float64).cos().reshape(2, 3, 2).contiguous()


class _Calls(torch.utils._python_dispatch.TorchDispatchMode):
    """Counts the calls of the example's op."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func is torch.ops.xla_isotonic.fit.default
        return func(*args, **(kwargs or {}))


def _leaf(device: str, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return (
        torch.tensor([[1.0, 3.0, 2.5], [0.5, 0.25, -2.0]], dtype=dtype).to(device).requires_grad_()
    )


def _said(check: Callable[..., Any], *arguments: Any) -> str:
    try:
        check(*arguments)
    except Exception as error:
        return str(error)
    return "passed"


def _checks(device: str) -> dict[str, Any]:
    def with_options(values: torch.Tensor) -> torch.Tensor:
        return xla_isotonic.fit(values, increasing=False, lower=-1.0, upper=2.0)

    def opcheck(op, *arguments) -> dict[str, str]:
        results = torch.library.opcheck(op, arguments, raise_exception=False)
        return {name: str(result) for name, result in results.items()}

    values = _VALUES.to(device)
    fitted = xla_isotonic.fit(_leaf(device)).detach()
    with _Calls() as calls:
        torch.vmap(xla_isotonic.fit)(values)
    precise = torch.tensor([1, 1 + 3e-12, 1 + 1e-12], dtype=torch.float64).to(device)
    return {
        "opcheck": {
            "fit float32": opcheck(xla_isotonic.fit, _leaf(device, torch.float32)),
            "fit float64": opcheck(xla_isotonic.fit, _leaf(device)),
            "fit with options": opcheck(xla_isotonic.fit, _leaf(device), False, -1.0, 2.0),
            "pool": opcheck(xla_isotonic.pool, _leaf(device), fitted),
        },
        "gradcheck": _said(torch.autograd.gradcheck, xla_isotonic.fit, _leaf(device)),
        "gradcheck with options": _said(torch.autograd.gradcheck, with_options, _leaf(device)),
        "gradgradcheck": _said(torch.autograd.gradgradcheck, xla_isotonic.fit, _leaf(device)),
        "func.grad": _said(torch.func.grad(lambda row: xla_isotonic.fit(row).sum()), _leaf(device)),
        "vmap": [torch.vmap(xla_isotonic.fit, dim)(values).tolist() for dim in range(3)],
        "loop": [
            torch.stack([xla_isotonic.fit(rows) for rows in values.unbind(dim)]).tolist()
            for dim in range(3)
        ],
        "calls under vmap": calls.count,
        "precise": xla_isotonic.fit(precise).tolist(),
    }


# What the CUDA plugin of jax does when it is loaded: it asks for the handlers of its platform.
for_cuda: list[str] = []
xla_client.register_custom_call_handler("CUDA", lambda name, *_: for_cuda.append(name))

results: dict[str, Any] = {device: _checks(device) for device in ("cpu", "jax")}
print(json.dumps({**results, "registered for CUDA": for_cuda}))
