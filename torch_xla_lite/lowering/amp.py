"""The ops of torch.amp.GradScaler: unscaling gradients, and adapting the scale."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from torch_xla_lite.lowering.base.promotion import opmath
from torch_xla_lite.lowering.base.registry import lower


@lower("aten::_amp_foreach_non_finite_check_and_unscale")
def non_finite_check_and_unscale(
    self: Sequence[jax.Array], found_inf: jax.Array, inv_scale: jax.Array
) -> tuple[list[jax.Array], jax.Array]:
    """The gradients times `inv_scale`, and 1 in `found_inf` if an element is not finite."""
    if not self:
        return [], found_inf
    finite = [jnp.isfinite(gradient).all() for gradient in self]
    found = jnp.where(jnp.stack(finite).all(), found_inf, 1)
    return [(opmath(g) * inv_scale).astype(g.dtype) for g in self], found.astype(found_inf.dtype)


@lower("aten::_amp_update_scale", constants=True)
def update_scale(
    self: jax.Array,
    growth_tracker: jax.Array,
    found_inf: jax.Array,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> tuple[jax.Array, jax.Array]:
    """The next scale, and the number of finite steps since it changed last."""
    steps = growth_tracker + 1
    is_time = steps == growth_interval
    grown = self * scale_growth_factor
    grown = jnp.where(is_time & jnp.isfinite(grown), grown, self)
    found = lax.ne(found_inf, jnp.zeros_like(found_inf))
    scale = jnp.where(found, self * scale_backoff_factor, grown)
    steps = jnp.where(found | is_time, 0, steps)
    return scale.astype(self.dtype), steps.astype(growth_tracker.dtype)
