import jax
import numpy as np
import pytest
import torch
from comparison import check, run

from torch_xla_lite import debug
from torch_xla_lite.lowering import attention

aten = torch.ops.aten
E, HEADS = 8, 2
X = torch.randn(2, 5, E)
PROJECTIONS = (torch.randn(3 * E, E), torch.randn(3 * E), torch.randn(E, E), torch.randn(E))
NORMS = (torch.randn(E), torch.randn(E), torch.randn(E), torch.randn(E))
FEED_FORWARD = (torch.randn(16, E), torch.randn(16), torch.randn(E, 16), torch.randn(E))
CAUSAL = torch.ones(5, 5, dtype=torch.bool).triu(1)
PADDING = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
WHOLE = torch.randn(2, HEADS, 5, 5) > 0
MASKS = {
    "none": (None, None),
    "causal": (CAUSAL, 0),
    "padding": (PADDING, 1),
    "whole": (WHOLE, 2),
    "nothing visible": (torch.ones(5, 5, dtype=torch.bool), 0),
}
masks = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())


def close(op, *args, **kwargs):
    check(op, *args, rtol=1e-4, atol=1e-4, **kwargs)


@pytest.mark.few_daily(1)
@masks
@pytest.mark.parametrize("gelu", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_a_whole_encoder_layer(gelu, norm_first, mask):
    options = (gelu, norm_first, 1e-5)
    args = (X, E, HEADS, *PROJECTIONS, *options, *NORMS, *FEED_FORWARD, *mask)
    close(aten._transformer_encoder_layer_fwd, *args)


@pytest.mark.few_daily(1)
@masks
@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_multi_head_attention(mask, at_once, monkeypatch):
    monkeypatch.setattr(attention.target, "most_scores", lambda: at_once * 2 * HEADS * 5)
    args = (X, X, X, E, HEADS, *PROJECTIONS, mask[0], False, True, mask[1])
    close(aten._native_multi_head_attention, *args, compare=[0])


@pytest.mark.parametrize("average", [True, False])
def test_its_weights(average):
    args = (X, X, X, E, HEADS, *PROJECTIONS, None, True, average, None)
    close(aten._native_multi_head_attention, *args)


def test_bias_rescale_and_split_into_heads():
    close(aten._transform_bias_rescale_qkv, torch.randn(2, 5, 24), torch.randn(24), 2)


BIAS = torch.randn(5, 5).masked_fill(CAUSAL, -torch.inf)
# As models hide all keys of a query that is padding.
HIDDEN_ROWS = torch.zeros(5, 5)
HIDDEN_ROWS[1], HIDDEN_ROWS[3] = -1e9, torch.finfo().min
FORMS = [
    (False, None, None),
    (True, None, 0.3),
    (False, BIAS, None),
    (False, HIDDEN_ROWS, None),
    (False, torch.randn(2, 1, 5, 5), None),
    (True, torch.randn(2, 1, 1, 5), None),
]


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("at_once", [1, 2, 5])
@pytest.mark.parametrize("groups", [4, 2])
@pytest.mark.parametrize(("causal", "bias", "scale"), FORMS)
def test_fused_attention_and_its_gradients(causal, bias, scale, groups, at_once, monkeypatch):
    monkeypatch.setattr(attention.target, "most_scores", lambda: at_once * 2 * 4 * 5)
    q, k, v = (torch.randn(2, heads, 5, 4) for heads in (4, groups, groups))
    options = {"attn_mask": bias, "scale": scale}
    forward = aten._scaled_dot_product_flash_attention_for_cpu
    close(forward, q, k, v, 0.0, causal, **options)
    out, total = forward(q, k, v, 0.0, causal, **options)
    args = (torch.randn_like(out), q, k, v, out, total, 0.0, causal)
    close(aten._scaled_dot_product_flash_attention_for_cpu_backward, *args, **options)


def test_attention_of_grouped_heads_is_one_op():
    q, k = torch.randn(1, 4, 5, 8).jax(), torch.randn(1, 2, 5, 8).jax()
    debug.reset_metrics()
    torch.nn.functional.scaled_dot_product_attention(q, k, k, enable_gqa=True)
    assert debug.metrics()["recorded_ops"] == 1


def test_fused_attention_to_nothing_is_zero():
    q, k, v = (torch.randn(1, 1, 2, 4) for _ in range(3))
    hidden = torch.full((2, 2), -torch.inf)
    got = run(aten._scaled_dot_product_flash_attention_for_cpu, q, k, v, attn_mask=hidden)
    assert torch.equal(got[0], torch.zeros_like(q))


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("queries", [64, 4096])
def test_attention_of_long_sequences_does_not_store_all_scores(queries):
    """The scores of 4,096 queries are 512 MiB, those of `whole` 1 GiB."""
    q = jax.ShapeDtypeStruct((1, 8, queries, 32), np.float32)
    total = jax.ShapeDtypeStruct(q.shape[:3], np.float32)

    def forward(q, k, v):
        return attention.flash_attention_for_cpu(q, k, v, 0.0, True)

    def backward(grad, q, k, v, out, total):
        return attention.flash_attention_for_cpu_backward(grad, q, k, v, out, total, 0.0, True)

    def whole(x, *parameters):
        op = attention.native_multi_head_attention
        return op(x, x, x, 64, 16, *parameters, need_weights=False)[0]

    x = jax.ShapeDtypeStruct((1, queries, 64), np.float32)
    shapes = (192, 64), (192,), (64, 64), (64,)
    parameters = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    programs = (forward, (q,) * 3), (backward, (*(q,) * 5, total)), (whole, (x, *parameters))
    for function, arguments in programs:
        compiled = jax.jit(function).lower(*arguments).compile()
        assert ("while" in compiled.as_text()) == (queries == 4096)
        assert compiled.memory_analysis().temp_size_in_bytes < 100 * 2**20
