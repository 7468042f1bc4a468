"""A policy learns to balance a pole. Each step reads an action."""

import torch
from torch import nn


def run(device: str, steps: int) -> list[float]:
    """steps: episodes, of ten actions at most."""
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)).to(device)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    lengths = []
    for _ in range(steps):
        angle, speed = (torch.rand(2) * 0.1).tolist()
        chances, rewards = [], []
        for _ in range(10):
            logits = policy(torch.tensor([angle, speed]).to(device))
            action = int(logits.softmax(0)[1].item() > torch.rand(()).item())
            chances.append(logits.log_softmax(0)[action])
            speed += 0.05 * angle + (0.02 if action else -0.02)
            angle += speed
            rewards.append(1.0 - abs(angle))
            if abs(angle) > 0.5:
                break
        returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0).to(device)
        loss = -(torch.stack(chances) * (returns - returns.mean())).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lengths.append(sum(rewards))
    return lengths
