"""transformers' `generate` with a tiny Llama, in each of the forms that programs use."""

from types import SimpleNamespace

import torch


def run(device: str, steps: int, *, streams: bool = False, **options: object) -> list[float]:
    """The tokens of the text; with `streams`, once more as they were heard one by one.

    steps: how many are new. options: of `generate`.
    """
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, bos_token_id=0, eos_token_id=48, pad_token_id=49,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval().to(device)
    heard: list[int] = []
    if streams:
        hear = lambda tokens: heard.extend(tokens.flatten().tolist())  # noqa: E731
        options["streamer"] = SimpleNamespace(put=hear, end=lambda: heard.append(-1))
    text = torch.tensor([[1, 5, 9, 5, 7]]).to(device)
    return model.generate(text, max_new_tokens=steps, **options)[0].tolist() + heard
