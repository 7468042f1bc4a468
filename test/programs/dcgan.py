"""Two convolutional nets that train against each other."""

import torch
from torch import nn


def run(device: str, steps: int) -> list[float]:
    torch.manual_seed(0)
    generator = nn.Sequential(
        *(nn.ConvTranspose2d(16, 16, 4), nn.BatchNorm2d(16), nn.ReLU()),
        *(nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.BatchNorm2d(8), nn.ReLU()),
        *(nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Tanh()),
    ).to(device)
    critic = nn.Sequential(
        *(nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2)),
        *(nn.Conv2d(8, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.LeakyReLU(0.2)),
        *(nn.Conv2d(16, 1, 4), nn.Flatten(0)),
    ).to(device)
    of_generator = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    of_critic = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    losses = []
    for _ in range(steps):
        real = torch.rand(8, 1, 16, 16).to(device)
        fake = generator(torch.randn(8, 16, 1, 1).to(device))
        of_critic.zero_grad()
        judged = criterion(critic(real), torch.ones(8, device=device))
        judged = judged + criterion(critic(fake.detach()), torch.zeros(8, device=device))
        judged.backward()
        of_critic.step()
        of_generator.zero_grad()
        fooled = criterion(critic(fake), torch.ones(8, device=device))
        fooled.backward()
        of_generator.step()
        losses += [judged.item(), fooled.item()]
    return losses
