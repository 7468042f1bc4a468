"""Evaluation after each epoch, with a last batch that is smaller, and metrics that are read."""

import torch
from torch import nn


def run(device: str, steps: int) -> list[float]:
    """steps: epochs."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 1024), nn.ReLU(), nn.Linear(1024, 5)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    inputs, labels = torch.randn(70, 12), torch.randint(0, 5, (70,))
    metrics = []
    for _ in range(steps):
        for x, y in zip(inputs.split(16), labels.split(16), strict=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
            optimizer.step()
        right, total = 0, 0.0
        with torch.no_grad():
            for x, y in zip(inputs.split(16), labels.split(16), strict=True):
                scores, labels_here = model(x.to(device)), y.to(device)
                total += nn.functional.cross_entropy(scores, labels_here, reduction="sum").item()
                right += (scores.argmax(1) == labels_here).sum().item()
        metrics += [right / 70, total / 70]
    return metrics
