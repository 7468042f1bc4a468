"""An LSTM that predicts words of sentences of all lengths, packed."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(30, 16), nn.Linear(24, 30)
        self.recurrent = nn.LSTM(16, 24, batch_first=True)

    def forward(self, text: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(
            self.words(text), lengths, batch_first=True, enforce_sorted=False
        )
        return self.head(self.recurrent(packed)[0].data)


def run(device: str, steps: int) -> list[float]:
    torch.manual_seed(0)
    model = Model().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        texts = [torch.randint(0, 30, (int(n),)) for n in torch.randint(3, 12, (6,))]
        lengths = torch.tensor([len(text) - 1 for text in texts])
        padded = pad_sequence(texts, batch_first=True)
        wanted = pack_padded_sequence(
            padded[:, 1:], lengths, batch_first=True, enforce_sorted=False
        ).data
        scores = model(padded[:, :-1].to(device), lengths)
        loss = nn.functional.cross_entropy(scores, wanted.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
