"""torch.nn.attention.flex_attention on device jax."""

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

import torch_xla_lite  # noqa: F401  device jax

SIZES = (1, 2, 32, 8)
Q, K, V = (torch.randn(SIZES, generator=torch.Generator().manual_seed(i)) for i in range(3))


def is_causal(batch, head, query, key):
    return query >= key


def nearest_first(score, batch, head, query, key):
    return score - (query - key).abs() * 0.1


pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("has_mask", [False, True])
@pytest.mark.parametrize("function", [flex_attention, torch.compile(flex_attention)])
def test_it_is_that_of_the_cpu(function, has_mask):
    def attend(function, device):
        mask = create_block_mask(is_causal, 1, 1, 32, 32, device=device) if has_mask else None
        return function(*(x.to(device) for x in (Q, K, V)), nearest_first, mask)

    torch.testing.assert_close(attend(function, "jax").cpu(), attend(flex_attention, "cpu"))


def test_its_gradients_are_those_of_attention():
    on_jax = [x.jax().requires_grad_() for x in (Q, K, V)]
    on_cpu = [x.clone().requires_grad_() for x in (Q, K, V)]
    mask = create_block_mask(is_causal, None, None, 32, 32, device="jax")
    found = torch.autograd.grad(flex_attention(*on_jax, block_mask=mask).square().sum(), on_jax)
    attention = scaled_dot_product_attention(*on_cpu, is_causal=True)
    expected = torch.autograd.grad(attention.square().sum(), on_cpu)
    torch.testing.assert_close([x.cpu() for x in found], list(expected))


def test_the_check_of_other_devices_stays():
    with pytest.raises(NotImplementedError, match="does not support backward on CPU"):
        flex_attention(Q.clone().requires_grad_(), K, V)
