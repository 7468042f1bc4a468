"""OptaxOptimizer: an optimizer of optax for parameters of torch.

    optimizer = OptaxOptimizer(model.parameters(), optax.adamw(1e-3))
    loss.backward()
    optimizer.step()

optax itself is not needed: any pair of jax functions `init(params)` and `update(gradients, state,
params)` that gives updates and the next state will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import jax
import torch

from .jax_calls import call_jax


class GradientTransformation(Protocol):
    """What optax calls an optimizer."""

    init: Callable[[Any], Any]
    update: Callable[..., tuple[Any, Any]]


class _Group(dict[str, Any]):
    """The group of parameters, which says where the options are that it lacks."""

    def __missing__(self, key: str) -> Any:
        raise KeyError(
            f"an optimizer of optax has no {key!r} in its group: learning rates and schedules are "
            "those of the transformation, as in optax.adam(optax.cosine_decay_schedule(1e-3, 100))"
        )


class OptaxOptimizer(torch.optim.Optimizer):
    """A torch.optim.Optimizer that computes by a gradient transformation.

    The transformation sees parameters as a list, or as a dict by name if they came with names, as
    from `model.named_parameters()`. A parameter without a gradient has the gradient 0; one that
    requires none stays as it is. Learning
    rates and schedules are those of the transformation: there is one group, without options.

    `state_dict()` has the leaves of the transformation's state, so that training resumes.
    """

    def __init__(
        self,
        params: Iterable[torch.Tensor] | Iterable[tuple[str, torch.Tensor]],
        transformation: GradientTransformation,
    ) -> None:
        super().__init__(params, {})
        self._transformation = transformation
        with torch.no_grad():
            self._state = call_jax(transformation.init, self._tree(self._parameters()))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if self.param_groups:
            raise ValueError(
                "an optimizer of optax has one group of parameters.\n"
                "Use optax.multi_transform for parameters that are updated in different ways."
            )
        super().add_param_group(_Group(param_group))

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters.

        Args:
          closure: computes the loss again, with its gradients.

        Returns:
          The loss, if there is a closure.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        parameters = self._parameters()
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        updates, self._state = call_jax(
            self._transformation.update, self._tree(gradients), self._state, self._tree(parameters)
        )
        in_order = (
            updates if isinstance(updates, list) else [updates[name] for name in self._names()]
        )
        if trained := [
            (p, x) for p, x in zip(parameters, in_order, strict=True) if p.requires_grad
        ]:
            torch._foreach_add_(*map(list, zip(*trained, strict=True)))
        return loss

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "transformation": jax.tree.leaves(self._state)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        leaves, tree = jax.tree.flatten(self._state)
        loaded = state_dict.get("transformation", [])
        if [x.shape for x in loaded] != [x.shape for x in leaves]:
            raise ValueError(
                "the state is that of another transformation or of other parameters: "
                f"{len(loaded)} arrays, expected {len(leaves)} of these shapes.\n"
                "Make the optimizer with the transformation that was saved."
            )
        loaded = [x.to(y.device, y.dtype) for x, y in zip(loaded, leaves, strict=True)]
        self._state = jax.tree.unflatten(tree, loaded)
        others = {name: value for name, value in state_dict.items() if name != "transformation"}
        super().load_state_dict(others)
        self.param_groups = [_Group(group) for group in self.param_groups]

    def _parameters(self) -> list[torch.Tensor]:
        return self.param_groups[0]["params"]

    def _names(self) -> list[str]:
        return self.param_groups[0].get("param_names", [])

    def _tree(self, tensors: list[torch.Tensor]) -> Any:
        names = self._names()
        return dict(zip(names, tensors, strict=True)) if names else list(tensors)
