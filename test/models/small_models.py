"""Small models of libraries, without dropout: made from configurations, with random weights."""

from torch import nn

from test.models import libraries

transformers = libraries.require("transformers")
diffusers = libraries.require("diffusers")


def small_gpt2() -> nn.Module:
    config = transformers.GPT2Config(
        vocab_size=50, n_positions=32, n_embd=16, n_layer=1, n_head=2, resid_pdrop=0.0,
        embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=1, pad_token_id=2,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def small_llama() -> nn.Module:
    config = transformers.LlamaConfig(
        vocab_size=50, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=32, pad_token_id=2,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def small_mixtral() -> nn.Module:
    config = transformers.MixtralConfig(
        vocab_size=50, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, num_local_experts=3, pad_token_id=2,
        max_position_embeddings=32,
    )  # fmt: skip
    return transformers.MixtralForCausalLM(config)


def small_bert() -> nn.Module:
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=16, num_labels=3, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return transformers.BertForSequenceClassification(config)


def small_t5() -> nn.Module:
    config = transformers.T5Config(
        vocab_size=50, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, dropout_rate=0.0,
        decoder_start_token_id=0,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


def small_wav2vec2() -> nn.Module:
    config = transformers.Wav2Vec2Config(
        vocab_size=12, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, conv_dim=(8, 8), conv_stride=(5, 4), conv_kernel=(10, 4),
        num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2, hidden_dropout=0.0,
        attention_dropout=0.0, activation_dropout=0.0, feat_proj_dropout=0.0, final_dropout=0.0,
        layerdrop=0.0, mask_time_prob=0.3, mask_time_length=2, ctc_zero_infinity=True,
    )  # fmt: skip
    return transformers.Wav2Vec2ForCTC(config)


def small_unet() -> nn.Module:
    return diffusers.UNet2DModel(
        sample_size=8, block_out_channels=(8,), norm_num_groups=4, layers_per_block=1,
        down_block_types=("AttnDownBlock2D",), up_block_types=("UpBlock2D",),
        attention_head_dim=4, add_attention=False,
    )  # fmt: skip


def small_vit() -> nn.Module:
    config = transformers.ViTConfig(
        image_size=32, patch_size=16, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return transformers.ViTForImageClassification(config)


def small_whisper() -> nn.Module:
    config = transformers.WhisperConfig(
        vocab_size=50, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, num_mel_bins=8,
        max_source_positions=10, max_target_positions=16, pad_token_id=2, bos_token_id=0,
        eos_token_id=1, decoder_start_token_id=0, dropout=0.0,
    )  # fmt: skip
    return transformers.WhisperForConditionalGeneration(config)
