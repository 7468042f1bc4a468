"""Measures loops that read a value after few operations, beside eager.

    python -m scripts.bench.reads                  # about a minute and a half
    python -m scripts.bench.reads --json result.json

Each loop runs alternately on device jax and in torch's eager mode, with one thread, in microseconds
of processor time. Graphs are compiled when that pays by the model, as in any program: here never.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import torch
from torch import nn

import torch_xla_lite  # noqa: F401
from scripts.bench import harness

ROUNDS = 61
GOALS = {1: 1.3, 2: 1.0, 3: 0.9, 10: 0.6}  # of chains of so many operations
Loop = Callable[[], object]
Call = Callable[[int], object]  # of a length


def main() -> None:
    """Runs the command line."""
    options = harness.arguments(__doc__).parse_args()
    torch.set_num_threads(1)
    report = harness.Report(harness.machine(threads=1))
    report.add("A value is read after so many operations on 4 x 4", [*map(_chain, GOALS)])
    report.add("Programs that read in loops", [_row(name, *of) for name, of in PROGRAMS.items()])
    report.add("Each call has a length that was not met", [*map(_new_lengths, LENGTHS)])
    report.write(options.json)


def _chain(length: int) -> harness.Row:
    def make(device: str) -> Loop:
        x = torch.randn(4, 4).to(device)

        def run() -> float:
            y = x
            for i in range(length - 1):
                y = y * 2 if i % 2 else y + 1
            return y.sum().item()

        return run

    return _row(str(length), make, 100, GOALS[length])


def _row(name: str, make: Callable[[str], Loop], calls: int, goal: float) -> harness.Row:
    """Microseconds of a call, which is made `calls` times in each round."""

    def contender(device: str) -> harness.Contender:
        run = make(device)
        for _ in range(calls):
            run()
        return lambda: harness.timed(lambda: [run() for _ in range(calls)], time.process_time)

    seconds = harness.interleave({"ours": contender("jax"), "eager": contender("cpu")}, ROUNDS)
    return harness.compare(name, seconds, "us", against="eager", scale=1e6 / calls, goal=goal)


def _new_lengths(name: str) -> harness.Row:
    """Microseconds of a call. torch keeps kernels by shape for both, so they share no length."""
    make, shortest = LENGTHS[name]

    def contender(device: str, first: int) -> harness.Contender:
        run, lengths = make(device), itertools.count(first, 2)
        return lambda: harness.timed(lambda: run(next(lengths)), time.process_time)

    contenders = {"ours": contender("jax", shortest), "eager": contender("cpu", shortest + 1)}
    with torch.no_grad():
        seconds = harness.interleave(contenders, 3 * ROUNDS)
    return harness.compare(name, seconds, "us", against="eager", scale=1e6, goal=1.3)


def least_squares(device: str) -> Loop:
    """L-BFGS with a line search: ten steps for eight unknowns."""
    torch.manual_seed(0)
    matrix, values = torch.randn(32, 8).to(device), torch.randn(32).to(device)

    def run() -> float:
        unknowns = torch.zeros(8, device=device, requires_grad=True)
        optimizer = torch.optim.LBFGS([unknowns], max_iter=10, line_search_fn="strong_wolfe")

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = ((matrix @ unknowns).tanh() - values).square().mean()
            loss.backward()
            return loss

        return optimizer.step(closure).item()

    return run


def k_means(device: str) -> Loop:
    """300 points, four centres, until these rest."""
    torch.manual_seed(0)
    points = torch.randn(300, 2).to(device)

    def run() -> torch.Tensor:
        centres = points[:4]
        for _ in range(10):
            nearest = torch.cdist(points, centres).argmin(1)
            weights = torch.nn.functional.one_hot(nearest, 4).to(points.dtype)
            moved = (weights.t() @ points) / weights.sum(0).clamp(min=1).unsqueeze(1)
            if (moved - centres).abs().max().item() < 1e-4:
                break
            centres = moved
        return centres

    return run


def runge_kutta(device: str) -> Loop:
    """A pendulum with steps of a size that their error decides: Heun's method beside Euler's."""
    start = torch.tensor([1.0, 0.0]).to(device)
    turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]]).to(device)

    def run() -> torch.Tensor:
        state, size = start, 0.1
        for _ in range(20):
            slope = turn @ state.sin()
            euler = state + size * slope
            heun = state + size / 2 * (slope + turn @ euler.sin())
            error = (heun - euler).abs().max().item()
            if error < 1e-2:
                state = heun
            size *= min(2.0, max(0.5, (5e-3 / max(error, 1e-9)) ** 0.5))
        return state

    return run


PROGRAMS = {  # what makes a loop, how often it is called in a round, and the goal
    "L-BFGS": (least_squares, 1, 1.0),
    "k-means": (k_means, 2, 1.0),
    "Runge-Kutta": (runge_kutta, 2, 1.0),
}


def convolutions(device: str) -> Call:
    """Two convolutions of a clip, and what they find in it."""
    clip = torch.randn(1, 1, 9_000)
    net = nn.Sequential(nn.Conv1d(1, 16, 9, 4), nn.ReLU(), nn.Conv1d(16, 32, 9, 4)).to(device)
    return lambda length: net(clip[..., :length].to(device)).amax(-1).cpu()


def spectrum(device: str) -> Call:
    """The logarithm of a clip's spectrum."""
    clip, window = torch.randn(9_000), torch.hann_window(256).to(device)

    def run(length: int) -> torch.Tensor:
        found = torch.stft(clip[:length].to(device), 256, 64, window=window, return_complex=True)
        return found.abs().log1p().mean(-1).cpu()

    return run


def recurrent(device: str) -> Call:
    """A GRU, and the class of a clip."""
    clip = torch.randn(1, 1_000, 16)
    gru, classes = nn.GRU(16, 32, batch_first=True).to(device), nn.Linear(32, 4).to(device)
    return lambda length: classes(gru(clip[:, :length].to(device))[0][:, -1]).cpu()


def neighbours(device: str) -> Call:
    """A graph of so many nodes: two layers add up what four neighbours of each have."""
    layers = [nn.Linear(16, 32).to(device), nn.Linear(32, 4).to(device)]
    nodes, edges = torch.randn(1_000, 16), torch.randint(0, 1_000, (2, 4_000))

    def run(length: int) -> torch.Tensor:
        x, (start, end) = nodes[:length].to(device), (edges[:, : 4 * length] % length).to(device)
        for layer in layers:
            x = layer(x)
            x = (x + torch.zeros_like(x).index_add(0, end, x[start])).relu()
        return x.mean(0).cpu()

    return run


LENGTHS = {  # what makes a call, and its first length
    "convolutions of audio": (convolutions, 4_000),
    "spectrum": (spectrum, 4_000),
    "GRU": (recurrent, 60),
    "graph of varying size": (neighbours, 100),
}

if __name__ == "__main__":
    main()
