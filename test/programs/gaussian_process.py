"""Fits a Gaussian process: Cholesky factors, triangular solutions, a multivariate normal."""

import torch


def run(device: str, steps: int) -> list[float]:
    torch.manual_seed(0)
    x = torch.rand(24, 1).to(device)
    y = (6 * x).sin().squeeze(1)
    scale = torch.tensor(0.5, device=device, requires_grad=True)
    noise = torch.tensor(0.1, device=device, requires_grad=True)
    optimizer = torch.optim.Adam([scale, noise], lr=0.02)
    losses = []
    for _ in range(steps):
        covariance = (-torch.cdist(x, x).square() / (2 * scale.square())).exp()
        covariance = covariance + (noise.square() + 1e-3) * torch.eye(24, device=device)
        normal = torch.distributions.MultivariateNormal(torch.zeros_like(y), covariance)
        loss = -normal.log_prob(y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
