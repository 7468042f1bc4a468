"""torch's FlopCounterMode counts the products of tensors on jax."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import torch_xla_lite  # noqa: F401  device jax


def total(device: str, module: torch.nn.Module, *sizes: int, needs_gradient: bool = True) -> int:
    """Of a step forward and backward."""
    x = torch.randn(*sizes, device=device, requires_grad=needs_gradient)
    with FlopCounterMode(display=False) as counter:
        torch.utils._pytree.tree_leaves(module.to(device)(x))[0].sum().backward()
    return counter.get_total_flops()


MODULES = {
    "linear": (lambda: torch.nn.Linear(16, 32), (8, 16)),
    "linear without bias": (lambda: torch.nn.Linear(16, 32, bias=False), (2, 4, 16)),
    "transformer": (lambda: torch.nn.TransformerEncoderLayer(16, 2, 32), (2, 8, 16)),
    "convolution": (lambda: torch.nn.Conv2d(3, 4, 3), (2, 3, 8, 8)),
}


@pytest.mark.parametrize("needs_gradient", [True, False])
@pytest.mark.parametrize("name", MODULES)
def test_the_count_is_that_of_the_cpu(name, needs_gradient):
    make, sizes = MODULES[name]
    on_cpu, on_jax = (
        total(device, make(), *sizes, needs_gradient=needs_gradient) for device in ("cpu", "jax")
    )
    assert on_jax == on_cpu


def test_a_bias_alone_needs_no_product():
    module = torch.nn.Linear(16, 32)
    module.weight.requires_grad_(False)
    assert total("jax", module, 8, 16, needs_gradient=False) == 2 * 8 * 16 * 32


@pytest.mark.parametrize(
    ("layer", "gates", "options"),
    [(torch.nn.LSTM, 4, {}), (torch.nn.GRU, 3, {}), (torch.nn.LSTM, 4, {"proj_size": 5})],
)
def test_a_recurrent_layer_multiplies_its_inputs_and_states(layer, gates, options):
    steps, batch, width, hidden = 7, 2, 6, 8
    state = options.get("proj_size", hidden)
    of_weights = gates * hidden * (width + state) + (state * hidden if options else 0)
    found = total("jax", layer(width, hidden, **options), steps, batch, width)
    assert found == 3 * 2 * steps * batch * of_weights
