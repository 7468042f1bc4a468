"""A language model writes a text token by token, with a cache of keys and values."""

import torch
from torch import nn


def run(device: str, steps: int, *, static: bool = True, sample: bool = False) -> list[float]:
    """The tokens.

    steps: how many.
    static: whether the cache has all places from the beginning, or grows.
    sample: whether tokens are drawn.
    """
    torch.manual_seed(0)
    model = Model().to(device)
    torch.manual_seed(0)
    text = torch.tensor([[1, 5, 2, 7]]).to(device)
    caches = [Cache(device, 4 + steps if static else 0) for _ in model.blocks]
    new = text
    with torch.no_grad():
        for _ in range(steps):
            places = torch.arange(text.shape[1] - new.shape[1], text.shape[1], device=device)
            scores = model(new, caches, places)
            chances = scores.softmax(-1)
            new = chances.multinomial(1) if sample else chances.argmax(-1, keepdim=True)
            text = torch.cat([text, new], dim=1)
            if new.item() == len(text[0]) + 100:  # A criterion to stop, which is never met.
                break
    return text[0].tolist()


class Cache:
    """Keys and values of one layer: [head, place, feature] each."""

    def __init__(self, device: str, places: int) -> None:
        self.is_static = places > 0
        self.values = [torch.zeros(2, places, 16, device=device) for _ in range(2)]

    def update(self, new: tuple[torch.Tensor, torch.Tensor], at: torch.Tensor) -> list:
        """All keys and values, those of some places being new."""
        for i, value in enumerate(new):
            if self.is_static:
                self.values[i].index_copy_(1, at, value)
            else:
                self.values[i] = torch.cat([self.values[i], value], dim=1)
        return self.values


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.attention = nn.Linear(32, 96)
        self.output = nn.Linear(32, 32)
        self.mlp = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

    def forward(self, x: torch.Tensor, cache: Cache, at: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            part.view(len(x), 2, 16).transpose(0, 1)
            for part in self.attention(self.norm(x)).split(32, dim=-1)
        )
        keys, values = cache.update((key, value), at)
        scores = query @ keys.transpose(1, 2) / 4
        later = torch.arange(keys.shape[1], device=x.device) > at[:, None]
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
        x = x + self.output((weights @ values).transpose(0, 1).reshape(len(x), 32))
        return x + self.mlp(x)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(32, 50)

    def forward(self, text: torch.Tensor, caches: list[Cache], at: torch.Tensor) -> torch.Tensor:
        """The scores of the token that comes next: [1, token]."""
        x = self.embedding(text[0])
        for block, cache in zip(self.blocks, caches, strict=True):
            x = block(x, cache, at)
        return self.head(x[-1:])
