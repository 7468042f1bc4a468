"""Finds squares in images by boxes at anchors, and of those the best that overlap little."""

import torch
from torch import nn


def run(device: str, steps: int) -> list[float]:
    """The losses, and the boxes that are found in the last image."""
    torch.manual_seed(0)
    convolutions = [nn.Sequential(nn.Conv2d(n, 16, 3, 2, 1), nn.ReLU()) for n in (1, 16, 16)]
    net = nn.Sequential(*convolutions, nn.Conv2d(16, 5, 1)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    middles = torch.cartesian_prod(*[torch.arange(8, device=device) * 8.0 + 4] * 2).flip(1)
    anchors = torch.cat([middles - 8, middles + 8], dim=1)
    losses = []
    for step in range(steps):
        corners = torch.randint(0, 48, (1 + step % 3, 2))
        boxes = torch.cat([corners, corners + 16], dim=1).float().to(device)
        image = torch.zeros(1, 1, 64, 64)
        for x, y in corners.tolist():
            image[0, 0, y : y + 16, x : x + 16] = 1
        scores, moves = net(image.to(device))[0].flatten(1).t().split([1, 4], dim=1)
        best, nearest = overlaps(anchors, boxes).max(dim=1)
        is_object = best > 0.3
        wanted = (boxes[nearest[is_object]] - anchors[is_object]) / 16
        loss = nn.functional.binary_cross_entropy_with_logits(scores[:, 0], is_object.float())
        loss = loss + nn.functional.smooth_l1_loss(moves[is_object], wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    kept, left = [], (anchors + 16 * moves.detach())[scores[:, 0].argsort(descending=True)]
    while len(left) and len(kept) < 20:
        kept += left[0].tolist()
        left = left[1:][overlaps(left[1:], left[:1])[:, 0] < 0.3]
    return losses + kept


def overlaps(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Of each pair (left, top, right, bottom): what is in both, divided by what is in either."""
    start = torch.maximum(a[:, None, :2], b[None, :, :2])
    both = (torch.minimum(a[:, None, 2:], b[None, :, 2:]) - start).clamp(min=0).prod(dim=2)
    areas = [(boxes[:, 2:] - boxes[:, :2]).prod(dim=1) for boxes in (a, b)]
    return both / (areas[0][:, None] + areas[1] - both)
