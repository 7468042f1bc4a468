"""A variational autoencoder, whose last batch is smaller."""

import torch
from torch import nn


def run(device: str, steps: int) -> list[float]:
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8)).to(device)
    decoder = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 64)).to(device)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    losses = []
    for step in range(steps):
        x = torch.rand(5 if step == steps - 1 else 16, 64)
        noise = torch.randn(len(x), 4).to(device)
        x = x.to(device)
        mean, log_variance = encoder(x).chunk(2, dim=1)
        decoded = decoder(mean + noise * (0.5 * log_variance).exp())
        loss = nn.functional.binary_cross_entropy_with_logits(decoded, x, reduction="sum")
        loss = loss - 0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item() / len(x))
    return losses
