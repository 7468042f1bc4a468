"""Mixed precision: autocast to bfloat16, and a scaler of gradients that watches for overflows."""

import torch
from torch import nn


def run(device: str, steps: int) -> list[float]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler(device, init_scale=256.0)
    losses = []
    for _ in range(steps):
        x, y = torch.randn(8, 16).to(device), torch.randint(0, 4, (8,)).to(device)
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert scaler.get_scale() == 256.0
    return losses
