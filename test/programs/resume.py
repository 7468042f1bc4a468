"""Training that ends, and goes on from a checkpoint as if it had not, random numbers included."""

import io

import torch
from torch import nn


def run(device: str, steps: int) -> list[float]:
    torch.manual_seed(0)
    batches = torch.randn(steps, 8, 6)

    def start() -> tuple[nn.Module, torch.optim.Optimizer]:
        model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1)).to(device)
        return model, torch.optim.Adam(model.parameters(), lr=1e-2)

    def train(model: nn.Module, optimizer: torch.optim.Optimizer, batches: torch.Tensor) -> list:
        losses = []
        for batch in batches:
            optimizer.zero_grad()
            loss = model(batch.to(device)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    model, optimizer = start()
    losses = train(model, optimizer, batches[: steps // 2])
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    rest = train(model, optimizer, batches[steps // 2 :])
    model, optimizer = start()
    saved = torch.load(file, map_location=device)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    assert train(model, optimizer, batches[steps // 2 :]) == rest
    return losses + rest
