"""Classifies images: workers load them, a progress bar shows the loss, a schedule sets the rate."""

import io

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm


def run(device: str, steps: int) -> list[float]:
    torch.manual_seed(0)
    images, labels = torch.randn(16 * steps, 1, 12, 12), torch.randint(0, 4, (16 * steps,))
    loader = DataLoader(TensorDataset(images, labels), batch_size=16, num_workers=2)
    model = nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4)),
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=steps)
    losses = []
    bar = tqdm(loader, file=io.StringIO())
    for x, y in bar:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        bar.set_postfix(loss=losses[-1])
    assert bar.n == steps and f"loss={losses[-1]:.3g}" in bar.postfix
    return losses
