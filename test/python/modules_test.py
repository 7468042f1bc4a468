"""Common modules on the device: they agree with the CPU, and nothing falls back."""

import copy

import pytest
import torch
from torch import nn

from test.python import tiers
from torch_xla_lite import debug

PADDING = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])


class MaskedEncoder(nn.Module):
    """What is hidden is not compared: it may be anything."""

    def __init__(self, **options: object) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, **options)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2)

    def forward(self, x: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        return self.encoder(x, src_key_padding_mask=padding) * (~padding)[..., None]


class Seq2Seq(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.transformer = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        length = target.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=target.device)
        return self.transformer(source, target, tgt_mask=mask, tgt_is_causal=True)


MODULES = {
    "encoder": (MaskedEncoder(), torch.randn(2, 5, 8), PADDING),
    "encoder, norm first": (
        MaskedEncoder(norm_first=True, activation="gelu"),
        torch.randn(2, 5, 8),
        PADDING,
    ),
    "seq2seq": (Seq2Seq(), torch.randn(2, 5, 8), torch.randn(2, 4, 8)),
}


def results(module: nn.Module, inputs: list[torch.Tensor], train: bool) -> list[torch.Tensor]:
    """The output and, in training, the gradients of all parameters."""
    module.train(train)
    with torch.set_grad_enabled(train):
        output = module(*inputs)
    if not train:
        return [output]
    output.square().sum().backward()
    return [output.detach(), *(p.grad for p in module.parameters() if p.grad is not None)]


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("name", MODULES)
def test_a_module_agrees_with_the_cpu_and_nothing_falls_back(name, train):
    module, *inputs = MODULES[name]
    on_cpu, on_jax = copy.deepcopy(module), copy.deepcopy(module).to("jax")
    debug.reset_metrics()
    got = results(on_jax, [x.jax() for x in inputs], train)
    got = [x.cpu() for x in got]
    assert debug.metrics()["fallbacks"] == {}
    torch.testing.assert_close(got, results(on_cpu, inputs, train), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("mode", ["first", "repeated"])
def test_attention_in_evaluation_without_weights(mode):
    """torch calls one op for all of it."""
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(2, 3, 8)
    with torch.no_grad():
        wanted = attention(x, x, x, need_weights=False)[0]
        attention.to("jax")
        with tiers.mode(mode):
            got = attention(*[x.to("jax")] * 3, need_weights=False)[0]
            torch.testing.assert_close(got.cpu(), wanted)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_the_gradient_of_bags_whose_last_offset_is_included(mode):
    weight = torch.randn(7, 4)
    indices, offsets = torch.tensor([1, 6, 0, 3, 3, 2, 6]), torch.tensor([0, 2, 2, 5, 7])

    def gradient(device: str) -> torch.Tensor:
        table = weight.to(device).requires_grad_()
        bags = torch.nn.functional.embedding_bag(
            indices.to(device), table, offsets.to(device), mode=mode, include_last_offset=True
        )
        return torch.autograd.grad(bags.sin().sum(), table)[0].cpu()

    torch.testing.assert_close(gradient("jax"), gradient("cpu"))
