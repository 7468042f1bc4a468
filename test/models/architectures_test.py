"""Language models of transformers take texts of new lengths without compiling anything."""

import logging
import warnings
from typing import Any

import pytest
import torch

from bazel.pytest_plugin import mostly_nightly
from test.models import libraries
from test.python import tiers
from torch_xla_lite import debug

transformers = libraries.require("transformers")

# The attributes of configurations that make a model small, where they have them.
SMALL: dict[str, Any] = {
    "vocab_size": 64,
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "embedding_size"), 32),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers"), 2),
    **dict.fromkeys(("encoder_layers", "decoder_layers", "first_k_dense_replace"), 1),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    "num_key_value_heads": 2,
    **dict.fromkeys(("intermediate_size", "ffn_dim"), 48),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 48),
    **dict.fromkeys(("head_dim", "kv_channels"), 8),
    **dict.fromkeys(("max_position_embeddings", "n_positions"), 64),
    "sliding_window": 8,
    # Of experts.
    **dict.fromkeys(("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_top_k", "moe_k"), 2),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), 16),
    **dict.fromkeys(("n_group", "topk_group", "n_shared_experts"), 1),
    # Of attention with few latent dimensions.
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "v_head_dim"), 8),
    **dict.fromkeys(("qk_rope_head_dim", "rotary_dim"), 8),
    # Of state spaces.
    **dict.fromkeys(("state_size", "mamba_d_state", "mamba_n_heads", "conv_kernel"), 4),
    "mamba_d_head": 16,
    "mamba_n_groups": 1,
    "use_mamba_kernels": False,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
WITH_EXPERTS = """
    afmoe aria_text cohere2_moe deepseek_v2 deepseek_v3 deepseek_v32 deepseek_v4 dots1 ernie4_5_moe
    exaone_moe flex_olmo glm4_moe glm4_moe_lite gpt_oss granitemoe granitemoeshared hunyuan_v1_moe
    hy_v3 jetmoe llama4_text longcat_flash mimo_v2_flash minimax minimax_m2 mixtral olmoe phimoe
    qwen2_moe qwen3_moe solar_open
"""
WITHOUT = """
    apertus arcee bart bert big_bird biogpt bitnet blenderbot bloom codegen cohere cohere2 cpmant
    ctrl diffllama doge falcon_mamba gemma3_text gpt2 lfm2 llama mamba modernbert-decoder mpt
    nanochat nemotron openai-gpt opt persimmon roformer rwkv xglm xlm
"""


def small(architecture: str) -> torch.nn.Module:
    config = transformers.CONFIG_MAPPING[architecture]
    default = config()
    sizes = {name: value for name, value in SMALL.items() if hasattr(default, name)}
    # Keys and values have few latent dimensions, not fewer heads.
    if "kv_lora_rank" in sizes:
        sizes["num_key_value_heads"] = sizes["num_attention_heads"]
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformers.AutoModelForCausalLM.from_config(config(**sizes)).eval()


@pytest.fixture(autouse=True)
def _runs_as_by_default(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.ERROR)
    with tiers.as_by_default():
        yield


@pytest.mark.needs("interpreter")
@pytest.mark.parametrize(
    "architecture", mostly_nightly((WITH_EXPERTS + WITHOUT).split(), ["qwen3_moe"])
)
def test_texts_of_three_lengths_compile_nothing(architecture: str):
    model = small(architecture)
    tokens = torch.randint(3, 60, (2, 7))
    with torch.no_grad():
        wanted = [model(input_ids=tokens[:, :length]).logits for length in (5, 6, 7)]
        model.to("jax")
        debug.reset_metrics()
        got = [model(input_ids=tokens[:, :length].jax()).logits.cpu() for length in (5, 6, 7)]
    metrics = debug.metrics()
    torch.testing.assert_close(got, wanted, rtol=1e-3, atol=1e-4)
    assert (metrics["compiles"], metrics["loads"], metrics["executions"]) == (0, 0, 0)
