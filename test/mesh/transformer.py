"""A small language model, and the rules by which its matrices are divided among devices."""

import torch
from torch import nn

VOCABULARY = 512


class Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        y = self.norm1(x)
        q, k, v = (
            project(y).view(batch, length, self.heads, -1).transpose(1, 2)
            for project in (self.q, self.k, self.v)
        )
        heads = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.dropout(self.o(heads.transpose(1, 2).reshape(batch, length, width)))
        return x + self.dropout(self.down(nn.functional.gelu(self.up(self.norm2(x)))))


class LanguageModel(nn.Module):
    def __init__(
        self, width: int = 64, heads: int = 8, dropout: float = 0.0, blocks: int = 2
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList([Block(width, heads, dropout) for _ in range(blocks)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


# Tensor parallelism: each device has some heads, and a part of the vocabulary.
RULES = [
    (r"\.(q|k|v|up)\.weight", ("model", None)),
    (r"\.(q|k|v|up)\.bias", ("model",)),
    (r"\.(o|down)\.weight", (None, "model")),
    (r"(head|embedding)\.weight", ("model", None)),
]
