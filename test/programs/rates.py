"""A search for the learning rate: it grows in each step until the loss does, too."""

import copy

import torch
from torch import nn


def run(device: str, steps: int) -> list[float]:
    """The losses of the search, the rate that it finds, and the losses of training with it."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 512), nn.ReLU(), nn.Linear(512, 4)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 10 ** (5 * step / steps))
    inputs, labels = torch.randn(8, 32, 16), torch.randint(0, 4, (8, 32))

    def train(step: int) -> float:
        optimizer.zero_grad()
        scores, wanted = model(inputs[step % 8].to(device)), labels[step % 8].to(device)
        (loss := nn.functional.cross_entropy(scores, wanted)).backward()
        optimizer.step()
        return loss.item()

    losses, rates = [], []
    while len(losses) < steps and (not losses or losses[-1] < 2 * min(losses)):
        rates += schedule.get_last_lr()
        losses.append(train(len(losses)))
        schedule.step()
    best = rates[losses.index(min(losses))] / 10
    model.load_state_dict(before[0])
    optimizer.load_state_dict(before[1])
    optimizer.param_groups[0]["lr"] = best
    return [*losses, best, *map(train, range(4))]
